--- Replies of models that are not servers, as a server would have sent them: with the raw texts, so that records,
--- exports and checks need no special case.
local err = require "agentbox.err"
local json = require "agentbox.json"
local only = require "agentbox.sys.list".only
local reply = require "agentbox.models.reply"
local sys = require "agentbox.sys.json"
local text_ = require "agentbox.text"
local time = require "agentbox.time"
local wire = require "agentbox.models.wire"

local M = {}

local encode, now = sys.encode, time.now

local OPEN_BRACE = ("{"):byte()

local function call_of(raw, i, position)
  local fn = raw["function"] or raw
  local arguments = fn.arguments
  if arguments == nil then arguments = json.object {} end
  if type(arguments) ~= "string" then arguments = json.encode(arguments) end
  return wire.call(raw.id or ("call_%d_%d"):format(position, i), fn.name, arguments)
end

local KEPT = { "content", "reasoning_content", "reasoning", "reasoning_details", "thinking_blocks", "refusal" }

local function message_of(answer, position)
  local message = json.object { role = "assistant" }
  message.content = json.null
  for _, name in ipairs(KEPT) do
    if answer[name] ~= nil then message[name] = answer[name] end
  end
  local calls = answer.tool_calls
  if calls == nil or calls == json.null or #calls == 0 then return message end
  message.tool_calls = json.array {}
  for i, raw in ipairs(calls) do message.tool_calls[i] = call_of(raw, i, position) end
  return message
end

local function usage_of(usage)
  if not usage then return nil end
  local prompt = usage.prompt_tokens or usage.prompt or 0
  local completion = usage.completion_tokens or usage.completion or 0
  local out = json.object { prompt_tokens = prompt }
  out.completion_tokens, out.total_tokens = completion, usage.total_tokens or usage.total or prompt + completion
  return out
end

-- ---------------------------------------------------------------- the request that nobody sent

--- The body that a server would have got is made when somebody asks for it. Until then the record makes do with `form`,
--- the body without messages: they are the path of the graph.
local unsent = {}

function unsent.__index(response, key)
  if key ~= "raw_request" then return nil end
  local source = response.unsent
  local messages = table.move(source.request.messages, 1, source.count, 1, json.array {})
  local text = wire.body(source.request, { model = source.name }, wire.messages_text(messages))
  response.raw_request = text
  return text
end

--- The forms of a rollout's requests are one: its tools and its sampling are the same tables at every turn.
local forms = setmetatable({}, { __mode = "k" })

local function form_of(name, request)
  local known = request.tools and forms[request.tools]
  if known and known.name == name and known.sampling == request.sampling and known.choice == request.tool_choice then
    return known.text
  end
  known = { name = name, sampling = request.sampling, choice = request.tool_choice }
  known.text = wire.body(request, { model = name }, "[]")
  if request.tools then forms[request.tools] = known end
  return known.text
end

local function unsent_of(name, request)
  return { request = request, count = #request.messages, name = name, form = form_of(name, request) }
end

local function finished(name, request, response, text, queued)
  local done = now()
  response.unsent = unsent_of(name, request)
  response.raw_response, response.made, response.tries = text, true, 1
  response.times = { queued = queued, first = done, done = done }
  return setmetatable(response, unsent)
end

-- ---------------------------------------------------------------- the reply

local function has_tables(message)
  for _, name in ipairs(KEPT) do
    if type(message[name]) == "table" then return true end
  end
  return false
end

-- An answer that needs none of a reply's tolerance: text, or calls with tables of arguments. The text is put together and
-- the message is made of the same parts, nothing is read back.
local put_reply = sys.row({ "id", "object", "created", "model", "choices", "usage" }, { choices = true })
local put_text = sys.row { "role", "content" }
local new_text, new_calls = sys.shape("role", "content"), sys.shape("role", "tool_calls")

local PLAIN = { content = true, tool_calls = true, usage = true, delay_s = true }
local PLAIN_CALL = { name = true, arguments = true }

local function is_plain(answer)
  if not only(answer, PLAIN) then return false end
  local content, calls = answer.content, answer.tool_calls
  if calls == nil then return type(content) == "string" and text_.valid(content) end
  if content ~= nil or type(calls) ~= "table" or #calls == 0 then return false end
  for i = 1, #calls do
    local raw = calls[i]
    if type(raw) ~= "table" or not only(raw, PLAIN_CALL) or type(raw.name) ~= "string" or raw.name == ""
        or #raw.name > reply.MAX_NAME_BYTES or type(raw.arguments) ~= "table" or json.is_array(raw.arguments) then
      return false
    end
  end
  return true
end

local function plain_calls(given, request, position)
  local calls, used = json.array {}, reply.used_ids(request)
  for i = 1, #given do
    local id, arguments = "call_" .. position .. "_" .. i, encode(given[i].arguments)
    if used[id] or arguments:byte() ~= OPEN_BRACE then return nil end
    calls[i] = wire.call(id, given[i].name, arguments)
  end
  return calls
end

-- The message, the JSON text of it as a server would have sent it, and why it ended.
local function plain_message(answer, request, position)
  if not answer.tool_calls then
    return new_text("assistant", answer.content), put_text("assistant", answer.content), "stop"
  end
  local calls = plain_calls(answer.tool_calls, request, position)
  if not calls then return nil end
  local said = '{"role":"assistant","content":null,"tool_calls":' .. encode(calls) .. "}"
  return new_calls("assistant", calls), said, "tool_calls"
end

local function plain_response(name, request, answer, queued)
  local position = tostring(#request.messages)
  local message, said, finish = plain_message(answer, request, position)
  if not message then return nil end
  local usage = answer.usage and usage_of(answer.usage) or nil
  local id = "chatcmpl-" .. name .. "-" .. (request.session or "0") .. "-" .. position
  local choices = '[{"index":0,"message":' .. said .. ',"finish_reason":"' .. finish .. '"}]'
  local text = put_reply(id, "chat.completion", queued // 1 | 0, name, choices, usage)
  local done = now()
  return setmetatable({ -- whole at once: a table that grows is made twice
    message = message, finish = { raw = finish, norm = finish }, usage = usage and reply.usage(usage), notes = {}, tries = 1,
    repaired = false, made = true, raw_response = text, unsent = unsent_of(name, request), response_id = id,
    served_model = name, times = { queued = queued, first = done, done = done },
  }, unsent)
end

--- Makes the response of an answer: a text, or { content, tool_calls = { { name, arguments } }, finish_reason, usage }.
---
--- Raises when the answer is neither: the script that gave it is wrong.
---@param name string
---@param request agentbox.Request
---@param answer string|table
---@param queued number            # unix seconds
---@return agentbox.Response? response
---@return agentbox.Err? err
function M.response(name, request, answer, queued)
  if type(answer) == "string" then answer = { content = answer } end
  if type(answer) ~= "table" then error(name .. ": a turn must be a text or a message, is a " .. type(answer), 0) end
  local plain = is_plain(answer) and plain_response(name, request, answer, queued)
  if plain then return plain end
  local position = #request.messages
  local message = message_of(answer, position)
  local choice = json.object { index = 0, message = message }
  choice.finish_reason = answer.finish_reason or (message.tool_calls and "tool_calls" or "stop")
  local whole = json.object { id = ("chatcmpl-%s-%s-%d"):format(name, request.session or "0", position), object = "chat.completion" }
  whole.created, whole.model = math.floor(queued), name
  whole.choices, whole.usage = json.array { choice }, usage_of(answer.usage)
  local text = json.encode(whole)
  -- Tables of the script's own are read back from the text: two rollouts must not share them.
  if has_tables(message) then return M.of_text(name, request, text, queued) end
  return finished(name, request, assert(reply.response(whole, request)), text, queued)
end

--- Makes the response of a reply's text.
---@param name string
---@param request agentbox.Request
---@param text string
---@param queued number
---@return agentbox.Response? response
---@return agentbox.Err? err
function M.of_text(name, request, text, queued)
  local decoded, why = reply.decode(text)
  local response
  if decoded then response, why = reply.response(decoded, request) end
  if not response then return nil, err.new("model", name .. ": unusable reply: " .. tostring(why)) end
  response = finished(name, request, response, text, queued)
  response.made = nil -- whoever wrote this text
  return response
end

return M
