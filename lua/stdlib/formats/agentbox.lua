--- AgentBox's trajectory JSON (agentbox-rl 0.2.1): its keys in its order, two-space indent.
---
--- Where that program wrote what was not so, the truth stands: `is_error` says whether the tool failed,
--- `duration_s` is measured, `reward` is null when the rollout was not scored, token counts are null when the server
--- told none.
local chat = require "agentbox.formats._chat"
local choice = require "agentbox.formats._choice"
local columns = require "agentbox.record.columns"
local document = require "agentbox.formats._document"
local json = require "agentbox.json"
local lists = require "agentbox.sys.list"
local outcome = require "agentbox.outcome"
local sys = require "agentbox.sys.json"
local time = require "agentbox.sys.time"

local M = {
  api = 1,
  name = "agentbox",
  summary = "AgentBox's trajectory JSON, one document per rollout",
  extension = ".json",
  reads = "columns",
  layout = { indent = 2 },
  never = { "requests", "token planes beside the choice", "sandbox and modules" },
}

local CAP = 16384

local new_document = sys.shape("task_id", "run_id", "messages", "tool_call_records", "reward", "final_status", "metrics", "metadata",
  "error", "model", "tool_mode", "tools", "created_at", "finished_at")

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

-- AgentBox's objects have all their members.
local put_messages = sys.rows({ "role", "content", "tool_calls", "tool_call_id", "name", "reasoning_content", "raw" },
  { content = true, tool_calls = true, tool_call_id = true, name = true, raw = true }, true)
local put_records = sys.rows({ "step", "tool_call_id", "name", "arguments", "result", "is_error", "duration_s" },
  { tool_call_id = true, name = true, arguments = true, result = true, is_error = true }, true)
local tool_calls_of = sys.recast({ "id", { "type", '"function"' }, { "function", { "name", "arguments" } } },
  { "&id", "&function.name", "&function.arguments" }, true)
local calls_of = sys.sheet { id = "&id", text = "$function.arguments" }

-- AgentBox's content is a string or null: the text of content parts, which is joined, by the places of their nodes.
local function joined_parts(nodes, path, lost)
  local kind, parts = nodes.kind, {}
  for _, at in ipairs(path) do
    if kind[at] and kind[at] ~= "string" and kind[at] ~= "null" then
      lost "content parts other than text"
      parts[at] = chat.text(nodes.content[at])
    end
  end
  return parts
end

local function messages_of(t, path, lost)
  local nodes, runs = t.columns, t.run_columns
  local role, name, thought, call, wanted, calls = lists.new(6, #path)
  local all_calls = tool_calls_of(sys.cells(nodes, "calls"))
  local roles, names, thoughts, reasonings, of_run, of_call = nodes.role, nodes.name, nodes.thought, nodes.reasoning, nodes.r, nodes.c
  for i, at in ipairs(path) do
    local run = of_run[at]
    role[i], calls[i] = roles[at], all_calls[at]
    name[i] = names[at] or run and runs.name[run + 1]
    thought[i] = thoughts[at] or reasonings[at]
    if of_call[at] and role[i] == "assistant" then call[i], wanted[of_call[at] + 1] = of_call[at] + 1, true end
  end
  local raw = choice.cells(choice.given(t, wanted), call)
  local content = sys.cells(nodes, "content", joined_parts(nodes, path, lost), path)
  return sys.later(put_messages, 1, #path, role, content, calls, sys.cells(nodes, "id", nil, path), name, thought, raw)
end

-- Where the assistant's message stands that the result at a node answers, for each run; false when there is none.
local function owners_of(t)
  local nodes, of, owners = t.columns, t.run_columns.node, {}
  local p, o, roles = nodes.p, nodes.o, nodes.role
  for i = 1, t.run_columns.n do
    local at = of[i] and p[of[i] + 1]
    while at and (o[at + 1] == "tool" or roles[at + 1] ~= "assistant") do at = p[at + 1] end
    owners[i] = at and at + 1
  end
  return owners
end

-- What a model wrote as arguments, as JSON text on one line: that of an object.
local function arguments_of(text)
  if not text or not sys.valid(text) then return json.encode(json.object { _raw = text }) end
  if text:byte() ~= 123 and not text:find "^%s*{" then return "{}" end
  return (text:find("\n", 1, true) or text:find("\r", 1, true)) and json.encode(sys.trusted(text)) or text
end

-- The results of the runs: those of the nodes `at`, or what `own` has for a place behind the nodes.
local function results_of(nodes, at, own)
  local kind = nodes.kind
  for _, place in ipairs(at) do
    if place <= nodes.n and kind[place] ~= "string" then own[place] = chat.text(nodes.content[place]) end
  end
  return sys.cells(nodes, "content", own, at)
end

local function records_of(t)
  local runs, nodes = t.run_columns, t.columns
  local calls, owners = calls_of(sys.cells(nodes, "calls")), owners_of(t)
  local from, ids, texts, own_ids = calls.from, calls.id, calls.text, runs.call_id
  local node, slots, args, own, began, ended = runs.node, runs.slot, runs.args, runs.result, runs.began, runs.ended
  local id, arguments, at, duration = lists.new(4, runs.n)
  local result = {}
  for i = 1, runs.n do
    local owner, slot = owners[i], slots[i]
    local first = owner and from[owner]
    slot = first and slot and slot < from[owner + 1] - first and first + slot
    id[i] = own_ids[i] or slot and ids[slot] or '""'
    if slot then arguments[i] = arguments_of(texts[slot])
    else arguments[i] = args[i] and args[i]:byte() == 123 and args[i] or "{}" end
    at[i] = owner and node[i] + 1 or nodes.n + i
    if not owner then result[at[i]] = own[i] and own[i] ~= "null" and own[i] or '""' end
    duration[i] = began[i] and ended[i] and ended[i] - began[i] + 0.0 or 0.0
  end
  return sys.later(put_records, 1, runs.n, runs.step, id, runs.name, arguments, results_of(nodes, at, result), runs.is_error,
    duration)
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

-- A run's rollouts mostly have the same tools: their names are those of the list before.
local last_tools, last_names

-- Anything may stand in a record that others made.
local function member(value, key)
  if type(value) == "table" then return choice.plain(value[key]) end
end

local function names_of(tools)
  local names = json.array {}
  for _, tool in ipairs(tools or {}) do names[#names + 1] = member(member(tool, "function"), "name") end
  return names
end

local function tool_names(t)
  local tools = t.line.tools
  if json.type(tools) ~= "raw" then return names_of(t.tools) end
  local text = tools:text()
  if text ~= last_tools then last_tools, last_names = text, names_of(t.tools) end
  return json.array(table.move(last_names, 1, #last_names, 1, {}))
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
  local path = columns.path(t.columns, choice.plain(line.leaf))
  if #path < t.columns.n then lost "branches beside the main thread" end
  local doc = new_document(
    t.task_id, t.run_id, messages_of(t, path, lost), records_of(t), t.scored and float(t.reward) or json.null, t.final_status,
    M.metrics(t), M.metadata(t), null(t.error), null(line.policy.model), null(line.tool_mode), null(line.tools), iso(line.started),
    line.finished and line.finished ~= json.null and iso(line.finished) or json.null)
  if choice.failed(t) then lost "calls that failed" end
  return doc, losses
end

--- The document as AgentBox writes it to a file.
---@param t agentbox.Traj
---@return string
function M.text(t)
  return document.text(M.convert(t), M.layout)
end

return M
