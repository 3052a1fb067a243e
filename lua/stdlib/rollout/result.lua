--- rollout/result.lua: what a rollout that has ended tells the recorder. Nothing here waits or decides.
local json = require "agentbox.json"
local outcome = require "agentbox.outcome"
local time = require "agentbox.time"

local M = {}

local function ms(seconds) return seconds and math.floor(seconds * 1000 + 0.5) or nil end

local function verify_part(verdict)
  if not verdict then return nil end
  return {
    success = verdict.success, exit_code = verdict.exit_code, stdout = verdict.stdout, stderr = verdict.stderr,
    duration_s = verdict.duration_s, command = verdict.command, report = verdict.report, text = verdict.text,
    timed_out = verdict.timed_out, denied = verdict.denied and json.array(verdict.denied),
  }
end

local function metadata_of(ro)
  local out = {}
  for key, value in pairs(ro.opts.metadata or {}) do out[key] = value end
  out.task_metadata, out.tools_available = ro.plan.task.metadata, ro.plan.tools:names()
  out.failure_kind, out.failed_check = ro.failure_kind, ro.failed_check
  return out
end

local function timing_of(ro)
  local spent = ro.ctx and ro.ctx.budget or {}
  return {
    boot_ms = ms(ro.stage and ro.stage.boot_s), seed_ms = ms(ro.stage and ro.stage.seed_s), score_ms = ms(ro.score_s),
    model_ms = ms(spent.model_s), tool_ms = ms(spent.tool_s), total_ms = ms(time.monotonic() - ro.began),
  }
end

local function reward_of(ro, out)
  local components = out.scored and ro.verdict.components or nil
  return {
    scored = out.scored, value = out.reward, outcome = out.raw, components = components,
    agents = out.scored and ro.verdict.agents or nil,
    scorer = { name = ro.plan.verifier_name },
  }
end

-- The turn of a moment: that of the last tool call which had begun by then; 0 before any.
local function turn_at(runs, at)
  local turn = 0
  for _, run in ipairs(runs) do
    if run.t and run.t[1] <= at and run.step then turn = run.step + 1 end
  end
  return turn
end

-- What the agent's sandbox was refused, when it had a list of what it may reach.
local function network_of(ro)
  local sb = ro.sandbox
  local traffic = sb and sb:traffic()
  if not traffic then return nil end
  local runs, denied = {}, json.array {}
  for i, text in ipairs(ro.rec._runs:all()) do runs[i] = json.decode(text) or {} end
  for i, denial in ipairs(sb:denied()) do
    denial.turn = turn_at(runs, denial.at)
    denied[i] = denial
  end
  return { allow = json.array(ro.plan.spec.network.allow), traffic = traffic, denied = denied }
end

--- The result for record.finish.
---@param ro agentbox.Rollout
---@return agentbox.RolloutResult
function M.of(ro)
  local plan, stop = ro.plan, ro.stop
  local steps = ro.ctx and ro.ctx.budget.turns or 0
  local out = outcome.of(stop, ro.verdict, steps, plan.config)
  local kind, image_id = plan.spec.backend, nil
  if ro.sandbox then kind, image_id = ro.sandbox.kind, ro.sandbox.image_id end
  return {
    status = out.status, final_status = out.final_status,
    stop = { reason = stop.reason, class = out.class, detail = stop.detail },
    outcome = out.raw, reward = reward_of(ro, out), verify = verify_part(ro.verdict), timing = timing_of(ro),
    sandbox = { kind = kind, id = plan.spec.name, image = plan.spec.image, image_id = image_id,
      conform = require "agentbox.conform.verdict".of(kind or "native"), network = network_of(ro) },
    error = out.final_status == "error" and (stop.detail or stop.reason) or nil,
    metadata = metadata_of(ro), tamper = ro.tamper, artifacts = ro.artifacts,
  }
end

return M
