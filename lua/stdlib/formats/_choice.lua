--- Choices of recorded responses, shared by the formats. A choice is an element of `choices` in OpenAI's
--- chat completion object (OpenAI API specification of 2025); log-probs and token ids stay JSON text, unless
--- the server broke its reply into lines, which a line of JSON cannot hold.
local hash = require "agentbox.sys.hash"
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

-- What stands for calls none of which has token ids.
local NONE = setmetatable({}, { __index = function() return {} end })

local read_apart = sys.sheet { given = "&choices.[1]", prompt_ids = "&prompt_token_ids" }

---@class agentbox.GivenChoices
---@field calls agentbox.CallColumns
---@field here table<integer, boolean>          # whose response stands in the record, and is the one that its digest names
---@field instead table<integer, string>        # the choices of all others that were wanted, as JSON text
---@field prompt_ids table<integer, string>     # what their responses name

--- The choices that calls gave, as JSON text on one line: where they stand in the record they are left there.
---@param t agentbox.Traj
---@param wanted table<integer, any>    # the calls, from 1
---@return agentbox.GivenChoices
function M.given(t, wanted)
  local calls, instead, prompt_ids, texts, places = t.call_columns, {}, {}, {}, {}
  local here, own = hash.named(sys.cells(calls, "response_body"), sys.cells(calls, "response_hash"), wanted), calls.choice
  for i = 1, calls.n do
    if wanted[i] and (own[i] or not here[i]) then
      local text = not own[i] and t:response_text(i)
      here[i], instead[i] = false, own[i] or "null"
      if text and text:byte() == 123 then texts[#texts + 1], places[#places + 1] = text, i end -- "{"
    end
  end
  if #texts > 0 then
    local found = read_apart(texts)
    for k, i in ipairs(places) do instead[i], prompt_ids[i] = found.given[k] or "null", found.prompt_ids[k] end
  end
  return { calls = calls, here = here, instead = instead, prompt_ids = prompt_ids }
end

--- The choice of a call, as JSON text; nil when there is none.
---@param given agentbox.GivenChoices
---@param i integer
---@return string?
function M.text(given, i)
  local text = given.here[i] and given.calls.given[i] or given.instead[i]
  return text ~= "null" and text or nil
end

--- The choices as cells, element k that of call `at[k]`.
---@param given agentbox.GivenChoices
---@param at table<integer, integer>
---@return any cells
function M.cells(given, at) return sys.cells(given.calls, "given", given.instead, at) end

--- The ids of the prompt that the response of a call names, as JSON text.
---@param given agentbox.GivenChoices
---@param i integer
---@return string?
function M.prompt_ids(given, i)
  if given.here[i] then return given.calls.prompt_ids[i] end
  return given.prompt_ids[i]
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

-- Servers say null for the ids that they give another way.
local function told(text) return text ~= "null" and text or nil end

--- Puts a call's token ids and log-probs on a choice, where the server's own are not there yet.
---@param evidence agentbox.PlaneCall[]     # of all calls
---@param i integer                        # the call, from 1
---@param out table<string, string>        # JSON texts by name
---@param given? agentbox.GivenChoices      # of a call that gave one of them
---@param memo table                       # one for all calls
---@return boolean added   # false: the call has none
function M.add_tokens(evidence, i, out, given, memo)
  local call = evidence[i]
  if not tokens.is_rl_grade(call) then return false end
  out.logprobs = told(out.logprobs) or logprobs_of(call.tokens)
  out.prompt_token_ids = told(out.prompt_token_ids) or told(given and M.prompt_ids(given, i))
    or tokens.has_prompt(call) and "[" .. tokens.prompt_text(evidence, call, memo) .. "]" or "null"
  out.token_ids = told(out.token_ids) or tokens.text(call.tokens.out)
  return true
end

--- Whether openai's types know a finish reason.
---@param reason any
---@return boolean
function M.knows(reason)
  return reason ~= nil and FINISH[reason] == true
end

return M
