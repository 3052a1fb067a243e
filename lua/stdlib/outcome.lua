--- outcome.lua: the one table from which status, score and reward of a rollout follow.
---
--- A verdict and a stop reason are two facts and are kept apart. What they mean together:
---
---     infrastructure failed (class sandbox, model_server, engine, verifier, task) → error, unscored, no reward
---     verifier said yes                                                          → success, whatever the stop was
---     verifier said no                                                           → by the stop reason, below
local M = {}

---@class agentbox.StopRule
---@field class? string      # whose doing the stop is; nil when the agent simply finished
---@field status string      # AgentBox's status when the verifier did not say yes
---@field record string      # the record's status

local function rule(class, status, record) return { class = class, status = status, record = record } end

--- Every stop reason.
---@type table<string, agentbox.StopRule>
M.STOPS = {
  final_answer = rule(nil, "failed", "completed"),
  tool_stop = rule(nil, "failed", "completed"),
  env_done = rule(nil, "failed", "completed"),
  max_turns = rule("policy", "max_steps", "truncated"),
  token_budget = rule("policy", "failed", "truncated"),
  context_length = rule("policy", "failed", "truncated"),
  call_length = rule("policy", "failed", "truncated"),
  wall_timeout = rule("policy", "timeout", "truncated"),
  idle_timeout = rule("policy", "timeout", "truncated"),
  no_progress = rule("policy", "failed", "truncated"),
  model_abort = rule("model_server", "error", "failed"),
  model_error = rule("model_server", "error", "failed"),
  tool_error = rule("engine", "error", "failed"),
  sandbox_error = rule("sandbox", "error", "failed"),
  scorer_error = rule("verifier", "error", "failed"),
  task_error = rule("task", "error", "failed"),
  shutdown = rule("engine", "error", "cancelled"),
  user_cancel = rule("engine", "error", "cancelled"),
}

--- Classes that say nothing about the policy; they never get a number.
M.INFRA = { task = true, verifier = true, sandbox = true, model_server = true, engine = true }

---@class agentbox.Stop
---@field reason string
---@field class? string
---@field detail? string

--- Makes a stop; an unknown reason (a custom agent's own word) counts as an answer and keeps its word as detail.
---@param reason string
---@param detail? any       # text or an error value, whose class wins
---@return agentbox.Stop
function M.stop(reason, detail)
  local known = M.STOPS[reason]
  if not known then return { reason = "env_done", detail = tostring(reason) } end
  local class = known.class
  if type(detail) == "table" then
    class = detail.class or class
    detail = detail.msg or tostring(detail)
  end
  return { reason = reason, class = class, detail = detail and tostring(detail) or nil }
end

-- Whether it was the server that used up the episode's time, by a call that was unanswered at its end: it never answered
-- any, it had failed this one before, or it took longer than everything else together. An answer that had begun to come is
-- the model's own length.
local function server_was_late(problem, budget)
  if budget.model_calls == 0 or (problem.tries or 1) > 1 then return true end
  local had_begun = problem.times and problem.times.first
  return not had_begun and (problem.waited_s or 0) > budget.total_s / 2
end

--- The stop reason for a model call that failed.
---@param problem agentbox.Err
---@param budget agentbox.Budget
---@return "context_length"|"wall_timeout"|"model_error"
function M.of_call(problem, budget)
  if problem.code == "context" then return "context_length" end
  local at_end = problem.code == "timeout" and budget:left_s() <= 0.1
  if at_end and not server_was_late(problem, budget) then return "wall_timeout" end
  return "model_error"
end

--- Whether the work may be verified at all.
---@param stop agentbox.Stop
---@return boolean
function M.verifiable(stop) return not (stop.class and M.INFRA[stop.class]) end

local function penalty(stop, steps, penalties)
  local total = (penalties.step_penalty or 0) * math.max(0, steps)
  local status = M.STOPS[stop.reason].status
  if status == "timeout" then total = total + (penalties.timeout_penalty or 0) end
  if status == "max_steps" then total = total + (penalties.max_steps_penalty or 0) end
  return total
end

---@class agentbox.Outcome
---@field final_status "success"|"failed"|"timeout"|"error"|"max_steps"
---@field status "completed"|"truncated"|"failed"|"cancelled"
---@field class? string      # whose doing it is that the rollout is no success
---@field scored boolean
---@field reward? number     # nil unless scored
---@field raw? number        # the verifier's number before penalties

--- The outcome of a rollout.
---@param stop agentbox.Stop
---@param verdict? { success: boolean, reward: number }   # nil: not verified
---@param steps integer
---@param penalties? { step_penalty?: number, timeout_penalty?: number, max_steps_penalty?: number }
---@return agentbox.Outcome
function M.of(stop, verdict, steps, penalties)
  local known = M.STOPS[stop.reason]
  if not verdict or not M.verifiable(stop) then
    return { final_status = "error", status = known.record, class = stop.class or "engine", scored = false }
  end
  local reward = verdict.reward - penalty(stop, steps, penalties or {})
  local success = verdict.success
  local status = known.status == "error" and "failed" or known.status
  return {
    final_status = success and "success" or status, status = known.record == "failed" and "truncated" or known.record,
    class = not success and (stop.class or "policy") or nil, scored = true, reward = reward, raw = verdict.reward,
  }
end

return M
