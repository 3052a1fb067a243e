--- A lab's own task factory: a language and a gate that are not built in. docs/generation.md explains it line by line.
---
---     agentbox script examples/gen.lua [OUT [MODEL BASE_URL]]
---
--- Without a model's name a scripted teacher answers, so that it runs anywhere.
local ab = require "agentbox"
local out, name, url = arg[1] or "generated/awk", arg[2], arg[3]

local shell = require "agentbox.generate.languages.shell"
local awk = ab.generate.language {
  api = 1, name = "awk", extensions = { "awk" }, is_test = shell.is_test,
  stub = "BEGIN { exit 1 }", cheat = "BEGIN { exit 0 }\n", support = shell.support,
  teach = "Language: POSIX awk. Mark what an agent writes by # BEGIN SOLUTION and # END SOLUTION. Tests: tests/test_NAME.sh with "
    .. [[functions test_x() { check "what" "expected" "$(printf '1\n' | awk -f script.awk)"; }.]],
}

local answer = ab.json.encode {
  task_id = "awk_sum", description = "Write sum.awk: it prints the sum of the first column of its input, 0 for none.",
  solution_files = { ["sum.awk"] = "# BEGIN SOLUTION\n{ sum += $1 }\nEND { print sum + 0 }\n# END SOLUTION\n" },
  test_files = { ["tests/test_sum.sh"] = [[
test_sum() { check "two lines" 5 "$(printf '2 x\n3 y\n' | awk -f sum.awk)"; }
test_none() { check "no lines" 0 "$(awk -f sum.awk < /dev/null)"; }
test_negative() { check "below zero" -1 "$(printf '%s\n' -3 2 | awk -f sum.awk)"; }
]] },
}
local model = name and ab.model.open { model = name, base_url = url } or ab.model.fn(function() return answer end)

local stages = ab.generate.two_stage():after("sandbox", "short", function(cand)
  local lines = 0
  for _, file in pairs(cand.task.solution) do lines = lines + select(2, file.bytes:gsub("\n", "")) end
  return lines <= 40, "the solution is longer than 40 lines", { lines = lines }
end)

local factory = ab.generate.pipeline { model = model, language = awk, stages = stages, mutants = 4 }
for task, report in factory:batch { target = name and 10 or 1, concurrency = 4, out = out, caps = { calls = 100 } } do
  print(task.task_id, report.short.lines .. " lines", report.sandbox.starter)
end
for _, reject in ipairs(ab.generate.rejects(out)) do print("rejected", reject.index, reject.stage, reject.reason) end
