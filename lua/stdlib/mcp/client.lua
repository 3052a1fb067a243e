--- mcp/client.lua: one conversation with a server: the handshake, questions and their answers, whatever comes between.
---
--- One question at a time. Everything that a server sends is hostile input: answers to nobody, questions of its own,
--- chatter and floods are read past, up to a limit, and each question has a deadline.
local async = require "agentbox.async"
local err = require "agentbox.err"
local json = require "agentbox.json"
local text = require "agentbox.text"
local version = require "agentbox.sys.os".version

local M = {}

--- The revision that we ask for. What we use of it is the same in every revision since 2024-11-05.
M.PROTOCOL = "2025-06-18"

--- Messages that are not the answer, and their bytes, before a question is given up.
local MAX_SKIPPED, MAX_SKIPPED_BYTES = 10000, 64 << 20

--- Code points of a server's error message.
local MAX_ERROR = 2000

--- JSON-RPC 2.0, section 5.1: the method does not exist.
local NO_METHOD = -32601

---@class agentbox.McpClient
---@field server { name?: string, version?: string }   # what it says of itself
---@field protocol string
---@field dead? agentbox.Err     # why it can be asked no more
---@field private transport agentbox.McpStdio|agentbox.McpRemote
---@field private last integer
local Client = {}
Client.__index = Client

-- A message that is no object is chatter: many programs print to stdout what belongs on stderr.
local function read_message(line)
  if not line:find "^%s*{" then return nil end
  local message = json.decode(line, { repair = true })
  return type(message) == "table" and message or nil
end

-- A ping wants an answer; we offer nothing else (no roots, no sampling, no elicitation).
local function reply_to(self, message)
  local reply = json.object { jsonrpc = "2.0", id = message.id }
  if message.method == "ping" then
    reply.result = json.object {}
  else
    reply.error = json.object { code = NO_METHOD, message = "not supported" }
  end
  return self.transport:send(json.encode(reply), false)
end

local function answer_of(message)
  if message.error == nil or message.error == json.null then
    if type(message.result) == "table" then return message.result end
    return nil, err.new("protocol", "the server's answer has no result", { own = true })
  end
  local problem = type(message.error) == "table" and message.error or {}
  return nil, err.new("invalid", text.cut(text.scrub(tostring(problem.message)), MAX_ERROR),
    { rpc_code = math.tointeger(problem.code), own = true })
end

local function await_answer(self, id)
  local skipped, bytes = 0, 0
  while true do
    local line, problem = self.transport:receive()
    if not line then return nil, problem, true end
    local message = read_message(line)
    if message and message.id == id and message.method == nil then return answer_of(message) end
    if message and message.id ~= nil and message.method ~= nil then
      local ok
      ok, problem = reply_to(self, message)
      if not ok then return nil, problem, true end
    end
    skipped, bytes = skipped + 1, bytes + #line
    if skipped > MAX_SKIPPED or bytes > MAX_SKIPPED_BYTES then
      return nil, err.new("toobig", ("the server sent %d messages and no answer"):format(skipped), { own = true }), true
    end
  end
end

local function message_of(method, params, id)
  local message = json.object { jsonrpc = "2.0" }
  message.id, message.method, message.params = id, method, params
  return json.encode(message)
end

local function exchange(self, id, method, params)
  self.sending = true
  local ok, problem = self.transport:send(message_of(method, params, id), true)
  self.sending = false
  if not ok then return nil, problem, true end
  return await_answer(self, id)
end

--- Asks one question. A deadline that passes leaves the conversation open, unless the server did not even take the
--- question; its late answer is read past.
---@async
---@param method string
---@param params table
---@param timeout_s number
---@return table? result
---@return agentbox.Err? err   # `invalid` with rpc_code: the server's own error; `timeout`; else it is dead
function Client:ask(method, params, timeout_s)
  if self.dead then return nil, self.dead end
  self.last = self.last + 1
  local id = self.last
  local result, problem, fatal = async.timeout(timeout_s, exchange, self, id, method, params)
  if result then return result end
  if problem.code == "timeout" and not fatal then
    problem.msg = ("the server gave no answer to %s within %g s"):format(method, timeout_s)
    if not self.sending then self:tell("notifications/cancelled", { requestId = id, reason = "timeout" }) end
    fatal = self.sending
  end
  if fatal then self.dead = problem end
  return nil, problem
end

--- How long a server may take to take a message that has no answer.
local TELL_S = 5

--- Sends what has no answer.
---@async
---@param method string
---@param params? table
function Client:tell(method, params)
  local ok, problem = async.timeout(TELL_S, function() return self.transport:send(message_of(method, params), false) end)
  if not ok then self.dead = self.dead or problem end
end

---@async
function Client:close()
  self.dead = self.dead or err.new("io", "the conversation is over", { own = true })
  self.transport:close()
end
Client.__close = Client.close

--- Shakes hands. The transport is the client's from here on, also when this fails.
---@async
---@param transport agentbox.McpStdio|agentbox.McpRemote
---@param timeout_s number
---@return agentbox.McpClient? client
---@return agentbox.Err? err
function M.open(transport, timeout_s)
  local self = setmetatable({ transport = transport, last = 0, sending = false }, Client)
  local result, problem = self:ask("initialize", {
    protocolVersion = M.PROTOCOL, capabilities = json.object {},
    clientInfo = { name = "agentbox", version = version },
  }, timeout_s)
  if result and type(result.protocolVersion) ~= "string" then
    problem = err.new("protocol", "the server's handshake names no version", { own = true })
  elseif result then
    self.protocol, transport.version = result.protocolVersion, result.protocolVersion
    self.server = type(result.serverInfo) == "table" and result.serverInfo or {}
    self:tell "notifications/initialized"
    problem = self.dead
  end
  if not problem then return self end
  self:close()
  return nil, problem
end

return M
