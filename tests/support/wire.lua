--- Bytes to and from a server of ours, as a client that knows no rules would send them.
local async = require "agentbox.async"
local sys = require "agentbox.sys.http"

local M = {}

local Wire = {}
Wire.__index = Wire

---@param at agentbox.Server
function M.connect(at)
  return setmetatable({ _c = assert(sys.connect { url = at.url, connect_timeout_s = 10, timeout_s = 60 }), _held = "" }, Wire)
end

--- Waits until the function says so, for as long as a slow machine may take.
function M.wait(done)
  for _ = 1, 30000 do
    if done() then return end
    async.sleep(0.001)
  end
  error("it never came", 2)
end

--- Sends everything; false when the server has closed.
function Wire:send(bytes)
  local from = 1
  while from <= #bytes do
    local n = self._c:send(bytes, from)
    if not n then return false end
    from = from + n
    if from <= #bytes and not self._c:wait_writable() then return false end
  end
  return true
end

local function more(self)
  local bytes = self._c:recv()
  self._held = self._held .. (bytes or "")
  return bytes ~= nil
end

--- The next head: { status, fields (lower case) }; nil when the server has closed.
function Wire:head()
  while not self._held:find("\r\n\r\n", 1, true) do
    if not more(self) then return nil end
  end
  local text, rest = self._held:match "^(.-\r\n)\r\n(.*)$"
  local head = { status = tonumber(text:match "^HTTP/1%.1 (%d+) "), fields = {} }
  for name, value in text:gmatch "([^\r\n:]+): ([^\r\n]*)\r\n" do head.fields[name:lower()] = value end
  self._held = rest
  return head
end

--- The next answer whose length is said.
function Wire:response()
  local head = self:head()
  local length = head and tonumber(head.fields["content-length"])
  while length and #self._held < length do
    if not more(self) then return nil end
  end
  if not length then return head end
  head.body, self._held = self._held:sub(1, length), self._held:sub(length + 1)
  return head
end

--- What is left until the server closes.
function Wire:rest()
  while more(self) do end -- luacheck: ignore 542
  return self._held
end

function Wire:close() self._c:close() end
Wire.__close = Wire.close

return M
