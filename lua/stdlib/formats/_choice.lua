--- Choices of recorded responses, shared by the formats. A choice is an element of `choices` in OpenAI's
--- chat completion object (OpenAI API specification of 2025); log-probs and token ids stay JSON text, unless
--- the server broke its reply into lines, which a line of JSON cannot hold.
local json = require "agentbox.json"
local lists = require "agentbox.sys.list"
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

-- What stands for calls none of which has token ids.
local NONE = setmetatable({}, { __index = function() return {} end })

local first_of = sys.sheet { choice = "&choices.[1]" }

--- The same of several calls: columns of choices and of responses, where they were looked at.
---@param t agentbox.Traj
---@param wanted table<integer, any>    # the calls
---@return table<integer, string> choices
---@return table<integer, string> responses
function M.texts(t, wanted)
  local own, choices, responses, texts, calls = t.call_columns.choice, lists.new(4, t.call_columns.n)
  for i = 1, t.call_columns.n do
    choices[i] = wanted[i] and own[i] or nil
    local text = wanted[i] and not choices[i] and t:response_text(i)
    if text and text:byte() == 123 then -- "{"
      texts[#texts + 1], calls[#calls + 1], responses[i] = text, i, text
    end
  end
  local found = first_of(texts).choice
  for k, i in ipairs(calls) do choices[i] = found[k] end
  return choices, responses
end

--- The calls with their token ids, for those formats that go without them where there are none.
---@param t agentbox.Traj
---@return agentbox.PlaneCall[]
function M.evidence(t)
  return next(t.call_columns.tokens) and t.planes or NONE
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
  local content, lp = json.array {}, json.decode(planes.lp)
  for i, id in ipairs(json.decode(planes.out)) do
    local entry = json.object {}
    entry.token = "token_id:" .. id
    entry.logprob = lp[i]
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

-- Servers say null for the ids that they give another way.
local function given(text) return text ~= "null" and text or nil end

--- Puts a call's token ids and log-probs on a choice, where the server's own are not there yet.
---@param evidence agentbox.PlaneCall[]     # of all calls
---@param i integer                        # the call, from 1
---@param out table<string, string>        # JSON texts by name
---@param response? string                 # the text that the choice stands in
---@param memo table                       # one for all calls
---@return boolean added   # false: the call has none
function M.add_tokens(evidence, i, out, response, memo)
  local call = evidence[i]
  if not tokens.is_rl_grade(call) then return false end
  out.logprobs = given(out.logprobs) or logprobs_of(call.tokens)
  out.prompt_token_ids = given(out.prompt_token_ids) or given(response and prompt_ids_of(response))
    or tokens.has_prompt(call) and "[" .. tokens.prompt_text(evidence, call, memo) .. "]" or "null"
  out.token_ids = given(out.token_ids) or tokens.text(call.tokens.out)
  return true
end

--- Whether openai's types know a finish reason.
---@param reason any
---@return boolean
function M.knows(reason)
  return reason ~= nil and FINISH[reason] == true
end

return M
