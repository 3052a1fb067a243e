--- docker/api.lua: the Engine API on its socket, Docker's or podman's; no program of theirs is run.
---
--- Every call has a deadline. A daemon that is not there, hangs or answers nonsense is a failure of code `sandbox`; what
--- the daemon refuses keeps its own words.
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local fs = require "agentbox.sys.fs"
local http = require "agentbox.http"
local json = require "agentbox.json"
local os_ = require "agentbox.sys.os"
local path = require "agentbox.path"
local sys_http = require "agentbox.sys.http"

local M = {}

local CALL_S = 60        -- when neither the caller nor AGENTBOX_DOCKER_TIMEOUT_S says otherwise
local CONNECT_S = 10
local HEAD_MAX = 16 << 10
local NEWEST = { 1, 47 } -- what was tried; a daemon's own newest is used below that

---@class agentbox.docker.Api
---@field engine string      # "docker" or "podman"
---@field address string     # as a person writes it
---@field call_s number
---@field keep_alive? boolean  # false: a connection for each call
local Api = {}
Api.__index = Api

-- ---------------------------------------------------------------- where it listens

local function exists(socket)
  local st = fs.stat(socket)
  return st ~= nil and st.type == "socket"
end

local function default_address(engine)
  local runtime = os_.env "XDG_RUNTIME_DIR"
  local system = engine == "podman" and "/run/podman/podman.sock" or "/var/run/docker.sock"
  local own = runtime and runtime .. (engine == "podman" and "/podman/podman.sock" or "/docker.sock")
  return "unix://" .. (own and not exists(system) and exists(own) and own or system)
end

local function tls_of(self, dir)
  for key, file in pairs { ca_pem = "ca.pem", cert_pem = "cert.pem", key_pem = "key.pem" } do
    local text, problem = fs.read(path.join(dir, file), 1 << 20)
    if not text then return nil, err.wrap(problem, "DOCKER_CERT_PATH") end
    self.tls[key] = text
  end
  return true
end

---Where the engine is, as its own tools would find it: DOCKER_HOST, DOCKER_TLS_VERIFY, DOCKER_CERT_PATH; for podman
---CONTAINER_HOST. Nothing is connected yet.
---@param engine "docker"|"podman"
---@param address? string     # instead of what the environment says
---@return agentbox.docker.Api?
---@return agentbox.Err?
function M.new(engine, address)
  local variable = engine == "podman" and "CONTAINER_HOST" or "DOCKER_HOST"
  address = address or os_.env(variable)
  if not address or address == "" then address = default_address(engine) end
  local self = setmetatable({
    engine = engine, address = address, tls = {},
    call_s = tonumber(os_.env "AGENTBOX_DOCKER_TIMEOUT_S" or "") or CALL_S,
  }, Api)
  local scheme, rest = address:match "^(%a+)://(.+)$"
  if scheme == "unix" then
    self.socket, self.base = rest, "http://" .. engine
    return self
  elseif scheme ~= "tcp" and scheme ~= "http" and scheme ~= "https" then
    return nil, err.new("config", ("%s=%s: unix:///path or tcp://host:port expected"):format(variable, address))
  end
  local verify = os_.env "DOCKER_TLS_VERIFY"
  local secure = scheme == "https" or verify ~= nil and verify ~= ""
  self.base = (secure and "https://" or "http://") .. rest:gsub("/+$", "")
  if not secure then return self end
  local dir = os_.env "DOCKER_CERT_PATH" or (os_.env "HOME" or "") .. "/.docker"
  local ok, problem = tls_of(self, dir)
  if not ok then return nil, problem end
  return self
end

---A list of an answer; the engines write null for an empty one.
---@param value any
---@return table
function M.list(value)
  return json.is_array(value) and value or {}
end

-- ---------------------------------------------------------------- calls

local function escape(text)
  return (tostring(text):gsub("[^%w_.~-]", function(c) return ("%%%02X"):format(c:byte()) end))
end

local function target(self, name, query)
  local parts = {}
  for key, value in pairs(query or {}) do
    if type(value) == "table" then value = json.encode(value) end
    parts[#parts + 1] = key .. "=" .. escape(value)
  end
  table.sort(parts)
  return (self.prefix or "") .. name .. (#parts > 0 and "?" .. table.concat(parts, "&") or "")
end

local function spec_of(self, method, name, opts)
  return {
    method = method, url = self.base .. target(self, name, opts.query), unix_socket = self.socket, proxy = false,
    ca_pem = self.tls.ca_pem, cert_pem = self.tls.cert_pem, key_pem = self.tls.key_pem,
    connect_timeout_s = math.min(CONNECT_S, opts.timeout_s or self.call_s), timeout_s = opts.timeout_s or self.call_s,
    keep_alive = self.keep_alive,
  }
end

local TITLES = { docker = "Docker", podman = "podman" }

-- What curl says becomes what it means: the engine is not there, or does not answer.
local function unreachable(self, problem)
  if problem.code == "cancelled" then return problem end
  local what = problem.code == "timeout" and "did not answer" or "cannot be reached"
  return err.new("sandbox", ("%s %s at %s: %s"):format(TITLES[self.engine], what, self.address, problem.msg),
    { hint = ("is it running, and may this user use its socket? `agentbox doctor` looks"), cause = problem.code })
end

local CODES = { [400] = "badarg", [401] = "denied", [403] = "denied", [404] = "notfound", [409] = "busy" }

local function refused(self, response, what)
  local body = json.decode(response.body)
  local msg = json.is_object(body) and (body.message or body.cause) or response.body:sub(1, 200)
  return err.new(CODES[response.status] or "sandbox",
    ("%s: %s: %s"):format(TITLES[self.engine], what, tostring(msg):gsub("%s+$", "")), { http_status = response.status })
end

-- The daemon tells its newest version; asked once.
local function negotiate(self)
  if self.prefix then return true end
  local response, problem = http.request(spec_of(self, "GET", "/_ping", {}))
  if not response then return nil, unreachable(self, problem) end
  if response.status ~= 200 then return nil, refused(self, response, "ping") end
  local major, minor = (response.headers:get "Api-Version" or ""):match "^(%d+)%.(%d+)$"
  if not major then return nil, err.new("sandbox", self.address .. " does not speak the Engine API") end
  major, minor = tonumber(major), tonumber(minor)
  if major == NEWEST[1] and minor > NEWEST[2] then minor = NEWEST[2] end
  self.version = ("%d.%d"):format(major, minor)
  self.prefix = "/v" .. self.version
  return true
end

---@async
---@param method string
---@param name string          # "/containers/create"
---@param opts? { query?: table, json?: any, body?: string, content_type?: string, headers?: table, timeout_s?: number }
---@return agentbox.HttpResponse? response   # with status 2xx or 304
---@return agentbox.Err? err
function Api:send(method, name, opts)
  opts = opts or {}
  local ok, problem = negotiate(self)
  if not ok then return nil, problem end
  local spec = spec_of(self, method, name, opts)
  spec.headers, spec.body = opts.headers or {}, opts.body
  if opts.json then
    spec.body = json.encode(opts.json)
    spec.headers["Content-Type"] = "application/json"
  elseif opts.content_type then
    spec.headers["Content-Type"] = opts.content_type
  elseif method == "POST" and not spec.body then
    spec.body = ""
  end
  if opts.on_headers then spec.on_headers = opts.on_headers end
  local response
  response, problem = http.request(spec)
  if not response then return nil, unreachable(self, problem) end
  if response.status >= 300 and response.status ~= 304 then
    return nil, refused(self, response, method .. " " .. name)
  end
  return response
end

---The same, with the answer decoded; true when there is none.
---@async
---@return any value
---@return agentbox.Err? err
function Api:call(method, name, opts)
  local response, problem = self:send(method, name, opts)
  if not response then return nil, problem end
  if response.body == "" then return true end
  local value = json.decode(response.body)
  if value == nil then return nil, err.new("sandbox", ("%s answered %s with no JSON"):format(self.address, name)) end
  return value
end

---A long answer of one JSON value a line: progress of a pull or a build. An `error` in it is an error.
---@async
---@param on_event fun(event: table)
---@return true? ok
---@return agentbox.Err? err
function Api:follow(method, name, opts, on_event)
  local ok, problem = negotiate(self)
  if not ok then return nil, problem end
  local spec = spec_of(self, method, name, opts)
  spec.body, spec.headers = opts.body or "", opts.headers
  spec.timeout_s, spec.idle_timeout_s = opts.timeout_s or 3600, 600
  local stream
  stream, problem = http.open(spec)
  if not stream then return nil, unreachable(self, problem) end
  local _ <close> = stream
  local held = ""
  while true do
    local bytes
    bytes, problem = stream:read()
    if problem then return nil, unreachable(self, problem) end
    held = held .. (bytes or "\n")
    for line in held:gmatch "([^\n]*)\n" do
      local event = line:find "%S" and json.decode(line)
      if stream.status >= 300 and line:find "%S" then
        return nil, refused(self, { status = stream.status, body = line }, name)
      elseif json.is_object(event) and (event.error or event.errorDetail) then
        return nil, err.new("sandbox", tostring(event.error or event.errorDetail.message))
      elseif json.is_object(event) then
        on_event(event)
      end
    end
    held = held:match "[^\n]*$"
    if not bytes then return true end
  end
end

-- ---------------------------------------------------------------- attach

local function read_head(connection)
  local got = ""
  while not got:find("\r\n\r\n", 1, true) do
    local bytes, problem = connection:recv()
    if not bytes then return nil, problem or err.new("sandbox", "the daemon closed the connection") end
    got = got .. bytes
    if #got > HEAD_MAX then return nil, err.new("sandbox", "the daemon's answer has no end") end
  end
  local head, rest = got:match "^(.-\r\n)\r\n(.*)$"
  return tonumber(head:match "^HTTP/1%.%d (%d%d%d)") or 0, rest
end

---A container's stdin and output as one stream of bytes, both ways.
---@async
---@param id string
---@return agentbox.sys.HttpConnection? connection
---@return string|agentbox.Err? first_or_err    # bytes that came with the head
function Api:attach(id)
  local ok, problem = negotiate(self)
  if not ok then return nil, problem end
  local name = "/containers/" .. id .. "/attach"
  local spec = spec_of(self, "POST", name, {})
  spec.proxy = nil
  local connection
  connection, problem = sys_http.connect(spec)
  if not connection then return nil, unreachable(self, problem) end
  local late, kept
  local alarm = fiber.spawn(function()
    fiber.sleep(self.call_s)
    late = true
    connection:close()
  end)
  -- Also when whoever asked is cancelled meanwhile.
  local _ <close> = setmetatable({}, { __close = function()
    alarm:cancel()
    if not kept then connection:close() end
  end })
  local query = { stream = 1, stdin = 1, stdout = 1, stderr = 1 }
  local sent
  sent, problem = connection:send(("POST %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
    .. "Content-Type: text/plain\r\n\r\n"):format(target(self, name, query), self.engine))
  local status, rest
  if sent then status, rest = read_head(connection) else rest = problem end
  kept = (status == 101 or status == 200) and not late
  if kept then return connection, rest end
  if late then rest = err.new("timeout", ("no answer within %g s (attach)"):format(self.call_s)) end
  if not status then return nil, unreachable(self, rest) end
  return nil, refused(self, { status = status, body = rest }, "attach")
end

return M
