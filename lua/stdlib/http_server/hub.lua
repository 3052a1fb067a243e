--- Events for many clients at once: no fiber for each, and no client slows another one.
local stream = require "agentbox.http_server.stream"

local M = {}

---@class agentbox.EventHub
---@field count integer   # clients
local Hub = {}
Hub.__index = Hub

---@return agentbox.EventHub
function M.new() return setmetatable({ count = 0, _clients = {} }, Hub) end

--- The answer to this request is a stream of what the hub sends from now on; its handler may return. `events` are for
--- this client alone, before the rest: what it missed, say.
---@param req agentbox.ServerRequest
---@param events? { data?: any, event?: string, id?: string|integer }[]
function Hub:add(req, events)
  local raw = req:_keep(self)
  self._clients[raw] = req._server
  self.count = self.count + 1
  for _, event in ipairs(events or {}) do self:_push(raw, stream.text_of(event)) end
end

---@private
function Hub:_push(raw, text)
  if self._clients[raw] and not raw:push(text) then self:_drop(raw) end
end

---@private
function Hub:_drop(raw)
  local server = self._clients[raw]
  if not server then return end
  self._clients[raw] = nil
  self.count = self.count - 1
  server._streams[raw] = nil
  raw:close()
end

--- Sends an event to every client. Who has not taken enough of the earlier ones is cut off. Never waits.
---@param event { data?: any, event?: string, id?: string|integer }
function Hub:send(event)
  if not next(self._clients) then return end
  local text = stream.text_of(event)
  local list = {}
  for raw in pairs(self._clients) do list[#list + 1] = raw end
  for _, raw in ipairs(list) do self:_push(raw, text) end
end

--- Ends all streams.
function Hub:close()
  for raw in pairs(self._clients) do
    raw:finish()
    self:_drop(raw)
  end
end

return M
