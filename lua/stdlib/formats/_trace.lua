--- Nodes and calls of a record as verifiers' message graph (v1, 0.4): each node with the ids that it adds to its path.
---
--- Which ids a tool's or user's message became is not known, so the whole tail of a prompt goes to the assistant's node
--- that follows it, masked. A path's nodes then give the exact prompt and output again; where a prompt does not go on from
--- the call before (a drift), the node carries no ids, and the loss report says so.
local choice = require "agentbox.formats._choice"
local json = require "agentbox.json"
local sys = require "agentbox.sys.json"
local tokens = require "agentbox.record.tokens"
local traj = require "agentbox.traj"

local M = {}

local function calls_of(message)
  local given = choice.plain(message.tool_calls)
  if not given or #given == 0 then return nil end
  local out = json.array {}
  for i, call in ipairs(given) do
    local item = json.object {}
    item.id, item.type = call.id, "function"
    item.name, item.arguments = call["function"].name, call["function"].arguments
    out[i] = item
  end
  return out
end

--- A message in verifiers' form; nil for a role that it does not know.
---@param message agentbox.Message
---@return table?
function M.message(message)
  local out, role = json.object {}, message.role
  if role == "developer" then role = "system" end
  if role ~= "system" and role ~= "user" and role ~= "assistant" and role ~= "tool" then return nil end
  out.role = role
  if role == "assistant" then
    out.content = choice.plain(message.content) and traj.text(message) or json.null
    out.reasoning_content = choice.plain(message.reasoning_content) or choice.plain(message.reasoning)
    out.tool_calls = calls_of(message)
  else
    out.content = traj.text(message)
    if role == "tool" then out.tool_call_id = message.tool_call_id or "" end
  end
  return out
end

-- The ids that a sampled node adds: the tail of its prompt, masked, and its output.
local function add_planes(call, out, lost)
  if not tokens.is_rl_grade(call) then return lost(choice.NO_TOKENS) end
  local drift = call.tokens.drift
  if drift ~= "first" and drift ~= "clean" then return lost "token ids of calls that do not go on from the one before" end
  local prompt = call.tokens.prompt
  if json.type(prompt) == "raw" and prompt:text():sub(1, 1) == "{" then prompt = prompt:decode() end
  local tail = json.is_object(prompt) and prompt.tail or json.type(prompt) == "raw" and prompt:decode() or prompt
  local given = choice.plain(call.tokens.out)
  local ids, mask = json.array(table.move(tail, 1, #tail, 1, {})), json.array {}
  table.move(given, 1, #given, #ids + 1, ids)
  for i = 1, #ids do mask[i] = i > #tail and call.trainable end
  out.token_ids, out.mask = ids, mask
  out.logprobs = call.trainable and call.tokens.lp or sys.trusted "[]"
end

--- The nodes; nil and why when a message cannot be said.
---@param t agentbox.Traj
---@param lost fun(what: string)
---@return table[]? nodes
---@return string? reason
function M.nodes(t, lost)
  local out = json.array {}
  for i, node in ipairs(t.line.nodes) do
    local item, call = json.object {}, node.o == "sampled" and choice.call(t, node)
    item.parent = choice.plain(node.p) or json.null
    item.message = M.message(choice.message(node))
    if not item.message then return nil, "a message of a role that verifiers does not know" end
    item.sampled = call and true or false
    item.timestamp = call and call.t and call.t[#call.t] or t.line.started
    if call then add_planes(call, item, lost) end
    out[i] = item
  end
  return out
end

local FINISH = { stop = true, length = true, tool_calls = true }

local function usage_of(usage)
  usage = choice.plain(usage)
  if not usage or not usage.prompt then return nil end
  local out = json.object {}
  out.prompt_tokens, out.completion_tokens = usage.prompt, usage.completion or 0
  return out
end

local function span(times)
  local out = json.object {}
  if times and times ~= json.null and #times > 0 then out.start, out["end"] = times[1] + 0.0, times[#times] + 0.0 end
  return out
end

--- The calls, failed ones too.
---@param t agentbox.Traj
---@return table[]
function M.calls(t)
  local out = json.array {}
  for i, call in ipairs(t.line.calls) do
    local item, problem = json.object {}, choice.plain(call.error)
    item.node = choice.plain(call.out)
    item.model = choice.plain(call.model) or choice.plain(t.line.policy.model)
    item.endpoint = "/chat/completions"
    item.finish_reason = call.finish and FINISH[call.finish.norm] and call.finish.norm or nil
    item.usage = usage_of(call.usage)
    item.time = span(call.t)
    if problem then
      item.error = json.object { type = "agentbox.model_server", message = type(problem) == "string" and problem or json.encode(problem) }
    end
    out[i] = item
  end
  return out
end

return M
