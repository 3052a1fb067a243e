--- Choices of recorded responses, shared by the formats. A choice is an element of `choices` in OpenAI's
--- chat completion object (OpenAI API specification of 2025); log-probs and token ids stay JSON text, unless
--- the server broke its reply into lines, which a line of JSON cannot hold.
local json = require "agentbox.json"
local sys = require "agentbox.sys.json"
local tokens = require "agentbox.record.tokens"

local M = {}

-- What openai.types.chat.chat_completion.Choice accepts.
local FINISH = { stop = true, length = true, tool_calls = true, content_filter = true, function_call = true }

--- What an export says of calls without token ids.
M.NO_TOKENS = "token ids, which the server did not send for every call"

local AS_TEXT = { raw = { "logprobs", "token_ids", "prompt_token_ids", "prompt_logprobs" } }

--- A field that may be JSON text or null, as a Lua value.
---@type fun(field: any): any
M.plain = json.plain

--- The message of a node.
---@param node table
---@return agentbox.Message
function M.message(node)
  return M.plain(node.m)
end

--- Whether any call has a value under `name`.
---@param calls table[]
---@param name string
---@return boolean
function M.any(calls, name)
  for _, call in ipairs(calls) do
    if call[name] ~= nil and call[name] ~= json.null then return true end
  end
  return false
end

--- The call that a sampled node came of.
---@param t agentbox.Traj
---@param node table
---@return table? call
function M.call(t, node)
  return node.c and node.c ~= json.null and t.line.calls[node.c + 1] or nil
end

--- The whole response of a call as an ordered object, nil without one that is a JSON object.
---@param t agentbox.Traj
---@param call table
---@return table?
function M.response(t, call)
  local text = t:body(call, "response")
  local doc = text and json.decode(text, not text:find("\n", 1, true) and AS_TEXT or nil)
  return json.is_object(doc) and doc or nil
end

--- The choice that a sampled node came of, as the server sent it; nil when there is none on record.
---@param t agentbox.Traj
---@param node table
---@return table? choice
---@return table? response
function M.of(t, node)
  local call = M.call(t, node)
  if not call then return nil end
  if call.choice then return M.plain(call.choice) end
  local response = M.response(t, call)
  local choices = response and response.choices
  return type(choices) == "table" and choices[1] or nil, response
end

local choices_of = sys.pick { "choices" }

--- The choice that call `i` (from 1) gave, as JSON text on one line; nil when there is none on record.
---@param t agentbox.Traj
---@param i integer
---@return string? choice
---@return string? response    # the text that it stands in
function M.text(t, i)
  local own = t.call_columns.choice[i]
  if own then return own end
  local response = t:response_text(i)
  local choices = response and choices_of(response)
  local list = choices and sys.elements(choices)
  local first = list and list[1]
  if first and (first:find("\n", 1, true) or first:find("\r", 1, true)) then first = json.encode(sys.trusted(first)) end
  return first, response
end

--- Whether any call failed.
---@param t agentbox.Traj
---@return boolean
function M.failed(t)
  local calls = t.call_columns
  for i = 1, calls.n do
    if calls.error[i] then return true end
  end
  return false
end

--- The finish reason as openai's types know it; nil when they do not.
---@param call table
---@param given? any     # the choice's own
---@return string?
function M.finish(call, given)
  if FINISH[given] then return given end
  return FINISH[call.finish and call.finish.norm] and call.finish.norm or nil
end

-- Log-probs in the form that names ids, for a reply that gave the planes another way.
local function logprobs_of(planes)
  local content = json.array {}
  for i, id in ipairs(planes.out) do
    local entry = json.object {}
    entry.token = "token_id:" .. id
    entry.logprob = planes.lp[i]
    entry.bytes = json.null
    entry.top_logprobs = json.array {}
    content[i] = entry
  end
  local out = json.object {}
  out.content = content
  out.refusal = json.null
  return out
end

--- Puts a call's token ids and log-probs on a choice, where the server's own are not there yet.
---@param t agentbox.Traj
---@param call table
---@param out table       # the choice
---@param response? table
---@return boolean added   # false: the call has none
function M.add_tokens(t, call, out, response)
  if not tokens.is_rl_grade(call) then return false end
  local planes = tokens.unpack(t.line.calls, call)
  if not out.logprobs or out.logprobs == json.null then out.logprobs = logprobs_of(planes) end
  out.prompt_token_ids = out.prompt_token_ids or response and response.prompt_token_ids
    or json.array(planes.prompt or {})
  out.token_ids = out.token_ids or json.array(planes.out)
  return true
end

--- Whether openai's types know a finish reason.
---@param reason any
---@return boolean
function M.knows(reason)
  return FINISH[reason] == true
end

return M
