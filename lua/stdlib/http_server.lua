--- An HTTP/1.1 server: a fiber for each request, answers whole or piece by piece, server-sent events.
---
---     local server <close> = assert(ab.http.serve {
---       listen = "127.0.0.1:0",
---       routes = {
---         ["GET /runs/:id"] = function(req) return { json = { id = req.params.id } } end,
---         ["GET /events"] = function(req)
---           local events = req:events()
---           for i = 1, 3 do events:send { data = tostring(i) } end
---         end,
---       },
---     })
---     print(server.url)                       --> http://127.0.0.1:43121
---
--- A handler gives a text, or `{ status=, headers=, body=, json=, type= }`, or `nil, err`, which becomes a status
--- (badarg 400, notfound 404, busy 503, ...), or nothing when it has begun a stream. What it raises is a 500, is
--- logged, and harms nobody else. When the client leaves, its fiber is cancelled.
---
--- Requests are read whole before their handler runs, and strictly: what two programs could understand differently is
--- refused. Beyond the loopback a token is needed. Without one, requests must name the server as it is (`Host`), and
--- those that change something must not come from another site's page (`Origin`).
local door = require "agentbox.http_server.door"
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local log = require "agentbox.log"
local request = require "agentbox.http_server.request"
local routes = require "agentbox.http_server.routes"
local secret = require "agentbox.secret"
local sys = require "agentbox.sys.http_server"
local time = require "agentbox.sys.time"

local M = {}

---@class agentbox.ServerOptions
---@field listen string|integer          # "127.0.0.1:7000", "[::1]:0", "unix:/run/x.sock", or a port of 127.0.0.1
---@field handler? fun(req: agentbox.ServerRequest): any, agentbox.Err?   # every request; or:
---@field routes? table<string, fun(req: agentbox.ServerRequest): any, agentbox.Err?>  # by "GET /a/:name/*rest"
---@field token? string|agentbox.Secret|false   # what clients must show; false: none, even beyond the loopback
---@field open? string[]                 # paths that need no token, eight at most
---@field cookie? string                 # for browsers: ?token=TOKEN sets a cookie of this name
---@field hosts? string[]                # names by which it is reached, besides its address and localhost
---@field timeout_s? number              # from the request to the first byte of the answer; default 60
---@field ping_s? number                 # between signs of life in streams of events; default 15
---@field connections? integer           # at once; default 1024, at most half of the descriptors. More wait
---@field head_bytes? integer            # of a request's line and fields; default 32 KiB
---@field body_bytes? integer            # of a request's body; default 16 MiB
---@field held_bytes? integer            # of all bodies at once; default 256 MiB
---@field head_timeout_s? number         # for a request's line and fields; default 10
---@field body_timeout_s? number         # for its body; default 60
---@field idle_timeout_s? number         # between requests of a connection; default 75
---@field stall_timeout_s? number        # a client that takes nothing of its answer; default 30

local PASSED_ON = {
  connections = "connections", head_bytes = "head_bytes", body_bytes = "body_bytes", held_bytes = "held_bytes",
  head_timeout_s = "head_timeout", body_timeout_s = "body_timeout", idle_timeout_s = "idle_timeout",
  stall_timeout_s = "stall_timeout", cookie = "cookie", open = "open",
}
local KNOWN = {
  listen = true, handler = true, routes = true, token = true, hosts = true, timeout_s = true, ping_s = true,
}
for key in pairs(PASSED_ON) do KNOWN[key] = true end

---@class agentbox.Server
---@field address string   # "127.0.0.1:43121", "unix:/run/x.sock"
---@field url string       # "http://127.0.0.1:43121"; of a Unix socket "http://localhost"
local Server = {}
Server.__index = Server

-- ---------------------------------------------------------------- one request

local Guard = {}

-- However the handler ended, and without waiting: it may have been cancelled.
function Guard:__close(e)
  local server, raw = self.server, self.raw
  server._handling[self.fiber] = nil
  server._live = server._live - 1
  if not self.req or not self.req._kept then
    server._streams[raw] = nil
    if not raw:over() and not raw:begun() then
      local late = err.is(e) and e.code == "timeout"
      if late then request.fail(raw, 504, "timeout", "the answer took too long")
      else request.fail(raw, 500, "defect", "internal error") end
    end
    raw:close()
  end
  if server._live == 0 and server._waiter then server._waiter:wake() end
end

local function complain(req, e)
  log.error("http %s %s: %s", req.method, req.path, tostring(err.is(e) and e.msg or e))
end

-- The raised or returned error as an answer. Cancels are not seen here: they go through pcall.
local function answer_error(raw, req, e)
  if not err.is(e) then e = err.new("defect", tostring(e)) end
  local status = request.status_of(e.code)
  if status >= 500 and status ~= 503 then complain(req, e) end
  if raw:over() then return end
  if raw:begun() then raw:close() return end -- cut off, so that the client can tell
  request.fail(raw, status, e.code, status == 500 and "internal error" or e.msg)
end

local function handle(server, raw, method, target)
  local me = fiber.current()
  local guard <close> = setmetatable({ server = server, raw = raw, fiber = me }, Guard)
  server._live = server._live + 1
  server._handling[me] = true
  raw:bind()
  local status, code, why = server._door:check(raw, method)
  if status then return request.fail(raw, status, code, why) end
  local req = request.new(server, raw, method, target)
  guard.req = req
  if server._door:set_cookie(raw, req) then return end
  me:set_deadline(time.monotonic() + server._timeout)
  local ok, value, problem = pcall(server._handler, req)
  if not ok then
    answer_error(raw, req, value)
  elseif value == nil and problem ~= nil then
    answer_error(raw, req, problem)
  elseif raw:begun() then
    if not req._kept then raw:finish() end
  elseif not raw:over() then
    local sent, wrong = request.answer(raw, value)
    if not sent then answer_error(raw, req, wrong) end
  end
end

local function pump(server, raw)
  while true do
    local one, method, target = raw:next()
    if not one then return end
    fiber.spawn(handle, server, one, method, target)
  end
end

-- ---------------------------------------------------------------- life

-- Keeps streams of events alive through proxies, and finds those whose client is gone.
local function ping(server, every)
  while server._raw do
    fiber.sleep(every)
    for raw, owner in pairs(server._streams) do
      if not raw:push ": \n\n" and raw:over() and type(owner) == "table" then owner:_drop(raw) end
    end
  end
end

-- Its owner is the fiber that writes it, or a hub.
---@private
function Server:_add_stream(raw, owner)
  self._streams[raw] = owner
  self._pinger = self._pinger or fiber.spawn(ping, self, self._ping_s)
end

--- Accepts nothing more, ends the streams of events, waits for the handlers that run, then cuts off what is left.
--- May be called twice.
---@async
---@param grace_s? number   # how long to wait; default 5
function Server:stop(grace_s)
  local raw = self._raw
  if not raw then return end
  raw:stop()
  local reason = err.new("cancelled", "the server stops")
  for stream, owner in pairs(self._streams) do
    stream:finish()
    if type(owner) == "table" then owner:_drop(stream) else owner:cancel(reason) end
  end
  if self._live > 0 then
    self._waiter = fiber.current()
    fiber.park(grace_s or 5)
    self._waiter = nil
  end
  self:close()
end

--- Cuts off everything at once. May be called twice.
function Server:close()
  local raw = self._raw
  if not raw then return end
  self._raw = nil
  local reason = err.new("cancelled", "the server was closed")
  for one in pairs(self._handling) do one:cancel(reason) end
  if self._pinger then self._pinger:cancel() end
  raw:close()
end
Server.__close = Server.close

--- Connections now, requests so far, and so on.
---@return { connections: integer, accepted: integer, requests: integer, refused: integer, gone: integer }
function Server:stats()
  if not self._raw then error("the server is closed", 2) end
  return self._raw:stats()
end

local function check(opts)
  if type(opts) ~= "table" then error("http.serve: options expected", 3) end
  for key in pairs(opts) do
    if not KNOWN[key] then error(("http.serve: unknown option '%s'"):format(tostring(key)), 3) end
  end
  if (opts.handler == nil) == (opts.routes == nil) then
    error("http.serve: either 'handler' or 'routes' is needed", 3)
  end
  if opts.token == "" then error("http.serve: option 'token' is empty", 3) end
end

--- Listens, and answers from then on.
---@nodiscard
---@param opts agentbox.ServerOptions
---@return agentbox.Server?
---@return agentbox.Err? err
function M.serve(opts)
  check(opts)
  local where, problem = door.where(opts.listen)
  if not where then return nil, problem end
  local token = opts.token and secret.reveal(opts.token) or nil
  if token then secret.register(token) end
  if not token and opts.token ~= false and not where.loopback then
    return nil, err.new("badarg", ("listening on %s needs a token, as others can reach it: set AGENTBOX_TOKEN (from Lua: token)"):format(opts.listen))
  end
  local spec = { path = where.path, host = where.host, port = where.port, token = token }
  for key, name in pairs(PASSED_ON) do spec[name] = opts[key] end
  local raw
  raw, problem = sys.listen(spec)
  if not raw then return nil, problem end
  local self = setmetatable({
    _raw = raw, _handler = opts.handler or routes.new(opts.routes), _timeout = opts.timeout_s or 60,
    _ping_s = opts.ping_s or 15, _live = 0, _handling = {}, _streams = {}, address = raw:address(),
  }, Server)
  self.url = where.path and "http://localhost" or "http://" .. self.address
  self._door = door.new { where = where, hosts = opts.hosts, token = token, cookie = opts.cookie }
  fiber.spawn(pump, self, raw)
  return self
end

--- What a handler may give to refuse: `return ab.http_server.problem(409, "superseded", "...")`.
---@param status integer
---@param code string    # for programs
---@param msg string     # for people
---@return table
function M.problem(status, code, msg) return request.problem(status, code, msg) end

--- Events for many clients at once, none of which takes a fiber: `hub:add(req)` in the handler, `hub:send(event)` from
--- anywhere. A client that does not keep up is cut off: it comes back, with `Last-Event-ID` if the events have ids.
---@return agentbox.EventHub
function M.hub()
  return require "agentbox.http_server.hub".new()
end

return M
