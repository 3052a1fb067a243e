--- Rollouts for verifiers and prime-rl. `form=v1` is a line of `traces.jsonl` (verifiers 0.4): an episode with one trace, the
--- message graph and the ids that each message adds. `form=legacy` is a row of `RolloutOutput` as environments of version 0
--- saved it.
local choice = require "agentbox.formats._choice"
local columns = require "agentbox.record.columns"
local json = require "agentbox.json"
local rows = require "agentbox.formats._rows"
local steps = require "agentbox.formats._steps"
local trace = require "agentbox.formats._trace"

local M = {
  api = 1,
  name = "verifiers",
  summary = "verifiers' traces (v1), or its older rows with form=legacy",
  extension = ".jsonl",
  lines = true,
  reads = "columns",
  never = { "requests", "tool timings", "the verifier's output" },
  options = { form = { "v1", "legacy" } },
}

local STOPS = { max_turns = "max_turns", context_length = "context_length", token_budget = "max_total_tokens" }

local function stop_condition(t)
  return STOPS[t.stop_reason] or t.stop_reason
end

local function errors_of(t)
  local out = json.array {}
  if t.error or t.failure_class and t.failure_class ~= "policy" then
    local item = json.object {}
    item.type = ("agentbox.%s.%s"):format(t.failure_class or "policy", t.stop_reason)
    item.message = t.error or t.stop_reason
    out[1] = item
  end
  return out
end

-- Named rewards; null where scoring did not run.
local function rewards_of(t)
  local out = json.object {}
  out.reward = t.scored and json.object { score = t.reward + 0.0, weight = 1.0 } or json.null
  return out
end

local function metrics_of(t)
  local out = json.object {}
  for name, value in pairs(t.metrics) do
    if type(value) == "number" or type(value) == "boolean" then out[name] = value == true and 1 or value == false and 0 or value end
  end
  for name, value in pairs(t.components or {}) do
    if type(name) == "string" and type(value) == "number" then out["component_" .. name] = value end
  end
  return out
end

local function task_of(t)
  local task, out, data = t.task, json.object {}, json.object {}
  data.id, data.description = t.task_id, choice.plain(task.description)
  data.metadata = choice.plain(task.metadata)
  out.type, out.data, out.key, out.hash = "AgentBoxTask", data, t.task_id, choice.plain(task.hash)
  return out
end

local function timing_of(t)
  local timing = choice.plain(t.line.timing) or {}
  local out, at = json.object {}, t.line.started
  local function stage(name, ms)
    local span = json.object {}
    span.start, span["end"] = at, at + (choice.plain(ms) or 0) / 1000
    at = span["end"]
    out[name] = span
  end
  out.start = at
  stage("boot", timing.boot_ms)
  stage("setup", timing.seed_ms)
  stage("agent", (choice.plain(timing.model_ms) or 0) + (choice.plain(timing.tool_ms) or 0))
  stage("scoring", timing.score_ms)
  return out
end

local function tools_of(t)
  local out = json.array {}
  for i, tool in ipairs(t.tools or {}) do out[i] = tool["function"] end
  return out
end

local function trace_of(t, lost)
  local nodes, place = trace.nodes(t, lost)
  if not nodes then return nil, place end
  local out, agent = json.object {}, json.object {}
  agent.config, agent.name, agent.trainable = json.object {}, (choice.plain(t.line.agent) or {}).name or "agent", true
  out.version, out.id = 1, t.id
  out.task, out.agent = task_of(t), agent
  out.tools, out.nodes, out.calls = tools_of(t), nodes, trace.calls(t, place)
  out.rewards, out.metrics = rewards_of(t), metrics_of(t)
  out.info = json.object {}
  out.info.final_status, out.info.run = t.final_status, t.run_id
  out.is_completed, out.ok = true, t.scored
  out.stop_condition = stop_condition(t)
  out.is_timeout = t.final_status == "timeout"
  out.errors, out.timing = errors_of(t), timing_of(t)
  return out
end

local function episode_of(t, lost)
  local one, reason = trace_of(t, lost)
  if not one then return nil, reason end
  local out = json.object {}
  out.id, out.task = t.id, one.task
  out.group = json.object { id = (rows.group(t)) }
  out.ok, out.errors = t.scored, one.errors
  out.traces = json.array { one }
  return out
end

-- Phases from one moment on: what came before sampling, sampling with its tools, and the verdict.
local function legacy_timing_of(t)
  local timing, out = choice.plain(t.line.timing) or {}, json.object {}
  local at = t.line.started
  out.start_time = at
  local function phase(name, ...)
    local span, ms = json.object {}, 0
    for _, part in ipairs { ... } do ms = ms + (choice.plain(timing[part]) or 0) end
    span.start, span["end"] = at, at + ms / 1000
    at, out[name] = span["end"], span
  end
  phase("setup", "queued_ms", "boot_ms", "seed_ms")
  phase("generation", "model_ms", "tool_ms")
  phase("scoring", "score_ms")
  return out
end

local function legacy_tools_of(t)
  local out = tools_of(t)
  for i, tool in ipairs(out) do
    local fn = choice.plain(tool)
    out[i] = json.object { name = fn.name, description = choice.plain(fn.description) or "", parameters = fn.parameters or json.object {} }
  end
  return out
end

local function legacy_of(t)
  if not t.scored then return nil, "unscored, and a row must have a reward" end
  local out, path = json.object {}, columns.path(t.columns, choice.plain(t.line.leaf))
  local at = #path + 1
  for i, place in ipairs(path) do
    if t.columns.o[place] == "sampled" then at = i break end
  end
  out.example_id = rows.number(t, (rows.group(t)))
  out.prompt, out.completion = steps.messages(t, path, 1, at - 1), steps.messages(t, path, at)
  out.reward = t.reward + 0.0
  out.timing = legacy_timing_of(t)
  out.is_completed, out.is_truncated = true, t.status == "truncated"
  out.metrics = metrics_of(t)
  out.info = json.object { task_id = t.task_id, run = t.run_id, id = t.id }
  local errors = errors_of(t)
  out.error = errors[1] and json.object {
    error = errors[1].type, error_chain_repr = errors[1].type, error_chain_str = errors[1].message,
  } or json.null
  out.stop_condition = stop_condition(t)
  out.trajectory = steps.of(t)
  out.tool_defs = legacy_tools_of(t)
  return out
end

---@param t agentbox.Traj
---@param opts { form?: "v1"|"legacy" }
---@return table? doc
---@return string[] losses
---@return string? reason
function M.convert(t, opts)
  local losses, told = {}, {}
  local function lost(what)
    if not told[what] then told[what], losses[#losses + 1] = true, what end
  end
  local doc, reason
  if opts.form == "legacy" then doc, reason = legacy_of(t) else doc, reason = episode_of(t, lost) end
  if not doc then return nil, {}, reason end
  return doc, losses
end

return M
