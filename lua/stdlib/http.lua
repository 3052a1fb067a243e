--- HTTP client: whole responses, streams and server-sent events, over one connection pool.
---
--- A status is a value, never an error. Errors: `network` (could not resolve or connect, TLS, cut off), `timeout`
--- (the message names which deadline), `toobig`, `protocol`; `err.phase` says how far the transfer came.
local sys = require "agentbox.sys.http"
local sse = require "agentbox.sys.sse"
local secret = require "agentbox.secret"

local M = {}

local MIB = 1024 * 1024

-- ---------------------------------------------------------------- headers

---@class agentbox.Headers
---@field [integer] [string, string]   # name and value, in the order they came
local Headers = {}
Headers.__index = Headers

--- The first value of that name; case does not matter.
---@param name string
---@return string?
function Headers:get(name)
  name = name:lower()
  for _, header in ipairs(self) do
    if header[1]:lower() == name then return header[2] end
  end
end

--- Every value of that name.
---@param name string
---@return string[]
function Headers:all(name)
  local values = {}
  name = name:lower()
  for _, header in ipairs(self) do
    if header[1]:lower() == name then values[#values + 1] = header[2] end
  end
  return values
end

-- A list of pairs or of "Name: value", or a map; sorted, so that requests are the same from run to run.
local function header_lines(headers)
  local lines = {}
  for _, header in ipairs(headers) do
    lines[#lines + 1] = type(header) == "table" and header[1] .. ": " .. secret.reveal(header[2]) or header
  end
  if #lines > 0 then return lines end
  for name, value in pairs(headers) do
    local text = secret.reveal(value)
    lines[#lines + 1] = name .. ": " .. (type(text) == "string" and text or tostring(text))
  end
  table.sort(lines)
  return lines
end

-- ---------------------------------------------------------------- proxies of the environment

local function split_url(url)
  local scheme, rest = url:match "^(%a[%w+.-]*)://([^/?#]*)"
  if not scheme then return nil end
  local authority = rest:match "@([^@]*)$" or rest
  local host, port = authority:match "^(%[[^%]]*%]):?(%d*)$"
  if not host then host, port = authority:match "^([^:]*):?(%d*)$" end
  return scheme:lower(), host and host:lower() or "", port or ""
end

-- The list of hosts that no proxy is used for: names cover what is below them, "*" is every host.
local function excluded(list, host, port)
  for item in list:lower():gmatch "[^,%s]+" do
    local name, at = item:match "^(.-):(%d+)$"
    name = (name or item):gsub("^%.", "")
    if item == "*" then return true end
    if (not at or at == port) and (host == name or host:sub(-#name - 1) == "." .. name) then return true end
  end
  return false
end

--- The proxy that the environment asks for, or nil. `HTTP_PROXY` in capitals is not read: a CGI caller could set it.
---@param url string
---@param env? fun(name: string): string?
---@return string?
function M._proxy_for(url, env)
  env = env or os.getenv
  local scheme, host, port = split_url(url)
  if not scheme or excluded(env "no_proxy" or env "NO_PROXY" or "", host, port) then return nil end
  local proxy = env(scheme .. "_proxy")
  if not proxy and scheme == "https" then proxy = env "HTTPS_PROXY" end
  proxy = proxy or env "all_proxy" or env "ALL_PROXY"
  return proxy ~= "" and proxy or nil
end

-- ---------------------------------------------------------------- requests

local passed_on = {
  "method", "url", "body", "connect_timeout_s", "first_byte_timeout_s", "idle_timeout_s", "timeout_s", "max_body_bytes",
  "unix_socket", "keep_alive", "ca_file", "ca_pem", "cert_pem", "key_pem", "insecure", "host_limit", "max_redirects",
}
local known = { headers = true, proxy = true, on_headers = true }
for _, key in ipairs(passed_on) do known[key] = true end

local function spec_of(opts, defaults)
  local spec = {}
  if type(opts) ~= "table" or type(opts.url) ~= "string" then error("http: option 'url': string expected", 3) end
  for key in pairs(opts) do
    if not known[key] then error(("http: unknown option '%s'"):format(tostring(key)), 3) end
  end
  for _, key in ipairs(passed_on) do spec[key] = opts[key] end
  for key, value in pairs(defaults) do
    if spec[key] == nil then spec[key] = value end
  end
  spec.method = spec.method or "GET"
  if spec.max_redirects == nil then spec.max_redirects = (spec.method == "GET" or spec.method == "HEAD") and 10 or 0 end
  spec.headers = opts.headers and header_lines(opts.headers) or nil
  spec.ca_file = spec.ca_file or os.getenv "SSL_CERT_FILE"
  if opts.unix_socket or opts.proxy == false then return spec end
  spec.proxy = opts.proxy or M._proxy_for(opts.url)
  return spec
end

---@class agentbox.HttpStream
---@field status integer
---@field headers agentbox.Headers
---@field url string               # after redirects
---@field ip string
local Stream = {}
Stream.__index = Stream

--- The next bytes of the body; nil at its end; nil and an error when it was cut off.
---@async
---@return string? bytes
---@return agentbox.Err? err
function Stream:read()
  return self._stream:read()
end

--- Ends the transfer. May be called twice.
function Stream:close()
  self._stream:close()
end
Stream.__close = Stream.close

---@class agentbox.HttpOptions
---@field url string
---@field method? string                # default "GET"
---@field headers? table                # a map, a list of { name, value }, or a list of "Name: value"
---@field body? string
---@field connect_timeout_s? number     # name, connection and TLS; default 10
---@field first_byte_timeout_s? number  # from the request to the first byte of the answer
---@field idle_timeout_s? number        # silence inside the answer; default 60
---@field timeout_s? number             # all of it but queueing; default 300, streams 3600
---@field max_body_bytes? integer       # default 64 MiB, streams: none
---@field unix_socket? string
---@field proxy? string|false           # default: http_proxy, https_proxy, all_proxy, no_proxy of the environment
---@field ca_file? string               # default: SSL_CERT_FILE, else the system's
---@field ca_pem? string
---@field cert_pem? string
---@field key_pem? string
---@field insecure? boolean             # do not verify the server's certificate
---@field keep_alive? boolean           # false: the connection is not kept for the next request; default true
---@field host_limit? integer           # transfers at once to this host; the rest queue. Default: no limit
---@field max_redirects? integer        # default 10 for GET and HEAD, else 0: a redirect is the response
---@field on_headers? fun(response: agentbox.HttpStream)

---@class agentbox.HttpResponse
---@field status integer
---@field headers agentbox.Headers
---@field body string
---@field url string
---@field ip string
---@field timing { queue_s?: number, dns_s?: number, connect_s?: number, first_byte_s?: number, total_s: number }

local function read_all(stream)
  local parts = {}
  while true do
    local bytes, err = stream:read()
    if err then return nil, err end
    if not bytes then return table.concat(parts) end
    parts[#parts + 1] = bytes
  end
end

local REQUEST_DEFAULTS = { connect_timeout_s = 10, idle_timeout_s = 60, timeout_s = 300, max_body_bytes = 64 * MIB }

local function with_headers(response, err)
  if not response then return nil, err end
  setmetatable(response.headers, Headers)
  return response
end

--- Sends a request and waits for the whole response, whatever its status.
---@async
---@nodiscard
---@param opts agentbox.HttpOptions
---@return agentbox.HttpResponse? response
---@return agentbox.Err? err
function M.request(opts)
  if not opts.on_headers then
    -- Nothing here holds what was asked for while the answer is waited for: there may be thousands of such waits.
    local asked = { spec_of(opts, REQUEST_DEFAULTS) }
    opts = nil -- luacheck: ignore
    return with_headers(sys.request(table.remove(asked)))
  end
  local raw, head = sys.open(spec_of(opts, REQUEST_DEFAULTS))
  if not raw then return nil, head end
  local stream <close> = setmetatable(head, Stream)
  stream._stream = raw
  setmetatable(stream.headers, Headers)
  opts.on_headers(stream)
  local body, err = read_all(stream)
  if not body then return nil, err end
  return {
    status = stream.status, headers = stream.headers, body = body, url = stream.url, ip = stream.ip,
    timing = stream.timing,
  }
end

--- Sends a request and waits for the response's headers; the body is read piece by piece.
---@async
---@nodiscard
---@param opts agentbox.HttpOptions
---@return agentbox.HttpStream? stream
---@return agentbox.Err? err
function M.open(opts)
  local spec = spec_of(opts, { connect_timeout_s = 10, idle_timeout_s = 60, timeout_s = 3600 })
  local raw, head = sys.open(spec)
  if not raw then return nil, head end
  head._stream = raw
  setmetatable(head.headers, Headers)
  return setmetatable(head, Stream)
end

--- Iterates over the server-sent events of a stream: `for event in http.events(stream) do ... event.data ... end`.
--- Raises the error when the stream is cut off; use `next_event` to get it as a value.
---@async
---@param stream agentbox.HttpStream
---@return fun(): { event: string, data: string, id: string? }?
function M.events(stream)
  local next_event = M.event_reader(stream)
  return function()
    local event, err = next_event()
    if err then error(err, 2) end
    return event
  end
end

--- The same as a function that gives the next event, nil at the end, or nil and an error.
---@param stream agentbox.HttpStream
---@return fun(): table?, agentbox.Err?
function M.event_reader(stream)
  local parser, queue, at, ended = sse.parser(), {}, 0, false
  return function()
    while at >= #queue do
      if ended then return nil end
      local bytes, err = stream:read()
      if err then return nil, err end
      ended = not bytes
      queue, at = bytes and parser:feed(bytes) or parser:finish() or {}, 0
    end
    at = at + 1
    return queue[at]
  end
end

--- Opens a stream of server-sent events and iterates over them. The response must have status 200.
---@async
---@param opts agentbox.HttpOptions
---@return fun(): table?
---@return nil
---@return nil
---@return agentbox.HttpStream
function M.sse(opts)
  local stream, err = M.open(opts)
  if not stream then error(err, 2) end
  if stream.status ~= 200 then
    stream:close()
    error(require "agentbox.err".new("protocol", ("no event stream: HTTP status %d"):format(stream.status)), 2)
  end
  return M.events(stream), nil, nil, stream
end

--- Listens, and answers requests: see `agentbox.http_server`.
---@nodiscard
---@param opts agentbox.ServerOptions
---@return agentbox.Server?
---@return agentbox.Err? err
function M.serve(opts)
  return require "agentbox.http_server".serve(opts)
end

--- Seconds since 1970 of a date as HTTP writes it, or nil.
---@param text string
---@return integer?
function M.date(text)
  return sys.date(text)
end

return M
