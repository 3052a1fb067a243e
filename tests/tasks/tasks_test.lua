-- Each bundled task in a real sandbox: solved by its solution, not by doing nothing, not by doing something useless.
local ab = require "agentbox"
local lu = require "luaunit"

package.path = "examples/?.lua;" .. package.path
local solver = require "solver"

local function run(task, model)
  local traj = assert(ab.rollout.run { task = task, model = model })
  if not traj.scored then error(("%s: %s"):format(traj.stop_reason, traj.line.error), 0) end
  return traj
end

local M = {}

for _, task in ipairs(assert(ab.task.dir("tasks", { nested = false }))) do
  local id = task.task_id
  M["test_" .. id .. "_solved"] = function()
    lu.assertTrue(next(task.solution) ~= nil)
    local traj = run(task, solver.model(task))
    lu.assertEquals(traj.reward, 1.0, traj.line.verify and traj.line.verify.stdout)
    lu.assertEquals(traj.final_status, "success")
  end
  M["test_" .. id .. "_idle"] = function()
    local traj = run(task, ab.model.scripted { "I would rather not." })
    lu.assertEquals(traj.reward, 0.0)
    lu.assertEquals(traj.final_status, "failed")
  end
  M["test_" .. id .. "_broken"] = function()
    lu.assertEquals(run(task, solver.model(task, true)).reward, 0.0)
  end
end

return M
