--- Who may come in: where the server listens, by which names it may be called, from whose pages.
local err = require "agentbox.err"

local M = {}

--- Where to listen, as people write it.
---@param listen any
---@return { path?: string, host?: string, port?: integer, loopback: boolean }?
---@return agentbox.Err? err
function M.where(listen)
  if math.type(listen) == "integer" then listen = "127.0.0.1:" .. listen end
  if type(listen) ~= "string" then error("http.serve: option 'listen': \"ADDRESS:PORT\" expected", 4) end
  local path = listen:match "^unix:(.+)$"
  if path then return { path = path, loopback = true } end
  local host, port = listen:match "^%[([%x:.]+)%]:(%d+)$"
  if not host then host, port = listen:match "^([^:%[%]]+):(%d+)$" end
  port = tonumber(port)
  if not host or port > 65535 then
    return nil, err.new("badarg", ('cannot listen on "%s": write ADDRESS:PORT or unix:PATH'):format(listen))
  end
  local loopback = host == "localhost" or host == "::1" or host:find "^127%.%d+%.%d+%.%d+$" ~= nil
  return { host = host, port = port, loopback = loopback }
end

---@class agentbox.ServerDoor
local Door = {}
Door.__index = Door

---@param about { where: table, hosts?: string[], token?: string, cookie?: string }
---@return agentbox.ServerDoor
function M.new(about)
  local hosts = { localhost = true, ["127.0.0.1"] = true, ["[::1]"] = true }
  local host = about.where.host
  if host then hosts[host:find ":" and ("[" .. host .. "]") or host] = true end
  for _, name in ipairs(about.hosts or {}) do hosts[name:lower()] = true end
  return setmetatable({ _hosts = hosts, _strict = not about.token and host ~= nil, _cookie = about.cookie }, Door)
end

local function name_of(authority)
  return (authority:lower():gsub(":%d*$", ""))
end

--- A page of another site can make a browser send requests here: by a name of its own that leads to this machine, which
--- `Host` tells, or across sites, which `Origin` tells. A token in a header cannot be sent so.
---@param raw userdata
---@param method string
---@return integer? status
---@return string? code
---@return string? why
function Door:check(raw, method)
  local host = raw:field "Host"
  if self._strict and host and not self._hosts[name_of(host)] then
    return 421, "denied", "this server is not known by that name"
  end
  if method == "GET" or method == "HEAD" then return end
  local origin = raw:field "Origin"
  if origin and not raw:field "Authorization" and origin:match "^%a+://(.*)$" ~= host then
    return 403, "denied", "requests from pages of other sites are refused"
  end
end

--- A browser that came with the token in the address gets it as a cookie, and an address without it.
---@param raw userdata
---@param req agentbox.ServerRequest
---@return boolean answered
function Door:set_cookie(raw, req)
  if not self._cookie or not raw:by_query() or (req.method ~= "GET" and req.method ~= "HEAD") then return false end
  local kept = {}
  for pair in (req.target:match "%?(.*)$"):gmatch "[^&]+" do
    if pair:sub(1, 6) ~= "token=" then kept[#kept + 1] = pair end
  end
  local token = req.target:match "[?&]token=([^&]*)"
  local back = req.path .. (#kept > 0 and "?" .. table.concat(kept, "&") or "")
  assert(raw:answer(303, {
    "Location", back:gsub("^/+", "/"), "Cache-Control", "no-store", "Referrer-Policy", "no-referrer",
    "Set-Cookie", ("%s=%s; Path=/; HttpOnly; SameSite=Strict"):format(self._cookie, token),
  }, ""))
  return true
end

return M
