--- Puts the finished line together, in the order that docs/trajectories.md lists its members.
local artifacts = require "agentbox.record.artifacts"
local json = require "agentbox.json"
local modules = require "agentbox.record.modules"
local os_ = require "agentbox.sys.os"
local outcome = require "agentbox.outcome"
local plain = require "agentbox.record.plain"
local secret = require "agentbox.secret"
local time = require "agentbox.sys.time"
local tokens = require "agentbox.record.tokens"

local M = { SCHEMA = "agentbox.trajectory/1" }

---@class agentbox.RolloutResult
---@field status "completed"|"truncated"|"failed"|"cancelled"
---@field final_status? string        # AgentBox's word for it
---@field stop { reason: string, class?: string, detail?: string }
---@field outcome? any
---@field reward? { scored: boolean, value?: number, outcome?: any, components?: table, scorer?: table }
---@field verify? { success: boolean, exit_code?: integer, stdout?: string, stderr?: string, duration_s?: number, command?: string, report?: any }
---@field timing? table               # milliseconds by name
---@field sandbox? table
---@field error? string
---@field metadata? table
---@field metrics? table
---@field tamper? table
---@field artifacts? table

local function number(value)
  if type(value) ~= "number" or value ~= value or value == math.huge or value == -math.huge then return nil end
  return value + 0.0
end

local function reward_of(rec, result)
  local given, out = result.reward or {}, {}
  local value = given.scored ~= false and number(given.value) or nil
  out.scored = value ~= nil
  out.value = value or json.null
  local raw = given.outcome
  if raw == nil then raw = result.outcome end
  out.outcome = number(raw) or rec:_raw(raw, "outcome")
  out.components = rec:_raw(given.components, "components")
  out.scorer = rec:_raw(given.scorer, "scorer")
  if given.scored and not value then
    rec._notes[#rec._notes + 1] = "reward: the scorer returned no finite number; unscored"
  end
  return out
end

local function usage_of(calls)
  local sum, seen = {}, false
  for _, call in ipairs(calls) do
    if call.usage then
      seen = true
      for _, name in ipairs { "prompt", "completion", "total", "cached" } do
        if call.usage[name] then sum[name] = (sum[name] or 0) + call.usage[name] end
      end
    end
  end
  if not seen then return nil end
  if not sum.total and sum.prompt and sum.completion then sum.total = sum.prompt + sum.completion end
  return sum
end

local function seconds(ms)
  return ms and ms / 1000.0 or nil
end

local function metrics_of(rec, result, usage, duration_s)
  local out, timing = {}, result.timing or {}
  local model_calls = 0
  for _, call in ipairs(rec._calls) do
    if call.purpose == "agent" and not call.error then model_calls = model_calls + 1 end
  end
  out.steps = rec._next_step or 0
  out.tool_calls = #rec._runs
  out.model_calls = model_calls
  if usage then
    out.prompt_tokens = usage.prompt
    out.completion_tokens = usage.completion
    out.total_tokens = usage.total
  end
  out.duration_s = seconds(timing.total_ms) or duration_s
  out.sandbox_create_s = seconds(timing.boot_ms)
  out.seed_s = seconds(timing.seed_ms)
  out.verify_s = result.verify and result.verify.duration_s or seconds(timing.score_ms)
  for name, value in pairs(plain.copy(result.metrics or {}, "metrics", rec._notes)) do out[name] = value end
  return out
end

local function versions_of(calls)
  local low, high
  for _, call in ipairs(calls) do
    for _, segment in ipairs(call.versions or {}) do
      low, high = math.min(low or segment.v, segment.v), math.max(high or segment.v, segment.v)
    end
  end
  return low, high
end

local function policy_of(rec)
  local out, model = {}, rec._opts.model or {}
  out.model = model.name or json.null
  local low, high = versions_of(rec._calls)
  out.version_min = low
  out.version_max = high
  out.describe = rec._opts.model and rec:_raw(model, "model")
  return out
end

-- What training may do with the rollout, and why not.
local function use_of(rec, line)
  local why = json.array {}
  local function no(reason) why[#why + 1] = reason end
  local class = line.stop.class
  if not line.reward.scored then no "unscored" end
  if outcome.INFRA[class] then no("class:" .. class) end
  if line.status == "cancelled" then no "cancelled" end
  local sft = #why == 0
  local evidence, sampled = false, false
  for _, call in ipairs(line.calls) do
    if call.trainable then
      sampled = true
      if tokens.is_rl_grade(call) then
        evidence = true
        if call.tokens.drift == "unknown" then no(("call %d: drift unknown"):format(call.i)) end
        local problem = tokens.problem(call)
        if problem then no(("call %d: %s"):format(call.i, problem)) end
      elseif evidence then
        no(("call %d: no token ids from the server"):format(call.i))
      end
    end
  end
  if not evidence then no "no token ids from the server" end
  if not sampled then no "no trainable call" end
  local out = {}
  out.rl = #why == 0
  out.sft = sft and sampled and #rec._nodes > 0
  out.why = why
  return out
end

local function task_of(rec)
  local task, out = rec._opts.task, {}
  out.id = task.task_id
  out.hash = task.hash
  out.description = task.description
  out.metadata = task.metadata
  return rec:_raw(out, "task")
end

local function stop_of(stop)
  local out = {}
  out.reason = stop.reason
  out.class = stop.class or json.null
  out.detail = plain.reason(stop.detail) or json.null
  return out
end

local function errors_of(rec)
  local out = json.array {}
  for _, note in ipairs(rec._notes) do
    local entry = {}
    entry.code = "scrubbed"
    entry.msg = note
    out[#out + 1] = entry
    if #out == 100 then break end
  end
  return out
end

--- Builds the line from a recorder and the rollout's result.
---@param rec agentbox.Recorder
---@param result agentbox.RolloutResult
---@return table line
function M.build(rec, result)
  local opts, line, finished = rec._opts, json.object {}, time.now()
  line.schema = M.SCHEMA
  line.run = opts.run_id
  line.id = opts.id
  line.attempt = opts.attempt or 0
  line.group = opts.group and rec:_raw(opts.group, "group")
  line.task = task_of(rec)
  line.agent = rec:_raw(opts.agent or { name = rec._agent }, "agent")
  line.agents = json.array(table.move(rec._agents, 1, #rec._agents, 1, {}))
  line.policy = policy_of(rec)
  line.status = result.status
  line.final_status = result.final_status
  line.stop = stop_of(result.stop)
  line.reward = reward_of(rec, result)
  line.use = json.null
  line.tool_mode = opts.tool_mode
  line.seed = opts.seed
  line.tools = rec._tools and json.raw(rec._tools)
  line.nodes = json.array(rec._nodes)
  line.calls = json.array(rec._calls)
  line.leaf = rec._leaf.main or json.null
  line.tool_runs = json.array(rec._runs)
  line.verify = rec:_raw(result.verify, "verify")
  line.tamper = rec:_raw(result.tamper, "tamper")
  line.sandbox = rec:_raw(result.sandbox, "sandbox")
  line.engine = json.object { version = os_.version }
  line.started = rec._started
  line.finished = finished
  line.timing = rec:_raw(result.timing, "timing")
  line.usage = usage_of(rec._calls)
  line.metrics = metrics_of(rec, result, line.usage, finished - rec._started)
  line.metadata = rec:_raw(result.metadata, "metadata")
  line.notes = rec._extra
  line.artifacts = artifacts.keep(result.artifacts, rec._blobs)
  line.modules = rec:_raw(modules.list(rec._modules), "modules")
  line.logs = json.array(rec._logs)
  line.logs_dropped = rec._dropped > 0 and rec._dropped or nil
  line.error = plain.reason(result.error) or json.null
  line.errors = errors_of(rec)
  line.use = use_of(rec, line)
  return line
end

--- Notes a broken invariant and keeps the line away from training.
---@param line table
---@param violation { rule: integer, where: string, msg: string }
function M.add_violation(line, violation)
  local entry = {}
  entry.code = "invariant"
  entry.rule = violation.rule
  entry.msg = secret.redact(("%s: %s"):format(violation.where, violation.msg))
  line.errors[#line.errors + 1] = entry
  line.use.rl = false
  line.use.why[#line.use.why + 1] = ("invariant %d"):format(violation.rule)
end

return M
