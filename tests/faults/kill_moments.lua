--- The work that kill_moments.py interrupts: rollouts without end, several at once, each kept on disk.
---
---     agentbox script kill_moments.lua EXAMPLES TASKS OUT
local ab = require "agentbox"
package.path = arg[1] .. "/?.lua;" .. package.path
local solver = require "solver"

local tasks = {}
for _, name in ipairs { "fix_fizzbuzz", "fix_reverse", "shell_report" } do
  tasks[#tasks + 1] = assert(ab.task.load(arg[2] .. "/" .. name))
end

local store <close> = assert(ab.store.open(arg[3], { run_id = ab.rand.uuid4() })) -- luacheck: ignore
print "going"
io.stdout:flush()

local lanes = { 1, 2, 3, 4 }
ab.async.each(lanes, function(lane)
  for i = lane, math.huge do
    local task = tasks[i % #tasks + 1]
    local traj = assert(ab.rollout.run { task = task, model = solver.model(task) })
    assert(store:append(traj))
  end
end, { limit = #lanes })
