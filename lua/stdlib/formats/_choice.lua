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

--- A field that may be JSON text or null, as a Lua value.
---@type fun(field: any): any
M.plain = json.plain

--- The message of a node.
---@param node table
---@return agentbox.Message
function M.message(node)
  return M.plain(node.m)
end

--- The call that a sampled node came of.
---@param t agentbox.Traj
---@param node table
---@return table? call
function M.call(t, node)
  return node.c and node.c ~= json.null and t.line.calls[node.c + 1] or nil
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
  return list and list[1], response
end

local PLANES = { raw = { "prompt", "out", "lp" } }

--- The token evidence of all calls: for each a table with its `tokens`, as tokens.lua wants calls.
---@param t agentbox.Traj
---@return { i: integer, tokens: table? }[]
function M.evidence(t)
  local calls, list = t.call_columns, {}
  for i = 1, calls.n do
    local text = calls.tokens[i]
    list[i] = { i = i - 1, tokens = text and json.decode(text, PLANES) }
  end
  return list
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
---@param norm string?
---@param given? any     # the choice's own
---@return string?
function M.finish(norm, given)
  if given and FINISH[given] then return given end
  return norm and FINISH[norm] and norm or nil
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
  return json.encode(out)
end

local prompt_ids_of = sys.pick { "&prompt_token_ids" }

--- Puts a call's token ids and log-probs on a choice, where the server's own are not there yet.
---@param evidence table[]                 # of all calls
---@param i integer                        # the call, from 1
---@param out table<string, string>        # JSON texts by name
---@param response? string                 # the text that the choice stands in
---@param memo table                       # one for all calls
---@return boolean added   # false: the call has none
function M.add_tokens(evidence, i, out, response, memo)
  local call = evidence[i]
  if not tokens.is_rl_grade(call) then return false end
  if not out.logprobs or out.logprobs == "null" then out.logprobs = logprobs_of(tokens.unpack(evidence, call)) end
  out.prompt_token_ids = out.prompt_token_ids or response and prompt_ids_of(response)
    or "[" .. tokens.prompt_text(evidence, call, memo) .. "]"
  out.token_ids = out.token_ids or tokens.text(call.tokens.out)
  return true
end

--- Whether openai's types know a finish reason.
---@param reason any
---@return boolean
function M.knows(reason)
  return reason ~= nil and FINISH[reason] == true
end

return M
