--- Groups of rollouts for a trainer: each as soon as it is closed, acknowledged when it was used.
---
---     agentbox script examples/run_groups.lua [TASKS [OUT]]
---
--- The model here is a script that solves some of its tasks; put `ab.model.open { ... }` in its place. Interrupt it or kill it
--- and start it again: it goes on where it was, and no group is used twice.
local ab = require "agentbox"
local solver = require "solver"

local tasks, out = arg[1] or "tasks", arg[2] or "trajectories"
local run_id = "groups"
local there_already = ab.fs.exists(("%s/%s/run.json"):format(out, run_id))

-- Every second member solves its task, so that the group has something to tell.
local function prepare(task, slot)
  return { model = slot.index % 2 == 0 and solver.model(task) or ab.model.scripted { "I give up." } }
end

local function advantages(rewards)
  local sum = 0
  for _, reward in ipairs(rewards) do sum = sum + reward end
  local list = {}
  for i, reward in ipairs(rewards) do list[i] = ("%+.2f"):format(reward - sum / #rewards) end
  return table.concat(list, " ")
end

local run <close> = assert(ab.runner.start {
  tasks = tasks, model = ab.model.scripted { "unused" }, prepare = prepare, group_size = 4, concurrency = 4, seed = 1,
  limits = { creating = 2, commands = 4 }, max_lead = 8, straggler = { factor = 4 }, out = out, run_id = run_id,
  resume = there_already,
})

for group in run:groups() do
  local turns = 0
  for _, traj in ipairs(assert(group:trajectories())) do turns = turns + (traj.metrics.steps or 0) end
  print(("%-20s %d of %d, %d steps, advantages %s%s"):format(group.id, #group.members, group.size, turns,
    advantages(group.rewards), group.zero_signal and " (no signal)" or ""))
  assert(run:ack(group))
end

local sum = run:wait()
print(("%d rollouts, %d solved, %d groups"):format(sum.rollouts, sum.solved, sum.groups.closed))
