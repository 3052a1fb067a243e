--- mcp/stdio.lua: a server that is a process of a sandbox; a message is a line of JSON on its stdin and stdout.
---
--- Source: Model Context Protocol 2025-06-18, Base Protocol / Transports / stdio.
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local text = require "agentbox.text"

local M = {}

--- One message of a server. What is longer ends the connection.
M.MAX_MESSAGE_BYTES = 8 << 20

--- What is kept of stderr, its end, for the error when a server does not start.
local STDERR_KEPT = 2000

--- How long a server that says nothing more may take to end before its exit status is given up.
local EXIT_S = 1

---@class agentbox.McpStdio
---@field private process agentbox.Process
---@field private said string       # the end of stderr
local Stdio = {}
Stdio.__index = Stdio

-- Nobody reads stderr for its own sake, but a server that cannot write there stops. Ends with the process's handle.
local function drain(self)
  while true do
    local bytes, problem = self.process:read_stderr()
    if not bytes then return problem end
    self.said = (self.said .. bytes):sub(-STDERR_KEPT)
  end
end

---@async
---@param sandbox agentbox.Sandbox
---@param spec agentbox.McpServer
---@return agentbox.McpStdio? transport
---@return agentbox.Err? err
function M.open(sandbox, spec)
  local process, problem = sandbox:spawn(spec.command, { env = spec.env, cwd = spec.cwd, user = spec.user })
  if not process then return nil, problem end
  local self = setmetatable({ process = process, said = "" }, Stdio)
  self.drainer = fiber.spawn(drain, self)
  return self
end

-- A server that has ended says why on stderr, and by its status.
local function ended(self)
  local outcome = self.process:wait(EXIT_S)
  self.drainer:join(EXIT_S)
  local how = not outcome and "closed its output" or outcome.signal and "was killed by " .. outcome.signal
      or ("ended with status %d"):format(outcome.exit_code)
  local said = text.scrub(self.said):gsub("%s+$", "")
  return err.new("io", "the server " .. how .. (said ~= "" and "; it said:\n" .. said or ""), { own = true })
end

---@async
---@param message string
---@return true? ok
---@return agentbox.Err? err
function Stdio:send(message)
  local ok, problem = self.process:write(message .. "\n")
  if ok then return true end
  return nil, problem.code == "sandbox" and problem or ended(self)
end

--- The next line; a server's own chatter on stdout is among them.
---@async
---@return string? line
---@return agentbox.Err? err
function Stdio:receive()
  local line, problem = self.process:read { until_text = "\n", max = M.MAX_MESSAGE_BYTES }
  if line then return line end
  return nil, problem or ended(self)
end

--- Kills the server with everything that it started.
function Stdio:close()
  self.process:close()
  self.drainer:cancel()
end

return M
