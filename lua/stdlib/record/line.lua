--- Puts the finished line together, in the order that docs/trajectories.md lists its members.
local artifacts = require "agentbox.record.artifacts"
local json = require "agentbox.json"
local modules = require "agentbox.record.modules"
local nodes = require "agentbox.record.node"
local os_ = require "agentbox.sys.os"
local outcome = require "agentbox.outcome"
local plain = require "agentbox.record.plain"
local secret = require "agentbox.secret"
local sys = require "agentbox.sys.json"
local time = require "agentbox.sys.time"

local M = { SCHEMA = "agentbox.trajectory/1" }

local null = json.null

---@class agentbox.RolloutResult
---@field status "completed"|"truncated"|"failed"|"cancelled"
---@field final_status? string        # AgentBox's word for it
---@field stop { reason: string, class?: string, detail?: string }
---@field outcome? any
---@field reward? { scored: boolean, value?: number, outcome?: any, components?: table, agents?: table<string, number>, scorer?: table }
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

-- Rewards of single speakers; one of nobody is noted, not kept.
local function agents_reward(rec, given)
  local out
  for name, value in pairs(given or {}) do
    if rec:has_agent(name) then
      out = out or {}
      out[name] = number(value)
    else
      rec._notes[#rec._notes + 1] = ("reward: no speaker is called %s"):format(tostring(name))
    end
  end
  return out
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
  out.agents = value and rec:_raw(agents_reward(rec, given.agents), "reward.agents")
  out.scorer = rec:_raw(given.scorer, "scorer")
  if given.scored and not value then
    rec._notes[#rec._notes + 1] = "reward: the scorer returned no finite number; unscored"
  end
  return out
end

local function usage_of(sum)
  if not sum then return nil end
  if not sum.total and sum.prompt and sum.completion then sum.total = sum.prompt + sum.completion end
  return sum
end

local function seconds(ms)
  return ms and ms / 1000.0 or nil
end

local function metrics_of(rec, result, usage, duration_s)
  local out, timing = {}, result.timing or {}
  out.steps = rec._sums.next_step
  out.tool_calls = #rec._runs
  out.model_calls = rec._sums.model_calls
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

local function policy_of(rec)
  local out, model = {}, rec._opts.model or {}
  out.model = model.name or json.null
  out.version_min = rec._sums.low
  out.version_max = rec._sums.high
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
  local sums = rec._sums
  for _, reason in ipairs(sums.why) do no(reason) end
  if not sums.evidence then no "no token ids from the server" end
  if not sums.sampled then no "no trainable call" end
  local out = {}
  out.rl = #why == 0
  out.sft = sft and sums.sampled and #rec._nodes > 0
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

-- The speakers; of those beside the first, the last node of their thread.
local function agents_of(rec)
  local out = json.array {}
  local function add(entry)
    out[#out + 1] = { name = entry.name, model = entry.model, trainable = entry.trainable, leaf = rec:leaf_of(entry.name) }
  end
  add(rec._first)
  for _, entry in ipairs(rec._agents or {}) do add(entry) end
  return out
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

-- What stays text when somebody looks at a call.
local CALLS = { raw = { "params", "body", "sampling", "notes", "prompt", "out", "lp" } }
local NODES, RUNS = { raw = { "m" } }, { raw = { "args" } }

local put_node = sys.row({ "c", "m", "o", "p", "r", "scrubbed" }, { m = true })

local function nodes_of(rec)
  local texts, list, scrubbed = rec._m:all(), rec._nodes, rec._scrubbed
  for n = 1, #texts do
    local origin, parent, call, run = nodes.parts(list[n])
    texts[n] = put_node(call, texts[n], origin, parent or null, run, scrubbed and scrubbed[n])
  end
  return sys.texts(texts, NODES)
end

-- The members of a line in their order, of which it has those that apply.
local ORDER = {
  "schema", "run", "id", "attempt", "group", "task", "agent", "agents", "policy", "status", "final_status", "stop",
  "reward", "use", "tool_mode", "seed", "tools", "nodes", "calls", "leaf", "tool_runs", "verify", "tamper", "sandbox",
  "engine", "started", "finished", "timing", "usage", "metrics", "metadata", "notes", "artifacts", "modules", "logs",
  "logs_dropped", "error", "errors",
}

--- Builds the line from a recorder and the rollout's result.
---@param rec agentbox.Recorder
---@param result agentbox.RolloutResult
---@return table line
function M.build(rec, result)
  local opts, finished, usage = rec._opts, time.now(), usage_of(rec._sums.usage)
  local line = {
    schema = M.SCHEMA, run = opts.run_id, id = opts.id, attempt = opts.attempt or 0,
    group = opts.group and rec:_raw(opts.group, "group"), task = task_of(rec),
    agent = rec:_raw({ name = rec._first.name }, "agent"), agents = agents_of(rec), policy = policy_of(rec),
    status = result.status, final_status = result.final_status, stop = stop_of(result.stop),
    reward = reward_of(rec, result), use = null,
    tool_mode = opts.tool_mode, seed = opts.seed, tools = rec._tools and sys.trusted(rec._tools),
    nodes = nodes_of(rec), calls = sys.texts(rec._calls:all(), CALLS), leaf = rec._leaf or null,
    tool_runs = sys.texts(rec._runs:all(), RUNS),
    verify = rec:_raw(result.verify, "verify"), tamper = rec:_raw(result.tamper, "tamper"),
    sandbox = rec:_raw(result.sandbox, "sandbox"), engine = json.object { version = os_.version },
    started = rec._started, finished = finished, timing = rec:_raw(result.timing, "timing"), usage = usage,
    metrics = metrics_of(rec, result, usage, finished - rec._started), metadata = rec:_raw(result.metadata, "metadata"),
    notes = rec._extra or json.object {}, artifacts = artifacts.keep(result.artifacts, rec._blobs),
    modules = rec:_raw(modules.list(rec._modules), "modules"),
    logs = json.array(rec._logs or {}), logs_dropped = rec._dropped,
    error = plain.reason(result.error) or null, errors = errors_of(rec),
  }
  line.use = use_of(rec, line)
  return json.object(line, ORDER)
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
