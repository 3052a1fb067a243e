--- Requests and responses as ART's exchanges, verbatim where they were recorded.
local choice = require "agentbox.formats._choice"
local columns = require "agentbox.record.columns"
local json = require "agentbox.json"
local sent = require "agentbox.record.sent"
local sys = require "agentbox.sys.json"
local time = require "agentbox.sys.time"
local tokens = require "agentbox.record.tokens"

local M = {}

local TRAFFIC = { agent = true, subagent = true, compaction = true }

local put_request = sys.row({ "model", "messages", "tools" }, { messages = true, tools = true })
local put_choice = sys.row({ "index", "finish_reason", "logprobs", "message", "prompt_token_ids", "token_ids" },
  { logprobs = true, message = true, prompt_token_ids = true, token_ids = true })
local put_response = sys.row({ "id", "object", "created", "model", "choices" }, { choices = true })

local BODIES = { raw = { "request", "response" } }

local function model_of(job, i) return job.calls.model[i] or job.t.line.policy.model end

-- Adds the request to the parts of an exchange; whether it is what was sent.
local function put_body(job, i, parts)
  local t = job.t
  local path = columns.path(t.columns, job.calls.leaf[i])
  if job.sent:put(i, path, parts) then return true end
  local messages = {}
  for n, at in ipairs(path) do messages[n] = t.columns.m[at] end
  local tools = t.line.tools ~= json.null and t.line.tools or nil
  parts[#parts + 1] = put_request(model_of(job, i), "[" .. table.concat(messages, ",") .. "]", tools)
  return false
end

local function own_name(t, i) return ("%s-%d"):format(t.id, i - 1) end

local function made_response(job, i)
  local t, calls = job.t, job.calls
  local message, finish = calls.out[i] and t.columns.m[calls.out[i] + 1], choice.finish(calls.norm[i])
  if not message or not finish then return nil end
  local item = { logprobs = "null" }
  choice.add_tokens(job.evidence, i, item, nil, job.memo)
  local times = json.decode(calls.t[i] or "[]")
  local one = put_choice(0, finish, item.logprobs, message, item.prompt_token_ids, item.token_ids)
  return put_response(calls.response_id[i] or own_name(t, i), "chat.completion", math.floor(times[#times] or t.line.started),
    model_of(job, i), "[" .. one .. "]")
end

-- The response, whether it is the recorded one; nil when ART has no word for the way it ended.
local function response_of(job, i)
  local text = job.t:response_text(i)
  if not text then return made_response(job, i), false end
  if not choice.knows(job.calls.raw[i]) then return nil, true end
  return text, true
end

-- ART refuses a trajectory in which two responses of a model have one id.
local function with_own_name(t, i, response)
  local copy = json.decode(response, { raw = { "choices" } })
  copy.id = own_name(t, i)
  return json.encode(copy)
end

local function exchange_of(job, i, lost)
  local t, calls = job.t, job.calls
  local parts = { '{"request":' }
  local was_sent = put_body(job, i, parts)
  local response, received = response_of(job, i)
  if not response then
    return lost "calls that ended in a way ART does not know"
  end
  local id = calls.response_id[i]
  if id and job.used[id] then
    response = with_own_name(t, i, response)
    lost "response ids that the server gave more than once"
  end
  if id then job.used[id] = true end
  if not was_sent or not received then
    lost "bodies that were not recorded (their exchanges are made from the messages)"
  end
  if not tokens.is_rl_grade(job.evidence[i]) then lost(choice.NO_TOKENS) end
  local times = json.decode(calls.t[i] or "[]")
  local started = times[1] or t.line.started
  parts[#parts + 1] = ',"response":'
  parts[#parts + 1] = response
  parts[#parts + 1] = (',"start_time":"%s","end_time":"%s"}'):format(time.iso(started), time.iso(times[#times] or started))
  return sys.later(sys.joined, parts) -- the requests are most of it
end

--- The exchanges of a trajectory: `art.TrajectoryExchanges`.
---@param t agentbox.Traj
---@param evidence table[]         # the token evidence of its calls
---@param lost fun(what: string)
---@return table
function M.of(t, evidence, lost)
  local calls, list = t.call_columns, {}
  local job = { t = t, calls = calls, evidence = evidence, memo = {}, used = {}, sent = sent.new(t) }
  for i = 1, calls.n do
    if TRAFFIC[calls.purpose[i]] and not calls.error[i] then list[#list + 1] = exchange_of(job, i, lost) end
  end
  return json.object { chat_completions = sys.texts(list, BODIES) }
end

return M
