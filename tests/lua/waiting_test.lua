--- What a rollout that waits for its model does not hold: thousands of them wait at once.
local lu = require "luaunit"
local model = require "agentbox.model"
local rollout = require "agentbox.rollout"
local runs = dofile((arg[0]:gsub("lua/[^/]*$", "support/runs.lua")))

local M = {}

-- Options that nobody but who is called has, and whether they are there while the model is asked.
local function held(call)
  local given, seen = setmetatable({}, { __mode = "v" }), nil
  call(function(opts)
    given[1] = opts
    return opts
  end, model.fn(function()
    collectgarbage()
    seen = given[1] ~= nil
    return "done"
  end))
  return seen
end

function M.test_the_options_of_one_rollout()
  lu.assertIsFalse(held(function(note, asked)
    assert(rollout.run(note { task = runs.task "t", model = asked, sandbox = { backend = "none" } }))
  end))
end

function M.test_the_options_of_a_runs_rollout()
  local start = rollout.start
  local _ <close> = setmetatable({}, { __close = function() rollout.start = start end })
  lu.assertIsFalse(held(function(note, asked)
    rollout.start = function(opts) return start(note(opts)) end
    local run <close> = runs.start { tasks = runs.tasks(1), model = asked }
    lu.assertEquals(run:wait().solved, 1)
  end))
end

return M
