--- Makes one whole reply of a streamed one. A stream that ends before the reply does is an error, never half an answer.
local err = require "agentbox.err"
local failure = require "agentbox.models.failure"
local http = require "agentbox.http"
local json = require "agentbox.json"
local reply = require "agentbox.models.reply"
local wire = require "agentbox.models.wire"

local M = {}

local TEXTS = { "content", "reasoning_content", "reasoning", "refusal" }
local LISTS = { "reasoning_details", "thinking_blocks" }

-- A list written by pieces, each of them the text of a JSON list.
local function add_list(parts, raw)
  local inner = raw:text():match "^%s*%[(.*)%]%s*$"
  if inner and inner:find "%S" then parts[#parts + 1] = inner end
end

local function joined(parts)
  return #parts > 0 and json.raw("[" .. table.concat(parts, ",") .. "]") or nil
end

local function new()
  return { texts = {}, lists = {}, calls = {}, order = {}, logprobs = {}, token_ids = {}, top = json.object {} }
end

-- Deltas of one call share an index; servers that leave it out send a call at once, or go on with the last one.
local function call_of(whole, delta)
  local index = delta.index
  if type(index) ~= "number" then
    local has_id = type(delta.id) == "string" and delta.id ~= ""
    index = has_id and "id " .. delta.id or whole.order[#whole.order] or 0
  end
  local call = whole.calls[index]
  if not call then
    call = { name = {}, arguments = {} }
    whole.calls[index] = call
    whole.order[#whole.order + 1] = index
  end
  return call
end

local function add_call(whole, delta)
  if type(delta) ~= "table" then return end
  local call = call_of(whole, delta)
  local fn = type(delta["function"]) == "table" and delta["function"] or {}
  if type(delta.id) == "string" and delta.id ~= "" then call.id = call.id or delta.id end
  if type(fn.name) == "string" and fn.name ~= "" and table.concat(call.name) ~= fn.name then
    call.name[#call.name + 1] = fn.name
  end
  if type(fn.arguments) == "string" then
    call.arguments[#call.arguments + 1] = fn.arguments
  elseif type(fn.arguments) == "table" then
    call.arguments[#call.arguments + 1] = json.encode(fn.arguments)
  end
end

local function add_delta(whole, delta)
  for _, name in ipairs(TEXTS) do
    if type(delta[name]) == "string" then
      whole.texts[name] = whole.texts[name] or {}
      table.insert(whole.texts[name], delta[name])
    end
  end
  for _, name in ipairs(LISTS) do
    if type(delta[name]) == "table" then
      whole.lists[name] = whole.lists[name] or json.array {}
      for _, item in ipairs(delta[name]) do table.insert(whole.lists[name], item) end
    end
  end
  for _, call in ipairs(type(delta.tool_calls) == "table" and delta.tool_calls or {}) do add_call(whole, call) end
end

local function add_choice(whole, choice)
  if type(choice.finish_reason) == "string" then whole.finish = choice.finish_reason end
  if type(choice.delta) == "table" then add_delta(whole, choice.delta) end
  if json.type(choice.token_ids) == "raw" then add_list(whole.token_ids, choice.token_ids) end
  if json.type(choice.logprobs) == "raw" then
    local decoded = json.decode(choice.logprobs:text(), { raw = { "content" } })
    local content = decoded and decoded.content or nil
    if json.type(content) == "raw" then add_list(whole.logprobs, content) end
  end
end

local function add_chunk(whole, chunk)
  for _, name in ipairs { "id", "created", "model", "system_fingerprint" } do
    if whole.top[name] == nil and chunk[name] ~= json.null then whole.top[name] = chunk[name] end
  end
  if type(chunk.usage) == "table" then whole.usage = chunk.usage end
  if json.type(chunk.prompt_token_ids) == "raw" then whole.prompt_token_ids = chunk.prompt_token_ids end
  local choice = type(chunk.choices) == "table" and chunk.choices[1]
  if type(choice) == "table" then add_choice(whole, choice) end
end

local function message_of(whole)
  local message = json.object { role = "assistant" }
  message.content = whole.texts.content and table.concat(whole.texts.content) or json.null
  for _, name in ipairs { "reasoning_content", "reasoning", "refusal" } do
    if whole.texts[name] then message[name] = table.concat(whole.texts[name]) end
  end
  for _, name in ipairs(LISTS) do message[name] = whole.lists[name] end
  if #whole.order == 0 then return message end
  message.tool_calls = json.array {}
  for i, index in ipairs(whole.order) do
    local call = whole.calls[index]
    message.tool_calls[i] = wire.call(call.id or "", table.concat(call.name), table.concat(call.arguments))
  end
  return message
end

--- The reply as a server would have sent it in one piece.
local function assemble(whole)
  local out = json.object { id = whole.top.id or "", object = "chat.completion" }
  out.created, out.model = whole.top.created or 0, whole.top.model or ""
  out.system_fingerprint = whole.top.system_fingerprint
  local choice = json.object { index = 0, message = message_of(whole) }
  choice.finish_reason = whole.finish
  local content = joined(whole.logprobs)
  choice.logprobs = content and json.object { content = content } or nil
  choice.token_ids = joined(whole.token_ids)
  out.choices = json.array { choice }
  out.usage, out.prompt_token_ids = whole.usage, whole.prompt_token_ids
  return json.encode(out)
end

--- Reads a stream to its end.
---@async
---@param stream agentbox.HttpStream
---@param on_first fun()                 # called at the first event
---@return string? text                  # the reply as one JSON text
---@return agentbox.Err? err
---@return boolean? again
function M.read(stream, on_first)
  local whole, next_event = new(), http.event_reader(stream)
  while true do
    local event, e = next_event()
    if e then return nil, e, failure.transport_again(e) end
    if not event or event.data == "[DONE]" then break end
    on_first()
    local chunk = reply.decode(event.data)
    if not chunk then return nil, failure.of_body("a chunk of the stream is not JSON", event.data, stream.status) end
    local bad, again = failure.of_reply(chunk, event.data)
    if bad then return nil, bad, again end
    add_chunk(whole, chunk)
  end
  if not whole.finish then return nil, err.new("network", "the stream ended before the reply did"), true end
  return assemble(whole)
end

return M
