--- A group of rollouts of one task, written for OpenPipe ART to train on.
---
---     agentbox script examples/art_integration.lua                                  two scripted models, one of them wrong
---     agentbox script examples/art_integration.lua qwen3 http://127.0.0.1:8000/v1   a real one; its key in API_KEY
---
--- Writes into runs/art: the record itself, and one TrajectoryGroup a line in both of ART's forms. In Python:
---
---     for line in open("runs/art/exchanges.jsonl"):
---         group = json.loads(line)
---         trajectories = [art.Trajectory.model_validate(t) for t in group["trajectories"]]
---         await backend.train(model, [art.TrajectoryGroup(trajectories)], learning_rate=1e-5)
local ab = require "agentbox"

local here = arg[0]:match "^(.*)/[^/]*$" or "."
local task = assert(ab.task.load(here .. "/../tasks/fix_fizzbuzz"))
local out = "runs/art"

--- ART trains on token ids: a vLLM server sends them when it is asked to.
local function model_for(index)
  if not arg[1] then return require "solver".model(task, index > 0) end
  return assert(ab.model.open {
    model = arg[1], base_url = arg[2], api_key = os.getenv "API_KEY" and ab.secret "API_KEY",
    extra_body = { logprobs = true, return_token_ids = true },
  })
end

--- Rewards minus their mean, as GRPO wants them. A rollout that was not scored has none and takes no part in the mean.
local function advantages(group)
  local sum, n = 0, 0
  for _, traj in ipairs(group) do
    if traj.scored then sum, n = sum + traj.reward, n + 1 end
  end
  local list = {}
  for i, traj in ipairs(group) do list[i] = traj.scored and traj.reward - sum / n end
  return list
end

local run_id = "group-" .. ab.rand.uuid4():sub(1, 8)
local store <close> = assert(ab.store.open(out, { run_id = run_id }))
local group = ab.async.each({ 0, 1 }, function(index)
  local traj = assert(ab.rollout.run {
    task = task, model = model_for(index), run_id = run_id, id = run_id .. "-" .. index,
    group = { id = run_id, index = index, size = 2 },
  })
  assert(store:append(traj))
  return traj
end)

for i, advantage in ipairs(advantages(group)) do
  local traj = group[i]
  print(("%s status=%s reward=%s advantage=%s"):format(traj.id:sub(-1), traj.final_status, traj.reward, advantage or "-"))
end

for _, form in ipairs { "messages", "exchanges" } do
  local path = ("%s/%s.jsonl"):format(out, form)
  local result = assert(ab.export.convert { input = store.run_dir, format = "art", out = path, options = { form = form } })
  io.stderr:write(ab.export.report("art", result))
  print(("%s: %d of %d rollouts"):format(path, result.written, #group))
end
return 0
