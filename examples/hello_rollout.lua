--- The smallest whole thing: a task, a model, a rollout, its reward.
---
---     agentbox script examples/hello_rollout.lua                                  a scripted model
---     agentbox script examples/hello_rollout.lua qwen3 http://127.0.0.1:8000/v1   a real one; its key in API_KEY
local ab = require "agentbox"

local here = arg[0]:match "^(.*)/[^/]*$" or "."
local task = assert(ab.task.load(here .. "/../tasks/fix_fizzbuzz"))

local model
if arg[1] then
  model = ab.model.open { model = arg[1], base_url = arg[2], api_key = os.getenv "API_KEY" and ab.secret "API_KEY" }
else
  model = require "solver".model(task)
end

local traj = assert(ab.rollout.run { task = task, model = model, max_steps = 20 })

for _, message in ipairs(traj.messages) do
  local calls = {}
  for _, call in ipairs(message.tool_calls or {}) do calls[#calls + 1] = call["function"].name end
  print(("%-9s %s"):format(message.role, calls[1] and table.concat(calls, ", ")
    or ab.traj.text(message):match "^[^\n]*"))
end
print(("status=%s reward=%s"):format(traj.final_status, traj.reward))
return traj.final_status == "success" and 0 or 1
