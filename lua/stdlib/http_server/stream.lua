--- Answers that are written piece by piece, and server-sent events.
local json = require "agentbox.json"

local M = {}

---@class agentbox.ServerStream
local Stream = {}
Stream.__index = Stream

---@param raw userdata
---@return agentbox.ServerStream
function M.new(raw) return setmetatable({ _raw = raw }, Stream) end

--- Writes bytes. Waits while the client is slow. Nil and an error (network) when it has left.
---@async
---@param bytes string
---@return boolean? ok
---@return agentbox.Err? err
function Stream:write(bytes) return self._raw:write(bytes) end

--- The end of the answer, which is that of its handler otherwise.
function Stream:close() self._raw:finish() end

-- ---------------------------------------------------------------- events

--- The text of an event. `data` that is no text becomes JSON.
---@param event { data?: any, event?: string, id?: string|integer }
---@return string
function M.text_of(event)
  local lines = {}
  for _, name in ipairs { "event", "id" } do
    local value = event[name]
    if value ~= nil then
      value = tostring(value)
      if value:find "[\r\n%z]" then error(("events: '%s' must be one line"):format(name), 3) end
      lines[#lines + 1] = ("%s: %s\n"):format(name, value)
    end
  end
  local data = event.data
  if data == nil then data = "" end
  if type(data) ~= "string" then data = json.encode(data) end
  for line in (data:gsub("\r\n?", "\n") .. "\n"):gmatch "([^\n]*)\n" do
    lines[#lines + 1] = "data: " .. line .. "\n"
  end
  lines[#lines + 1] = "\n"
  return table.concat(lines)
end

---@class agentbox.EventStream
local Events = {}
Events.__index = Events

---@param raw userdata
---@return agentbox.EventStream
function M.events(raw) return setmetatable({ _raw = raw }, Events) end

--- Sends an event: `{ data=, event=, id= }`. Waits while the client is slow. Nil and an error (network) when it has
--- left.
---@async
---@param event { data?: any, event?: string, id?: string|integer }
---@return boolean? ok
---@return agentbox.Err? err
function Events:send(event) return self._raw:write(M.text_of(event)) end

return M
