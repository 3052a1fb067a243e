--- AgentBox's trajectory JSON (agentbox-rl 0.2.1): its keys in its order, two-space indent.
---
--- Where that program wrote what was not so, the truth stands: `is_error` says whether the tool failed,
--- `duration_s` is measured, `reward` is null when the rollout was not scored, token counts are null when the server
--- told none.
local choice = require "agentbox.formats._choice"
local json = require "agentbox.json"
local outcome = require "agentbox.outcome"
local time = require "agentbox.sys.time"

local M = {
  api = 1,
  name = "agentbox",
  summary = "AgentBox's trajectory JSON, one document per rollout",
  extension = ".json",
  layout = { indent = 2 },
  never = { "requests", "token planes beside the choice", "sandbox and modules" },
}

local CAP = 16384

-- AgentBox knows four stop reasons; they follow from the status that a stop leads to without a verdict.
local STOP_REASONS = { failed = "final_answer", max_steps = "max_steps", timeout = "timeout", error = "error" }

local function stop_reason(t)
  local rule = outcome.STOPS[t.stop_reason]
  return rule and STOP_REASONS[rule.status] or "error"
end

local function null(value)
  if value == nil then return json.null end
  return value
end

local function float(value)
  return type(value) == "number" and value + 0.0 or json.null
end

local function object(keys, values)
  local out = json.object {}
  for _, key in ipairs(keys) do out[key] = null(values[key]) end
  return out
end

local function tool_calls_of(message)
  local calls = message.tool_calls
  if not calls or calls == json.null or #calls == 0 then return json.null end
  local out = json.array {}
  for i, call in ipairs(calls) do
    out[i] = object({ "id", "type", "function" }, {
      id = call.id, type = "function",
      ["function"] = object({ "name", "arguments" }, call["function"]),
    })
  end
  return out
end

local function reasoning_of(message)
  for _, name in ipairs { "reasoning_content", "reasoning" } do
    if type(message[name]) == "string" then return message[name] end
  end
end

-- AgentBox's content is a string or null; the text of content parts is joined.
local function content_of(message, lost)
  local content = message.content
  if type(content) ~= "table" or content == json.null then return content end
  lost "content parts other than text"
  return require("agentbox.traj").text(message)
end

local function name_of(t, step)
  local run = step.node.r and t.line.tool_runs[step.node.r + 1]
  return step.message.name or run and run.name
end

local function message_of(t, step, lost)
  local message = step.message
  return object({ "role", "content", "tool_calls", "tool_call_id", "name", "reasoning_content", "raw" }, {
    role = message.role, content = content_of(message, lost), tool_calls = tool_calls_of(message),
    tool_call_id = message.tool_call_id, name = name_of(t, step), reasoning_content = reasoning_of(message),
    raw = message.role == "assistant" and choice.of(t, step.node) or nil,
  })
end

-- Reads messages of nodes, each once: an assistant's is looked at for every one of its calls.
local function reader()
  local known = {}
  return function(node)
    local message = known[node]
    if not message then
      message = choice.message(node)
      known[node] = message
    end
    return message
  end
end

-- The tool call that a run answered, from the assistant message before its tool message.
local function request_of(t, run, read)
  local nodes = t.line.nodes
  local node = run.node and run.node ~= json.null and nodes[run.node + 1]
  if not node then return nil end
  local at = node.p
  while at and at ~= json.null do
    local owner = nodes[at + 1]
    local message = owner.o ~= "tool" and read(owner)
    if message and message.role == "assistant" then
      local calls = message.tool_calls
      return calls and calls ~= json.null and calls[run.slot + 1] or nil, read(node)
    end
    at = owner.p
  end
end

local function arguments_of(text)
  local value = json.decode(text)
  if value == nil then return json.object({ _raw = text }) end
  return json.is_object(value) and value or json.object {}
end

local function record_of(t, run, read)
  local call, answer = request_of(t, run, read)
  local arguments = call and arguments_of(call["function"].arguments) or choice.plain(run.args)
  local started = run.t and run.t ~= json.null and run.t
  return object({ "step", "tool_call_id", "name", "arguments", "result", "is_error", "duration_s" }, {
    step = run.step, tool_call_id = run.call_id or call and call.id or "", name = run.name,
    arguments = type(arguments) == "table" and arguments or json.object {},
    result = answer and require("agentbox.traj").text(answer) or choice.plain(run.result) or "",
    is_error = run.is_error, duration_s = float(started and started[2] - started[1] or 0),
  })
end

local METRICS = {
  "steps", "tool_calls", "model_calls", "prompt_tokens", "completion_tokens", "total_tokens", "duration_s",
  "sandbox_create_s", "verify_s", "seed_s",
}

--- AgentBox's counters.
---@param t agentbox.Traj
---@return table
function M.metrics(t)
  local metrics, out = t.metrics, json.object {}
  for i, key in ipairs(METRICS) do
    local value = metrics[key]
    if i <= 3 then value = value or 0 elseif i >= 7 then value = float(value) end
    out[key] = null(value)
  end
  if out.duration_s == json.null then out.duration_s = 0.0 end
  return out
end

local function cap(text)
  return require("agentbox.text").cut(text or "", CAP)
end

local function tool_names(t)
  local names = json.array {}
  for _, tool in ipairs(t.tools or {}) do
    local fn = choice.plain(tool["function"])
    names[#names + 1] = fn and choice.plain(fn.name)
  end
  return names
end

--- The keys that AgentBox writes, then whatever else the rollout's metadata holds.
---@param t agentbox.Traj
---@return table
function M.metadata(t)
  local out, verify = json.object {}, t.verify
  out.task_metadata = null(t.task.metadata or json.object {})
  if verify then
    out.verify_exit_code = null(verify.exit_code)
    out.verify_command = null(verify.command)
    out.verify_success = null(verify.success)
    out.verify_duration_s = float(verify.duration_s)
    out.verify_stdout = cap(choice.plain(verify.stdout))
    out.verify_stderr = cap(choice.plain(verify.stderr))
    out.stop_reason = stop_reason(t)
    out.tools_available = tool_names(t)
  end
  if not t.scored then out.scored, out.failure_class = false, null(t.failure_class) end
  for key, value in pairs(t.metadata) do
    if out[key] == nil then out[key] = value end
  end
  return out
end

-- As the reference prints times: no fraction when there is none.
local function iso(seconds)
  return (time.iso(seconds):gsub("%.000000Z$", "Z"))
end

--- Turns a trajectory into AgentBox's document.
---@param t agentbox.Traj
---@return table doc
---@return string[] losses   # what it has no place for
function M.convert(t)
  local line, losses, told = t.line, {}, {}
  local function lost(what)
    if not told[what] then told[what], losses[#losses + 1] = true, what end
  end
  local doc = json.object {}
  doc.task_id = t.task_id
  doc.run_id = t.run_id
  local path = t:path()
  doc.messages = json.array {}
  for i, step in ipairs(path) do doc.messages[i] = message_of(t, step, lost) end
  doc.tool_call_records = json.array {}
  local read = reader()
  for i, run in ipairs(line.tool_runs) do doc.tool_call_records[i] = record_of(t, run, read) end
  doc.reward = t.scored and float(t.reward) or json.null
  doc.final_status = t.final_status
  doc.metrics = M.metrics(t)
  doc.metadata = M.metadata(t)
  doc.error = null(t.error)
  doc.model = null(line.policy.model)
  doc.tool_mode = null(line.tool_mode)
  doc.tools = null(t.tools)
  doc.created_at = iso(line.started)
  doc.finished_at = line.finished and line.finished ~= json.null and iso(line.finished) or json.null
  if #path < #line.nodes then lost "branches beside the main thread" end
  if choice.any(line.calls, "error") then lost "calls that failed" end
  return doc, losses
end

return M
