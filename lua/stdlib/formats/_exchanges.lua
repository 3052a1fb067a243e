--- Requests and responses as ART's exchanges, verbatim where they were recorded.
local choice = require "agentbox.formats._choice"
local json = require "agentbox.json"
local time = require "agentbox.sys.time"
local tokens = require "agentbox.record.tokens"

local M = {}

local TRAFFIC = { agent = true, subagent = true, compaction = true }

local function one_line(text)
  if text:find("\n", 1, true) then return json.decode(text) end
  return json.raw(text)
end

local function request_of(t, call)
  local text = t:body(call, "request")
  if text then return one_line(text), true end
  local out = json.object {}
  out.model = call.model or t.line.policy.model
  out.messages = json.array {}
  for i, step in ipairs(t:path(call.leaf)) do out.messages[i] = step.message end
  if t.tools then out.tools = t.tools end
  return out, false
end

local function own_name(t, call) return ("%s-%d"):format(t.id, call.i) end

local function made_response(t, call)
  local node = call.out and call.out ~= json.null and t.line.nodes[call.out + 1]
  local finish = choice.finish(call)
  if not node or not finish then return nil end
  local out, item = json.object {}, json.object {}
  item.index = 0
  item.finish_reason = finish
  item.logprobs = json.null
  item.message = choice.message(node)
  choice.add_tokens(t, call, item)
  out.id = call.response_id or own_name(t, call)
  out.object = "chat.completion"
  out.created = math.floor(call.t and call.t[#call.t] or t.line.started)
  out.model = call.model or t.line.policy.model
  out.choices = json.array { item }
  return out
end

-- The response, whether it is the recorded one; nil when ART has no word for the way it ended.
local function response_of(t, call)
  local text = t:body(call, "response")
  if not text then return made_response(t, call), false end
  if not choice.knows(call.finish and call.finish.raw) then return nil, true end
  return one_line(text), true
end

-- ART refuses a trajectory in which two responses of a model have one id.
local function with_own_name(t, call, response)
  local copy = json.object {}
  for key, value in pairs(json.type(response) == "raw" and response:decode() or response) do copy[key] = value end
  copy.id = own_name(t, call)
  return copy
end

local function exchange_of(t, call, used, lost)
  local request, sent = request_of(t, call)
  local response, received = response_of(t, call)
  if not response then
    return lost "calls that ended in a way ART does not know"
  end
  local id = choice.plain(call.response_id)
  if id and used[id] then
    response = with_own_name(t, call, response)
    lost "response ids that the server gave more than once"
  end
  if id then used[id] = true end
  if not sent or not received then
    lost "bodies that were not recorded (their exchanges are made from the messages)"
  end
  if not tokens.is_rl_grade(call) then lost(choice.NO_TOKENS) end
  local started = call.t and call.t ~= json.null and call.t or { t.line.started, t.line.started }
  local out = json.object {}
  out.request = request
  out.response = response
  out.start_time = time.iso(started[1])
  out.end_time = time.iso(started[#started])
  return out
end

--- The exchanges of a trajectory: `art.TrajectoryExchanges`.
---@param t agentbox.Traj
---@param lost fun(what: string)
---@return table
function M.of(t, lost)
  local list, used = json.array {}, {}
  for _, call in ipairs(t.line.calls) do
    if TRAFFIC[call.purpose] and not choice.plain(call.error) then
      list[#list + 1] = exchange_of(t, call, used, lost)
    end
  end
  return json.object { chat_completions = list }
end

return M
