--- mcp/session.lua: a rollout's conversation with one server, shared by the server's tools.
---
--- Whose failure it is: a call that is late, or that its program does not survive, is the model's to read, and the next
--- call finds a new program. A program of ours that does not start, a URL that fails: the environment's.
local content = require "agentbox.mcp.content"
local err = require "agentbox.err"
local sandbox = require "agentbox.sandbox"

local M = {}

---@class agentbox.McpSession
---@field private spec agentbox.McpServer
---@field private users integer      # tools that opened it and did not close it
---@field private client? agentbox.McpClient
---@field private home? agentbox.Sandbox      # of a server that has one of its own
local Session = {}
Session.__index = Session

--- By rollout (its ctx), then by server.
local sessions = setmetatable({}, { __mode = "k" })

--- What a tool of the server opens.
---@param spec agentbox.McpServer
---@param ctx agentbox.Ctx
---@return agentbox.McpSession
function M.enter(spec, ctx)
  local own = sessions[ctx] or {}
  sessions[ctx] = own
  local self = own[spec] or setmetatable({ spec = spec, ctx = ctx, users = 0, starts = 0 }, Session)
  own[spec] = self
  self.users = self.users + 1
  return self
end

local function home_of(self)
  local spec = self.spec
  if spec.url then return nil end
  if spec.inside then return self.ctx.sandbox end
  local problem
  if not self.home then self.home, problem = sandbox.create(spec.sandbox or {}) end
  return self.home, problem
end

-- A server inside the rollout's sandbox is within the model's reach: that it does not start is nobody else's failure.
local function start(self)
  local home, problem = home_of(self)
  if problem then return nil, problem end
  self.client, problem = require "agentbox.mcp".connect(self.spec, home)
  if self.client then
    self.starts = self.starts + 1
    return true
  end
  if self.spec.inside or not problem.own then return nil, problem end
  return nil, err.new("sandbox", ("MCP server %s does not start: %s"):format(self.spec.name, problem.msg))
end

---@async
local function stop(self)
  local client, home = self.client, self.home
  self.client, self.home = nil, nil
  if client then client:close() end
  if home then home:close() end
end

local RESTARTED = "[the server was started anew: what it knew is gone]\n"

local function ask(self, name, args)
  local note = ""
  if not self.client then
    local ok, problem = start(self)
    if not ok then return nil, problem end
    if self.starts > 1 then note = RESTARTED end
  end
  local result, problem = self.client:ask("tools/call", { name = name, arguments = args }, self.spec.timeout_s)
  if self.client.dead then stop(self) end
  return result, problem, note
end

--- Calls a tool. A server that has forgotten the conversation did not take the call: it is asked once more, in a new one.
---@async
---@param name string     # the server's
---@param args table
---@return string? text
---@return table|agentbox.Err facts   # is_error; the error otherwise
function Session:call(name, args)
  local result, problem, note = ask(self, name, args)
  if not result and problem.gone then result, problem, note = ask(self, name, args) end
  if not result then return nil, problem end
  local text, is_error = content.text(result)
  if not text then return nil, err.new("protocol", is_error, { own = true }) end
  return note .. text, { is_error = is_error }
end

--- What a tool of the server closes; the last one ends the conversation.
---@async
function Session:leave()
  self.users = self.users - 1
  if self.users > 0 then return end
  sessions[self.ctx][self.spec] = nil
  stop(self)
end

return M
