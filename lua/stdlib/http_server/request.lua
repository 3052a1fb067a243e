--- A request as its handler sees it, and what a handler gives as bytes.
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local json = require "agentbox.json"
local stream = require "agentbox.http_server.stream"
local time = require "agentbox.sys.time"

local M = {}

local TEXT, JSON = "text/plain; charset=utf-8", "application/json"

-- ---------------------------------------------------------------- answers

local STATUS = {
  badarg = 400, parse = 400, usage = 400, denied = 403, notfound = 404, exists = 409, invalid = 422, toobig = 413,
  busy = 503, full = 507, timeout = 504, unsupported = 501,
}

--- The HTTP status that an error's code becomes.
---@param code string
---@return integer
function M.status_of(code) return STATUS[code] or 500 end

--- What a handler may give to refuse: an error for machines.
---@param status integer
---@param code string
---@param msg string
---@return table
function M.problem(status, code, msg)
  return { status = status, json = json.object { error = json.object { code = code, msg = msg } } }
end

-- A map or a list of { name, value }, as a flat list with the type first.
local function flat(headers, kind)
  local list, typed = {}, false
  local function add(name, value)
    if name:lower() == "content-type" then typed = true end
    list[#list + 1], list[#list + 2] = name, tostring(value)
  end
  for _, pair in ipairs(headers or {}) do add(pair[1], pair[2]) end
  local names = {}
  for name in pairs(headers or {}) do
    if type(name) == "string" then names[#names + 1] = name end
  end
  table.sort(names)
  for _, name in ipairs(names) do add(name, headers[name]) end
  if kind and not typed then list[#list + 1], list[#list + 2] = "Content-Type", kind end
  return list
end
M.flat = flat

--- Sends what a handler gave.
---@param raw userdata
---@param value any
---@return boolean? ok
---@return agentbox.Err? err
function M.answer(raw, value)
  if value == nil then return raw:answer(204) end
  if type(value) == "string" then return raw:answer(200, { "Content-Type", TEXT }, value) end
  if type(value) ~= "table" then return nil, err.new("defect", "a handler gives a text or a table") end
  if value.json ~= nil then
    return raw:answer(value.status or 200, flat(value.headers, value.type or JSON), json.encode(value.json) .. "\n")
  end
  local body = value.body or ""
  return raw:answer(value.status or 200, flat(value.headers, value.type or body ~= "" and TEXT or nil), body)
end

--- Answers with an error.
---@param raw userdata
---@param status integer
---@param code string
---@param msg string
function M.fail(raw, status, code, msg)
  M.answer(raw, M.problem(status, code, msg))
end

-- ---------------------------------------------------------------- requests

--- Percent-decoding; nil when it is not well encoded, or hides a NUL.
---@param text string
---@return string?
function M.percent(text)
  if not text:find("%", 1, true) then return text end
  if text:gsub("%%%x%x", ""):find("%", 1, true) then return nil end
  local plain = text:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end)
  return not plain:find("\0", 1, true) and plain or nil
end

---@class agentbox.ServerRequest
---@field method string               # "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"
---@field target string               # as it came: path and query
---@field path string                 # without the query, still encoded
---@field params table<string, string>  # the parts of the path that the route names, decoded
local Request = {}
Request.__index = Request

---@param server agentbox.Server
---@param raw userdata
---@param method string
---@param target string
---@return agentbox.ServerRequest
function M.new(server, raw, method, target)
  return setmetatable({
    _server = server, _raw = raw, method = method, target = target, path = target:match "^[^?]*", params = {},
  }, Request)
end

--- The value of the only field of that name; case does not matter.
---@param name string
---@return string?
function Request:header(name) return self._raw:field(name) end

--- All fields, in the order they came.
---@return [string, string][]
function Request:headers() return self._raw:fields() end

--- The whole body, bytes.
---@return string
function Request:body() return self._raw:body() end

--- Who asks: "127.0.0.1:50312", or "unix".
---@return string
function Request:peer() return self._raw:peer() end

--- The query, decoded; of a name that comes twice the last. Nil and an error when it is not well encoded.
---@return table<string, string>?
---@return agentbox.Err? err
function Request:query()
  local map = {}
  for pair in (self.target:match "%?(.*)$" or ""):gmatch "[^&]+" do
    local name, value = pair:match "^([^=]*)=(.*)$"
    name, value = M.percent(((name or pair):gsub("+", " "))), M.percent(((value or ""):gsub("+", " ")))
    if not name or not value then return nil, err.new("badarg", "the query is not well encoded") end
    map[name] = value
  end
  return map
end

--- The body as JSON. Nil and an error (parse) when it is none; an empty body is nil too.
---@return any
---@return agentbox.Err? err
function Request:json()
  return json.decode(self:body())
end

--- Moves the deadline for the answer's first byte, as for a client that waits for something to happen.
---@param seconds number   # from now on
function Request:allow(seconds) -- luacheck: ignore 212
  fiber.current():set_deadline(time.monotonic() + seconds)
end

local function begin(self, opts, kind)
  local raw = self._raw
  local ok, problem = raw:begin(opts.status or 200, flat(opts.headers, opts.type or kind))
  if not ok then error(problem.msg, 3) end
  fiber.current():set_deadline(nil)
  return raw
end

--- Begins an answer whose length is not known. The handler writes, and the answer ends when the handler does; when it
--- raises, the client sees that something is missing.
---@param opts? { status?: integer, headers?: table, type?: string }
---@return agentbox.ServerStream
function Request:stream(opts)
  return stream.new(begin(self, opts or {}, "application/octet-stream"))
end

local EVENTS = {
  headers = { { "Cache-Control", "no-store" }, { "X-Accel-Buffering", "no" } }, type = "text/event-stream",
}

--- Begins a stream of server-sent events. Comments are sent now and then, so that whoever is between sees life.
---@param opts? { retry_s?: number }   # how long a browser waits before it comes back
---@return agentbox.EventStream
function Request:events(opts)
  local raw = begin(self, EVENTS, nil)
  self._server:_add_stream(raw, fiber.current())
  if opts and opts.retry_s then raw:push(("retry: %d\n\n"):format(opts.retry_s * 1000 // 1)) end
  return stream.events(raw)
end

-- A stream of events that outlives its handler: the hub has it from now on.
---@private
function Request:_keep(hub)
  local raw = begin(self, EVENTS, nil)
  self._server:_add_stream(raw, hub)
  raw:unbind()
  self._kept = true
  return raw
end

return M
