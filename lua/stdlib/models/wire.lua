--- The chat completions dialect, outgoing: the body of a request.
---
--- Messages are built from a list of allowed members: servers refuse `tool_calls: null`, private fields, `tool_choice`
--- without tools. A clean message is written as it stands, so that its bytes are those of the record.
local json = require "agentbox.json"
local only = require "agentbox.sys.list".only
local sys = require "agentbox.sys.json"

local M = {}

-- ---------------------------------------------------------------- outgoing messages

local MEMBERS = {
  system = { "role", "content", "name" },
  developer = { "role", "content", "name" },
  user = { "role", "content", "name" },
  assistant = { "role", "content", "reasoning_content", "reasoning", "reasoning_details", "thinking_blocks", "thinking",
    "tool_calls", "name" },
  tool = { "role", "content", "tool_call_id", "name" },
}
local ALLOWED = {}
for role, names in pairs(MEMBERS) do
  ALLOWED[role] = {}
  for _, name in ipairs(names) do ALLOWED[role][name] = true end
end

local function is_null(value)
  return value == nil or value == json.null
end

local CALL, FUNCTION = { id = true, type = true, ["function"] = true }, { name = true, arguments = true }

local function call_is_clean(call)
  local fn = call["function"]
  return only(call, CALL) and only(fn, FUNCTION) and call.type ~= nil and type(fn.arguments) == "string"
end

local function is_clean(message, allowed)
  if not only(message, allowed) then return false end
  local calls = message.tool_calls
  if calls == nil then return message.content ~= nil end
  for i = 1, #calls do
    if not call_is_clean(calls[i]) then return false end
  end
  return #calls > 0
end

local new_call, new_function = sys.shape("id", "type", "function"), sys.shape("name", "arguments")

--- A call as a message has it. Whoever makes one makes it here: its members are in the order in which models write them
--- and chat templates that print a call as JSON show them, and a conversation has the same bytes however it came about.
---@param id string
---@param name string
---@param arguments string   # JSON text
---@return table
function M.call(id, name, arguments) return new_call(id, "function", new_function(name, arguments)) end

local function clean_call(call)
  local fn = call["function"]
  local arguments = fn.arguments
  if type(arguments) ~= "string" then arguments = is_null(arguments) and "{}" or json.encode(arguments) end
  return M.call(call.id, fn.name, arguments)
end

--- What of a message goes on the wire.
---@param message agentbox.Message
---@return table
function M.outgoing(message)
  local allowed = ALLOWED[message.role]
  if not allowed then error(("message with role %s"):format(tostring(message.role)), 0) end
  if is_clean(message, allowed) then return message end
  local clean = json.object {}
  for _, name in ipairs(MEMBERS[message.role]) do
    local value = message[name]
    if is_null(value) then value = nil end
    if name == "tool_calls" and value then
      local calls = json.array {}
      for i, call in ipairs(value) do calls[i] = clean_call(call) end
      value = #calls > 0 and calls or nil
    end
    clean[name] = value
  end
  if clean.content == nil and clean.tool_calls == nil then clean.content = "" end
  return clean
end

--- The JSON text of a history as it goes on the wire.
---@param messages agentbox.Message[]
---@return string
function M.messages_text(messages)
  local list = json.array {}
  for i, message in ipairs(messages) do list[i] = M.outgoing(message) end
  return json.encode(list)
end

local function without_parameters(tool)
  local fn = tool["function"]
  local parameters = fn and fn.parameters
  if not parameters or (parameters.properties and next(parameters.properties) ~= nil) then return tool end
  local clean = json.object { type = "function" }
  clean["function"] = json.object { name = fn.name, description = fn.description }
  return clean
end

--- The JSON text of a tool list. A tool without parameters says nothing about them: some servers refuse an empty
--- `properties`.
---@param tools table[]
---@return string
function M.tools_text(tools)
  local clean = json.array {}
  for i, tool in ipairs(tools) do clean[i] = without_parameters(tool) end
  return json.encode(clean)
end

-- An agent's tools are one list for all calls of its rollout, and mostly for those of others, too.
local offered = setmetatable({}, { __mode = "k" })

local function offer(tools, choice, keep)
  if not tools or #tools == 0 then return "" end
  choice = choice or "auto"
  local known = keep and offered[tools]
  if known and known.choice == choice then return known.text end
  local text = ',"tools":' .. M.tools_text(tools) .. ',"tool_choice":' .. json.encode(choice)
  if keep and type(choice) == "string" then offered[tools] = { choice = choice, text = text } end
  return text
end

local function add_members(parts, map, taken)
  local names = {}
  for name, value in pairs(map or {}) do
    if not taken[name] and value ~= nil then names[#names + 1] = name end
  end
  table.sort(names)
  for _, name in ipairs(names) do
    taken[name] = true
    parts[#parts + 1] = (',%s:%s'):format(json.encode(name), json.encode(map[name]))
  end
end

-- What stands behind the messages: the same text for nearly all calls of a run.
local last_offer, last_members, last_tail

local function tail_of(tools, members)
  if tools ~= last_offer or members ~= last_members then
    last_offer, last_members, last_tail = tools, members, "]" .. tools .. members .. "}"
  end
  return last_tail
end

--- The body of a request. `extra` wins over `sampling`, but never over messages and tools.
---@param request agentbox.Request   # its `history`, if it has one, puts the body together when it has the messages' text
---@param fixed { model: string, sampling?: table, extra?: table, stream?: boolean }
---@param messages? string   # the JSON text of the messages, if the caller has it
---@return string body
---@return integer? at         # where the messages begin in it, when `history` put it together
---@return integer? bytes      # of them
function M.body(request, fixed, messages)
  local parts, model = {}, json.encode(fixed.model)
  local taken = { model = true, messages = true, tools = true, tool_choice = true }
  add_members(parts, fixed.extra, taken)
  local sampling = {}
  for name, value in pairs(fixed.sampling or {}) do sampling[name] = value end
  for name, value in pairs(request.sampling or {}) do sampling[name] = value end
  for name, value in pairs(sampling) do
    if value == json.null then sampling[name] = nil end
  end
  add_members(parts, sampling, taken)
  if fixed.stream then add_members(parts, { stream = true, stream_options = { include_usage = true } }, taken) end
  local is_agents = messages == nil and request.history ~= nil
  local tools = offer(request.tools, request.tool_choice, is_agents or messages ~= nil)
  local head, tail = '{"model":' .. model .. ',"messages":[', tail_of(tools, table.concat(parts))
  local whole = is_agents and request:history(head, tail)
  if whole then return whole, #head, #whole - #head - #tail + 2 end
  return head:sub(1, -2) .. (messages or M.messages_text(request.messages)) .. tail:sub(2)
end

return M
