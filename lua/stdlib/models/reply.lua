--- The chat completions dialect, incoming: what is made of a reply.
---
--- What is needed is read, whatever else is there or missing is tolerated; the record keeps the raw text.
local column = require "agentbox.sys.json".column
local json = require "agentbox.json"
local cut_bytes = require "agentbox.text".cut_bytes
local wire = require "agentbox.models.wire"

local M = {}

local function is_null(value)
  return value == nil or value == json.null
end

local FINISH = {
  stop = "stop", eos = "stop", eos_token = "stop", end_turn = "stop", stop_sequence = "stop", stop_string = "stop",
  tool_calls = "tool_calls", tool_use = "tool_calls", function_call = "tool_calls",
  length = "length", max_tokens = "length", model_length = "length",
  content_filter = "content_filter", safety = "content_filter", refusal = "content_filter",
}

--- The server's word for why it stopped, and ours.
---@param raw any
---@param has_calls boolean
---@return { raw: string?, norm: string }
function M.finish(raw, has_calls)
  if type(raw) ~= "string" then return { norm = has_calls and "tool_calls" or "stop" } end
  return { raw = raw, norm = FINISH[raw:lower()] or "other" }
end

local function count(value)
  return math.type(value) == "integer" and value >= 0 and value or nil
end

--- Token counts, or nil when the server gave none: unknown is not zero.
---@param raw any
---@return { prompt: integer, completion: integer, total: integer, cached?: integer }?
function M.usage(raw)
  if type(raw) ~= "table" then return nil end
  local prompt = count(raw.prompt_tokens) or count(raw.input_tokens)
  local completion = count(raw.completion_tokens) or count(raw.output_tokens)
  if not prompt and not completion then return nil end
  local details = raw.prompt_tokens_details
  local cached = type(details) == "table" and count(details.cached_tokens) or nil
  return {
    prompt = prompt or 0, completion = completion or 0, cached = cached,
    total = count(raw.total_tokens) or (prompt or 0) + (completion or 0),
  }
end

local REASONING = { "reasoning_content", "reasoning", "reasoning_details", "thinking_blocks", "thinking" }

-- Text, or a list with parts that are not text (kept: it goes back as it came), or nil.
local function content_of(raw)
  if type(raw) == "string" then return raw end
  if type(raw) ~= "table" then return nil end
  local texts = {}
  for _, part in ipairs(raw) do
    local text = part
    if type(part) == "table" then
      local kind = part.type or "text"
      text = (kind == "text" or kind == "output_text") and part.text
    end
    if type(text) ~= "string" then return raw end
    texts[#texts + 1] = text
  end
  return table.concat(texts)
end

-- Arguments as valid JSON text of an object. Returns the text, and for anything else: what was wrong, and the original.
local function arguments_of(raw)
  if is_null(raw) then return "{}" end
  if type(raw) == "table" then
    return json.encode(json.is_array(raw) and json.object { _raw = raw } or raw), nil, nil, true
  end
  if type(raw) ~= "string" then raw = tostring(raw) end
  local value, repaired = json.decode_arguments(raw)
  if value == json.null then return "{}", nil, raw, true end -- what some models say for no arguments
  if type(value) == "string" then -- an object that was encoded twice
    local inner = json.decode(value)
    if json.is_object(inner) then return json.encode(inner), nil, raw, true end
  end
  if json.is_object(value) then
    if repaired == true or raw == "" then return json.encode(value), nil, raw ~= "" and raw or nil, true end
    return raw
  end
  local why = value == nil and "the arguments are not valid JSON: " .. tostring(repaired and repaired.msg or "")
    or "the arguments are not a JSON object"
  return json.encode { _raw = raw }, why, raw, false
end

--- What of a call comes back in every later request.
local MAX_ID_BYTES = 512

--- A longer name is cut: it is in the call, in the tool's message and in every request after them.
M.MAX_NAME_BYTES = 256

--- Calls of one reply that are looked at. A model that repeats itself makes them without end.
M.MAX_CALLS = 256

local function fresh_id(used, request, i)
  local n = #request.messages
  local id
  repeat
    id = ("call_%d_%d"):format(n, i)
    n = n + 1
  until not used[id]
  return id
end

local function one_call(raw, i, used, request)
  if type(raw) ~= "table" then return nil end
  local fn = type(raw["function"]) == "table" and raw["function"] or raw.custom or {}
  local arguments, why, original, repaired = arguments_of(fn.arguments == nil and fn.input or fn.arguments)
  local id = raw.id
  local renamed = type(id) ~= "string" or id == "" or #id > MAX_ID_BYTES or used[id]
  if renamed then id = fresh_id(used, request, i) end
  used[id] = true
  local name = type(fn.name) == "string" and fn.name ~= "" and cut_bytes(fn.name, M.MAX_NAME_BYTES) or "unknown"
  local call = wire.call(id, name, arguments)
  call.parse_error, call.raw_arguments = why, original
  return call, renamed, repaired
end

--- The ids of a history, which grows at its end.
local ids_of = setmetatable({}, { __mode = "k" })

--- The ids of calls that a history has answered. Not to be written to.
---@param request agentbox.Request
---@return table<string, boolean>
function M.used_ids(request)
  local messages = request.messages
  local known, n = ids_of[messages], #messages
  if not known or known.count > n then
    known = { count = 0, ids = {} }
    ids_of[messages] = known
  end
  local ids = known.ids
  for i = known.count + 1, n do
    local message = messages[i]
    if message.role == "tool" and type(message.tool_call_id) == "string" then ids[message.tool_call_id] = true end
  end
  known.count = n
  return ids
end

local function calls_of(message, request, notes)
  local list = message.tool_calls
  if type(list) ~= "table" and type(message.function_call) == "table" then
    list = { { ["function"] = message.function_call } }
    notes[#notes + 1] = "legacy function_call"
  end
  if type(list) ~= "table" then return nil end
  local calls, used = json.array {}, setmetatable({}, { __index = M.used_ids(request) })
  for i = 1, math.min(#list, M.MAX_CALLS) do
    local call, renamed, repaired = one_call(list[i], i, used, request)
    if call then calls[#calls + 1] = call end
    if renamed then notes[#notes + 1] = ("tool call %d got the id %s"):format(i, call.id) end
    if repaired then notes[#notes + 1], notes.repaired = ("arguments of tool call %d repaired"):format(i), true end
  end
  if #list > M.MAX_CALLS then
    notes[#notes + 1] = ("%d tool calls in one reply: the first %d are taken"):format(#list, M.MAX_CALLS)
  end
  return #calls > 0 and calls or nil
end

-- The message for the history: allowed members only, in a fixed order.
local function message_of(raw, request, notes)
  local message = json.object { role = "assistant" }
  local calls = calls_of(raw, request, notes)
  local content = content_of(raw.content)
  if content == nil and type(raw.refusal) == "string" then content = raw.refusal end
  if content == nil and not calls then content = "" end
  if calls and content == "" then content = nil end
  message.content = content
  for _, name in ipairs(REASONING) do
    if not is_null(raw[name]) then message[name] = raw[name] end
  end
  message.tool_calls = calls
  return message
end

-- ---------------------------------------------------------------- token evidence

-- vLLM can put ids where the tokens' text would be: "token_id:123".
local function ids_from_text(logprobs)
  if not logprobs:text():find('"token_id:', 1, true) then return nil end
  local tokens = column(logprobs, "content", "token")
  local ids = tokens and tokens:text():gsub('"token_id:(%d+)"', "%1")
  return ids and not ids:find('"', 1, true) and json.raw(ids) or nil
end

local function raw_or_nil(value)
  return json.type(value) == "raw" and value or nil
end

--- Ids and log-probs of a reply, as text; nil when the server gave none.
---@param reply table
---@param choice table
---@return { src: string, prompt?: agentbox.JsonRaw, out?: agentbox.JsonRaw, lp?: agentbox.JsonRaw }?
function M.tokens(reply, choice)
  local logprobs = raw_or_nil(choice.logprobs)
  local out, src = raw_or_nil(choice.token_ids), "engine"
  if not out and logprobs then out = column(logprobs, "content", "id") end -- llama.cpp
  if not out and logprobs then out, src = ids_from_text(logprobs), "token_id_strings" end
  local lp = logprobs and column(logprobs, "content", "logprob") or nil
  if not out and not lp then return nil end
  return {
    src = out and src or "none", out = out, lp = lp,
    prompt = raw_or_nil(reply.prompt_token_ids) or raw_or_nil(choice.prompt_token_ids),
  }
end

--- Members whose arrays stay text when a reply is decoded.
M.RAW = { "logprobs", "token_ids", "prompt_token_ids" }

--- Decodes a reply's text.
---@param text string
---@return table? reply
---@return string|boolean why   # or whether it had to be repaired
function M.decode(text)
  local reply, repaired = json.decode(text, { raw = M.RAW, repair = true })
  if type(reply) ~= "table" then
    return nil, reply == nil and repaired and repaired.msg or "the reply is not a JSON object"
  end
  return reply, repaired == true
end

--- Makes a response of a decoded reply. Unknown and missing members are tolerated.
---@param reply table
---@param request agentbox.Request
---@return agentbox.Response? response   # without the raw texts, tries and times
---@return string? why
function M.response(reply, request)
  local choice = type(reply.choices) == "table" and reply.choices[1]
  if type(choice) ~= "table" then return nil, "the reply has no choices" end
  local raw = choice.message
  if type(raw) ~= "table" and type(choice.text) == "string" then raw = { content = choice.text } end
  if type(raw) ~= "table" then return nil, "the reply's choice has no message" end
  local notes = {}
  local message = message_of(raw, request, notes)
  local finish = M.finish(choice.finish_reason, message.tool_calls ~= nil)
  if type(raw.refusal) == "string" and not finish.raw then finish.norm = "content_filter" end
  return {
    message = message, finish = finish, usage = M.usage(reply.usage), tokens = M.tokens(reply, choice),
    logprobs = raw_or_nil(choice.logprobs), repaired = notes.repaired == true, notes = notes,
    response_id = type(reply.id) == "string" and reply.id or nil,
    served_model = type(reply.model) == "string" and reply.model or nil,
  }
end

return M
