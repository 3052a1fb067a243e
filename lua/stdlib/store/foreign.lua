--- Reads AgentBox's trajectory JSON (agentbox-rl 0.2.1, and what this engine writes in that form) as a record, as far
--- as it carries the information: there are no requests, no token planes and no failed calls in it.
local err = require "agentbox.err"
local json = require "agentbox.json"
local line_of = require "agentbox.record.line"
local shape = require "agentbox.store.shape"
local traj = require "agentbox.traj"

local M = {}

-- final_status → our status and stop reason, where the metadata names no better one.
local ENDS = {
  success = { "completed", "final_answer" }, failed = { "completed", "final_answer" },
  timeout = { "truncated", "wall_timeout" }, max_steps = { "truncated", "max_turns" },
  error = { "failed", "model_error" },
}
local STOP_REASONS = {
  final_answer = "final_answer", max_steps = "max_turns", timeout = "wall_timeout", error = "model_error",
}

-- What an error without a reason of its own was, by whose doing it is.
local FAILED = { sandbox = "sandbox_error", verifier = "scorer_error", task = "task_error", engine = "tool_error" }

local CALL = { object = { id = "string?", ["function"] = { object = { name = "string", arguments = "string" } } } }
local MESSAGE = {
  object = {
    role = "string", content = "any", tool_calls = { list = CALL, optional = true }, tool_call_id = "string?",
    name = "string?", reasoning_content = "string?", raw = { object = {}, optional = true },
  },
}
-- A choice that does not look like one is left out.
local CHOICE = {
  object = {
    finish_reason = "string?",
    message = { object = { role = "string?", tool_calls = { list = CALL, optional = true } }, optional = true },
  },
}
local RECORD = {
  object = {
    step = "number", tool_call_id = "string", name = "string", arguments = "any", result = "string?",
    is_error = "boolean?", duration_s = "number?",
  },
}
local TOOL = { object = { ["function"] = { object = { name = "string?" }, optional = true } } }
local METRICS = { object = {}, optional = true }
for _, name in ipairs {
  "steps", "tool_calls", "model_calls", "prompt_tokens", "completion_tokens", "total_tokens", "duration_s",
  "sandbox_create_s", "verify_s", "seed_s",
} do
  METRICS.object[name] = "number?"
end
local DOCUMENT = {
  object = {
    task_id = "string", run_id = "string", final_status = "string", messages = { list = MESSAGE },
    tool_call_records = { list = RECORD, optional = true }, reward = "number?", metrics = METRICS,
    metadata = {
      object = {
        task_metadata = { object = {}, optional = true }, verify_exit_code = "number?",
        verify_command = "string?", verify_success = "boolean?", verify_duration_s = "number?",
        verify_stdout = "string?", verify_stderr = "string?", stop_reason = "string?", scored = "boolean?",
        failure_class = "string?",
      },
      optional = true,
    },
    error = "string?", model = "string?", tool_mode = "string?", created_at = "string?", finished_at = "string?",
    tools = { list = TOOL, optional = true },
  },
}

local function value_of(field)
  if field == json.null then return nil end
  return field
end

local function object(pairs_list)
  local out = json.object {}
  for i = 1, #pairs_list, 2 do out[pairs_list[i]] = pairs_list[i + 1] end
  return out
end

-- Seconds since 1970 of an ISO 8601 time in UTC.
local function unix(text)
  local y, mo, d, h, mi, s = tostring(text):match "^(%d+)-(%d+)-(%d+)T(%d+):(%d+):([%d.]+)Z?"
  if not y then return nil end
  y, mo, d = tonumber(y), tonumber(mo), tonumber(d)
  if mo <= 2 then y = y - 1 end
  local era_day = (153 * ((mo + 9) % 12) + 2) // 5 + d - 1
  local days = 365 * y + y // 4 - y // 100 + y // 400 + era_day - 719468
  return days * 86400 + tonumber(h) * 3600 + tonumber(mi) * 60 + tonumber(s)
end

local function message_of(given)
  local out = json.object {}
  out.role = given.role
  out.content = given.content
  if value_of(given.tool_calls) then out.tool_calls = given.tool_calls end
  for _, name in ipairs { "tool_call_id", "name", "reasoning_content" } do
    if value_of(given[name]) then out[name] = given[name] end
  end
  return out
end

local function call_of(index, leaf, out, raw)
  local call = object {
    "i", index, "agent", "tool_loop", "purpose", "agent", "trainable", true, "api", "chat", "leaf", leaf, "out", out,
  }
  local finish = raw and value_of(raw.finish_reason) or nil
  call.finish = object { "raw", finish or json.null, "norm", finish or "other" }
  call.choice = raw
  return call
end

local function choice_of(raw)
  return json.is_object(raw) and not shape.problem(raw, CHOICE) and raw or nil
end

local function add_messages(line, doc)
  for i, given in ipairs(doc.messages) do
    local node = object { "p", i > 1 and i - 2 or json.null, "o", given.role == "tool" and "tool" or "prompt" }
    if given.role == "assistant" then
      node.o = "sampled"
      node.c = #line.calls
      line.calls[#line.calls + 1] = call_of(#line.calls, i - 2, i - 1, choice_of(given.raw))
    end
    node.m = message_of(given)
    line.nodes[i] = node
  end
  line.leaf = #line.nodes > 0 and #line.nodes - 1 or json.null
end

local function answers(line)
  local by_id = {}
  for i, node in ipairs(line.nodes) do
    if node.o == "tool" then
      local id = node.m.tool_call_id or ""
      by_id[id] = by_id[id] or {}
      table.insert(by_id[id], i - 1)
    end
  end
  return by_id
end

local function add_runs(line, doc, started)
  local by_id, slot, step = answers(line), 0, nil
  for i, record in ipairs(value_of(doc.tool_call_records) or {}) do
    slot = record.step == step and slot + 1 or 0
    step = record.step
    local ids = by_id[record.tool_call_id]
    local node = ids and table.remove(ids, 1)
    local run = object {
      "node", node or json.null, "slot", slot, "step", step, "name", record.name, "call_id", record.tool_call_id,
      "t", json.array { started, started + (value_of(record.duration_s) or 0) }, "is_error", record.is_error == true,
    }
    if node then
      line.nodes[node + 1].r = i - 1
    else
      run.args = record.arguments
      run.result = record.result
    end
    line.tool_runs[i] = run
  end
end

local function verify_of(metadata)
  if metadata.verify_command == nil and metadata.verify_exit_code == nil then return nil end
  local out = json.object {}
  for _, name in ipairs { "success", "exit_code", "stdout", "stderr", "duration_s", "command" } do
    out[name] = value_of(metadata["verify_" .. name])
  end
  return out
end

local function reward_of(doc, metadata)
  local out, value = json.object {}, value_of(doc.reward)
  out.scored = type(value) == "number" and doc.final_status ~= "error" and metadata.scored ~= false
  out.value = out.scored and value + 0.0 or json.null
  return out
end

local function rest_of(metadata)
  local out = json.object {}
  for key, value in pairs(metadata) do
    if not key:find "^verify_" and key ~= "task_metadata" and key ~= "tools_available" and key ~= "stop_reason"
        and key ~= "scored" and key ~= "failure_class" then
      out[key] = value
    end
  end
  return out
end

local function is_finite(value)
  return type(value) ~= "number" or value == value and math.abs(value) ~= math.huge
end

local function line_from(doc)
  local metadata = value_of(doc.metadata) or json.object {}
  local ends = ENDS[doc.final_status]
  local started = unix(doc.created_at) or 0
  local line = json.object {}
  line.schema = line_of.SCHEMA
  line.run = doc.run_id
  line.id = doc.run_id
  line.attempt = 0
  line.task = object { "id", doc.task_id, "metadata", value_of(metadata.task_metadata) or json.object {} }
  line.agent = object { "name", "tool_loop" }
  line.agents = json.array { object { "name", "tool_loop" } }
  line.policy = object { "model", value_of(doc.model) or json.null }
  line.status = ends[1]
  line.final_status = doc.final_status
  line.stop = object {
    "reason", doc.final_status == "error" and FAILED[metadata.failure_class] or STOP_REASONS[metadata.stop_reason] or ends[2],
    "class", value_of(metadata.failure_class) or doc.final_status == "error" and "engine" or json.null,
    "detail", json.null,
  }
  line.reward = reward_of(doc, metadata)
  line.use = object { "rl", false, "sft", line.reward.scored, "why", json.array { "read from AgentBox's JSON" } }
  line.tool_mode = value_of(doc.tool_mode)
  line.tools = value_of(doc.tools)
  line.nodes = json.array {}
  line.calls = json.array {}
  line.leaf = json.null
  line.tool_runs = json.array {}
  add_messages(line, doc)
  add_runs(line, doc, started)
  line.verify = verify_of(metadata)
  line.started = started
  line.finished = unix(doc.finished_at) or started
  line.metrics = value_of(doc.metrics) or json.object {}
  line.metadata = rest_of(metadata)
  line.logs = json.array {}
  line.error = value_of(doc.error) or json.null
  line.errors = json.array {}
  return line
end

local function problem_of(doc)
  if not json.is_object(doc) then return "not a JSON object" end
  if doc.task_id == nil or doc.messages == nil then return "task_id or messages is missing: not a trajectory" end
  local problem = shape.problem(doc, DOCUMENT)
  if problem then return problem end
  if not ENDS[doc.final_status] then return "unknown final_status " .. doc.final_status end
  if not is_finite(doc.reward) then return "reward is not finite" end
end

--- Reads one document.
---
--- Returns nil, err (`parse`) if it is no AgentBox trajectory.
---@nodiscard
---@param text string
---@return agentbox.Traj?
---@return agentbox.Err? err
function M.read(text)
  local doc, damage = json.decode(text)
  if doc == nil then return nil, damage end
  local problem = problem_of(doc)
  if problem then return nil, err.new("parse", problem) end
  return traj.new(line_from(doc))
end

return M
