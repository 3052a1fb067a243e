--- Checks the bodies of a record's calls against their hashes (rule 7).
---
--- A request that is rebuilt from the path has the right hash only if it held the messages of the path, byte for byte.
--- The requests of one conversation repeat each other, so the hash of what they share goes on from call to call;
--- whatever the number of turns, each message is hashed once.
local body = require "agentbox.record.body"
local hash = require "agentbox.sys.hash"
local json = require "agentbox.json"
local wire = require "agentbox.models.wire"

local M = {}

local function value_of(field)
  if field == json.null then return nil end
  return field
end

local function text_of(value)
  return json.type(value) == "raw" and value:text() or json.encode(value)
end

-- What stands before and behind the messages in a rebuilt body.
local function frame_of(line, entry)
  local params, at = text_of(entry.params), entry.cut.messages
  local head, tail = params:sub(1, at), params:sub(at + 3)
  local tools_at = entry.cut.tools
  if not tools_at then return head, tail end
  local tools = line.tools and text_of(line.tools) or ""
  if tools_at < at then return head:sub(1, tools_at) .. tools .. head:sub(tools_at + 3), tail end
  tools_at = tools_at - at - 2
  return head, tail:sub(1, tools_at) .. tools .. tail:sub(tools_at + 3)
end

-- The nodes from the one behind `known` (or from the root) to `leaf`; whether `known` was met.
local function nodes_between(nodes, known, leaf)
  local list, at = {}, leaf
  while at and at ~= known do
    list[#list + 1] = nodes[at + 1]
    at = value_of(nodes[at + 1].p)
  end
  return list, at ~= nil
end

-- The hash of a request that is rebuilt from the path to the call's leaf.
local function rebuilt_hash(line, call, state)
  local head, tail = frame_of(line, call.request)
  local known = state.head == head and state.leaf or nil
  local fresh, goes_on = nodes_between(line.nodes, known, value_of(call.leaf))
  if not goes_on then
    state.hasher, state.head = hash.hasher():update(head .. "["), head
  end
  for i = #fresh, 1, -1 do
    if goes_on or i < #fresh then state.hasher:update "," end
    state.hasher:update(text_of(fresh[i].m))
  end
  state.leaf = value_of(call.leaf)
  return "sha256:" .. state.hasher:hex("]" .. tail)
end

-- A message as a server gets it, in one form.
local function canonical(message)
  local known, clean = pcall(wire.outgoing, message)
  return json.encode(known and clean or message, { sorted = true })
end

-- Whether a request that was kept as it was sent holds the messages of the path to its leaf.
local function holds_path(line, call, sent)
  local messages = json.is_object(sent) and sent.messages
  local leaf = value_of(call.leaf)
  if not json.is_array(messages) or not leaf then return true end -- of another dialect, or without a path
  local path = nodes_between(line.nodes, nil, leaf)
  if #path ~= #messages then return false end
  for i, message in ipairs(messages) do
    local ours = assert(json.decode(text_of(path[#path + 1 - i].m)))
    if canonical(message) ~= canonical(ours) then return false end
  end
  return true
end

local function check_verbatim(line, call, bytes, where, add)
  local sent = json.decode(bytes)
  if sent == nil then return add("e", where, "it is no valid JSON") end
  if call.trainable and not holds_path(line, call, sent) then
    add(7, where, "what was sent is not the messages of its path")
  end
end

local function check_request(t, call, state, add)
  local where = ("calls[%d].request"):format(call.i)
  if call.request.params then
    if rebuilt_hash(t.line, call, state) ~= call.request.hash then
      add(7, where, "what was sent is not the messages of its path")
    end
    return
  end
  local bytes, problem = t:body(call, "request")
  if not bytes then return add(7, where, problem.msg) end
  check_verbatim(t.line, call, bytes, where, add)
end

--- Checks every body and artifact of a trajectory.
---@async
---@param t agentbox.Traj
---@param add fun(rule: integer|string, where: string, msg: string)
function M.check(t, add)
  local state = {}
  for _, call in ipairs(t.line.calls) do
    if value_of(call.request) then check_request(t, call, state, add) end
    local response = value_of(call.response)
    if response and response.body then
      if body.hash(text_of(response.body)) ~= response.hash then
        add(7, ("calls[%d].response"):format(call.i), "it does not have its recorded hash")
      end
    elseif response then
      local bytes, problem = t:body(call, "response")
      if not bytes then add(7, ("calls[%d].response"):format(call.i), problem.msg) end
    end
  end
  for _, entry in ipairs(value_of(t.line.artifacts) or {}) do
    local bytes, problem = true, nil
    if entry.hash then bytes, problem = t:artifact(entry.path) end
    if bytes and entry.hash and body.hash(bytes) ~= entry.hash then
      bytes, problem = nil, { msg = "it does not have its recorded hash" }
    end
    if not bytes then add("d", "artifact " .. entry.path, problem.msg) end
  end
end

return M
