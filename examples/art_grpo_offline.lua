--- Groups for GRPO, made now and trained on later: several rollouts of each task, rewards minus their group's mean, one file.
---
---     agentbox script examples/art_grpo_offline.lua                                         scripted models, some of them wrong
---     agentbox script examples/art_grpo_offline.lua qwen3 http://127.0.0.1:8000/v1 tasks    a real one; its key in API_KEY
---     python3 examples/art_grpo_offline.py runs/grpo/groups.jsonl                           ART reads it, up to the training call
---
--- Writes into runs/grpo: the run, groups.jsonl (a TrajectoryGroup a line) and a group.json for each group, as the Python AgentBox
--- had it: { group, rewards, advantages }. Started again it goes on where it was.
local ab = require "agentbox"
local solver = require "solver"

local here = arg[0]:match "^(.*)/[^/]*$" or "."
local out, run_id = "runs/grpo", "offline"
local real = arg[1] and assert(ab.model.open {
  model = arg[1], base_url = arg[2], api_key = os.getenv "API_KEY" and ab.secret "API_KEY", tokens = "require",
  sampling = { temperature = 1.0, logprobs = true, seed = "per_member" },
})

-- Without a server: every other member solves its task, so that comparing them tells something.
local function prepare(task, slot)
  return { model = real or solver.model(task, slot.index % 2 == 1) }
end

local function advantages(rewards)
  local sum, list = 0, ab.json.array {}
  for _, reward in ipairs(rewards) do sum = sum + reward end
  for i, reward in ipairs(rewards) do list[i] = reward - sum / #rewards end
  return list
end

local function document(group)
  local trajectories = ab.json.array {}
  for i, t in ipairs(assert(group:trajectories())) do trajectories[i] = (require "agentbox.formats.art".convert(t, {})) end
  return { group = trajectories, rewards = ab.json.array(group.rewards), advantages = advantages(group.rewards) }
end

local run <close> = assert(ab.runner.start {
  tasks = arg[3] or { here .. "/../tasks/fix_fizzbuzz", here .. "/../tasks/sum_list" }, group_size = 4, concurrency = 4, seed = 1,
  model = real or ab.model.scripted { "unused" }, prepare = prepare, out = out, run_id = run_id,
  resume = ab.fs.exists(("%s/%s/run.json"):format(out, run_id)), agentbox_json = false,
})
for group in run:groups() do
  print(("%-16s rewards %s advantages %s%s"):format(group.id, ab.json.encode(ab.json.array(group.rewards)),
    ab.json.encode(advantages(group.rewards)), group.zero_signal and " (nothing to learn from)" or ""))
  assert(ab.fs.write(("%s/%s.group.json"):format(out, group.id), ab.json.encode(document(group), { indent = 2 })))
  assert(run:ack(group))
end
assert(run:wait())

local path = out .. "/groups.jsonl"
local result = assert(ab.export.convert { input = run.run_dir, format = "art", out = path, options = { form = "exchanges" } })
io.stderr:write(ab.export.report("art", result))
print(("%s: %d trajectories"):format(path, result.written))
return 0
