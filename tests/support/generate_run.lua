-- A batch whose process kills itself at its nth write to the disk (KILL_AT; 0 never): before it or after it by turns.
local ab = require "agentbox"

dofile "tests/support/deadly.lua"(tonumber(os.getenv "KILL_AT"))

local language = ab.generate.language {
  api = 1, name = "words", extensions = { "txt" }, is_test = function(path) return path:find "^tests/" ~= nil end,
  stub = "?", cheat = "", teach = "Words.",
}
local model = ab.model.fn(function(request)
  local n = request.session:match "%d+"
  local word = tostring(tonumber(n) * 7919 ^ 3):rep(9, n)
  return ab.json.encode {
    task_id = "t" .. n, description = "Say it.",
    solution_files = { ["a.txt"] = ("# BEGIN SOLUTION\n%s\n# END SOLUTION\n"):format(word) }, test_files = { ["tests/t.txt"] = word },
  }
end)
local factory = ab.generate.pipeline {
  model = model, language = language, min_asserts = 0, stages = ab.generate.two_stage():remove "sandbox",
}
for _ in factory:batch { target = 6, concurrency = 2, out = arg[1] } do end -- luacheck: ignore
