--- mcp/remote.lua: a server behind a URL. A message is a POST; its answer is a body of JSON, or a stream of events with
--- the answer among them.
---
--- Source: Model Context Protocol 2025-06-18, Base Protocol / Transports / Streamable HTTP.
local err = require "agentbox.err"
local http = require "agentbox.http"
local text = require "agentbox.text"

local M = {}

--- The largest body of JSON.
M.MAX_MESSAGE_BYTES = 8 << 20

--- What is shown of a refusal's body, in code points.
local MAX_SNIPPET = 300

--- How long saying goodbye may take.
local CLOSE_S = 2

---@class agentbox.McpRemote
---@field private spec agentbox.McpServer
---@field private session? string       # the server's own name for this conversation
---@field private version? string
local Remote = {}
Remote.__index = Remote

---@param spec agentbox.McpServer
---@return agentbox.McpRemote
function M.open(spec)
  return setmetatable({ spec = spec }, Remote)
end

-- A service that fails is not what the model did: its errors are the environment's.
local function failed(problem)
  problem.class = "sandbox"
  return problem
end

local function headers_of(self)
  local headers = { ["Content-Type"] = "application/json", Accept = "application/json, text/event-stream" }
  for name, value in pairs(self.spec.headers or {}) do headers[name] = tostring(value) end
  headers["Mcp-Session-Id"], headers["MCP-Protocol-Version"] = self.session, self.version
  return headers
end

local function read_body(stream)
  local parts, size = {}, 0
  while true do
    local bytes, problem = stream:read()
    if problem then return nil, problem end
    if not bytes then return table.concat(parts) end
    size = size + #bytes
    if size > M.MAX_MESSAGE_BYTES then return nil, err.new("toobig", "the answer is over 8 MiB") end
    parts[#parts + 1] = bytes
  end
end

-- 404 within a session says that the server no longer knows it: the caller begins a new one.
local function refused(self, stream)
  local body = read_body(stream) or ""
  local gone = stream.status == 404 and self.session ~= nil
  local said = text.cut(text.scrub(body), MAX_SNIPPET)
  return failed(err.new("network", ("the server answered with HTTP status %d%s"):format(stream.status,
    said ~= "" and ": " .. said or ""), { gone = gone }))
end

local function take(self, stream)
  if stream.status == 202 or stream.status == 204 then return true end
  if stream.status ~= 200 then return nil, refused(self, stream) end
  self.session = self.session or stream.headers:get "Mcp-Session-Id"
  local kind = (stream.headers:get "Content-Type" or ""):lower()
  if kind:find("text/event-stream", 1, true) then
    self.stream, self.next_event = stream, http.event_reader(stream)
    return true
  end
  local body, problem = read_body(stream)
  if not body then return nil, failed(problem) end
  if body:find "%S" then self.held = body end
  return true
end

local function drop_stream(self)
  if self.stream then self.stream:close() end
  self.stream, self.next_event = nil, nil
end

---@async
---@param message string
---@param asks boolean      # an answer is expected; what came for an earlier question is given up
---@return true? ok
---@return agentbox.Err? err
function Remote:send(message, asks)
  if asks then
    drop_stream(self)
    self.held = nil
  end
  local stream, problem = http.open {
    url = self.spec.url, method = "POST", headers = headers_of(self), body = message, idle_timeout_s = self.spec.timeout_s,
    timeout_s = self.spec.timeout_s,
  }
  if not stream then return nil, failed(problem) end
  local ok
  ok, problem = take(self, stream)
  if self.stream ~= stream then stream:close() end
  return ok, problem
end

---@async
---@return string? message
---@return agentbox.Err? err
function Remote:receive()
  local held = self.held
  self.held = nil
  if held then return held end
  if not self.stream then return nil, failed(err.new("protocol", "the server accepted the question and gave no answer")) end
  local event, problem = self.next_event()
  if event then return event.data end
  drop_stream(self)
  return nil, failed(problem or err.new("network", "the server's stream ended before the answer"))
end

--- Ends the conversation. A server that does not answer is left alone.
---@async
function Remote:close()
  drop_stream(self)
  if not self.session then return end
  local headers = headers_of(self)
  self.session = nil
  local _ = http.request { url = self.spec.url, method = "DELETE", headers = headers, timeout_s = CLOSE_S }
end

return M
