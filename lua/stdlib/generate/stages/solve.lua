--- solve: how often a student model solves the task, which is how hard it is; only if the pipeline has one.
---
--- Each attempt is a rollout as anybody would run it, in the pipeline's sandbox. One that the infrastructure ended says nothing
--- about the task: the stage is asked again when the batch goes on.
local err = require "agentbox.err"
local rollout = require "agentbox.rollout"

local function attempt(cand, ctx, conf, model, n)
  local sandbox = { network = "none" }
  for key, value in pairs(ctx.opts.sandbox) do sandbox[key] = value end
  sandbox.network = "none"
  local traj, problem = rollout.run { task = cand.task, model = model, max_steps = conf.max_steps, timeout_s = conf.timeout_s, sandbox = sandbox,
    tools = conf.tools, seed = n, metadata = { attempt = n } }
  if not traj then return nil, problem end
  if traj.final_status ~= "error" then return { solved = traj.final_status == "success", steps = traj.metrics.steps } end
  if model.failure then return nil, model.failure end
  return nil, err.new("sandbox", ("a solver's attempt failed: %s %s"):format(tostring(traj.stop_reason), tostring(traj.error or "")))
end

return function(cand, ctx)
  local turn <close> = ctx.sandbox_turns:acquire() -- luacheck: ignore
  local conf, solved, steps = ctx.opts.solver, 0, 0
  local model = ctx:counted(conf.model)
  for n = 1, conf.attempts do
    local one, problem = attempt(cand, ctx, conf, model, n)
    if not one then return nil, problem end
    solved, steps = solved + (one.solved and 1 or 0), steps + one.steps
  end
  local rate = solved / conf.attempts
  local facts = { pass_rate = rate, attempts = conf.attempts, steps = steps / conf.attempts, model = conf.model.name }
  if rate < conf.min_rate then return false, ("solved %d of %d times: too hard, or broken"):format(solved, conf.attempts), facts end
  if rate > conf.max_rate then return false, ("solved %d of %d times: too easy"):format(solved, conf.attempts), facts end
  return true, nil, facts
end
