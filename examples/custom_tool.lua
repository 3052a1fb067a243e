--- A tool of one's own, over a process that lives as long as the rollout: a calculator the model talks to.
---
---     agentbox script examples/custom_tool.lua
---
--- The definition could be a file of its own: `agentbox run --tool examples/tools/calc.lua TASK`, or
--- DIR/agentbox/tools/calc.lua in an overlay, `agentbox -L DIR run TASK`.
local ab = require "agentbox"

local here = arg[0]:match "^(.*)/[^/]*$" or "."
local calc = dofile(here .. "/tools/calc.lua")

local task = ab.task.new {
  task_id = "sum_with_calc",
  description = "Use calc to compute 6 * 7, then write the result to answer.txt.",
  verifier = { type = "shell", command = 'test "$(cat answer.txt)" = 42' },
}

local model = ab.model.scripted {
  { tool_calls = { { name = "calc", arguments = { expression = "x = 6" } } } },
  { tool_calls = { { name = "calc", arguments = { expression = "x * 7" } } } },
  function(request)
    local result = ab.traj.text(request.messages[#request.messages])
    return { tool_calls = { { name = "write_file", arguments = { path = "answer.txt", content = result } } } }
  end,
  "The answer is in answer.txt.",
}

local traj = assert(ab.rollout.run { task = task, model = model, custom_tools = { calc } })
print(("status=%s reward=%s"):format(traj.final_status, traj.reward))
return traj.final_status == "success" and 0 or 1
