--- image/registry.lua: the distribution protocol, the reading half. Whatever a registry says is checked: sizes and
--- digests of everything, and its answers are bounded.
local credentials = require "agentbox.image.credentials"
local err = require "agentbox.err"
local http = require "agentbox.http"
local json = require "agentbox.json"
local name = require "agentbox.image.name"
local os_ = require "agentbox.sys.os"
local retry = require "agentbox.models.retry"
local secret = require "agentbox.secret"

local M = {}

local DOCUMENT_MAX = 4 << 20
local RETRY = { max_tries = 4, max_s = 120, base_s = 1, cap_s = 20 }

local ACCEPT = table.concat({
  "application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json",
  "application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json",
}, ", ")

---@class agentbox.image.Registry
---@field private _base string
---@field private _name agentbox.image.Name
---@field private _authorization? agentbox.Secret
---@field private _insecure boolean
local Registry = {}
Registry.__index = Registry

local function is_loopback(host)
  return host:find "^localhost$" ~= nil or host:find "^localhost:%d+$" ~= nil or host:find "^127%.[%d.]+$" ~= nil
      or host:find "^127%.[%d.]+:%d+$" ~= nil or host:find "^%[::1%]" ~= nil
end

---@param of agentbox.image.Name
---@param opts? { insecure?: boolean }
---@return agentbox.image.Registry
function M.new(of, opts)
  local insecure = opts and opts.insecure or is_loopback(of.registry)
  local host = of.registry == "docker.io" and "registry-1.docker.io" or of.registry
  local base = ("%s://%s/v2/%s/"):format(insecure and "http" or "https", host, of.repository)
  return setmetatable({ _name = of, _insecure = insecure, _base = base }, Registry)
end

-- ---------------------------------------------------------------- authentication

---The parameters of `WWW-Authenticate: Bearer realm="...",...`; the scheme in lower case as `scheme`.
---@param header string
---@return table<string, string>
function M._challenge(header)
  local out = { scheme = (header:match "^%s*(%a+)" or ""):lower() }
  for key, value in header:gmatch '(%a+)="([^"]*)"' do out[key:lower()] = value end
  return out
end

local function encode(text)
  return (text:gsub("[^%w._~-]", function(c) return ("%%%02X"):format(c:byte()) end))
end

-- A password goes over TLS, or to this machine.
local function may_send_to(url, insecure)
  return url:find "^https://" ~= nil or (insecure and url:find "^http://" ~= nil)
end

function Registry:_token(challenge, basic)
  local realm = challenge.realm or ""
  if not may_send_to(realm, self._insecure) then
    return nil, err.new("protocol", ("asked to go to %s for a token, which is not https"):format(realm:sub(1, 200)))
  end
  local scope = challenge.scope or ("repository:%s:pull"):format(self._name.repository)
  local url = ("%s%sscope=%s"):format(realm, realm:find("?", 1, true) and "&" or "?", encode(scope))
  if challenge.service then url = url .. "&service=" .. encode(challenge.service) end
  local response, problem = http.request {
    url = url, headers = { Authorization = basic }, max_body_bytes = 1 << 20, timeout_s = 30,
  }
  if not response then return nil, problem end
  local answer = response.status == 200 and json.decode(response.body)
  local token = json.is_object(answer) and (answer.token or answer.access_token)
  if type(token) == "string" then return secret.new("Bearer " .. token) end
  return nil, err.new("denied", ("%s gave no token: HTTP %d"):format(realm:sub(1, 200), response.status),
    { hint = M.LOGIN_HINT:format(self._name.registry) })
end

M.LOGIN_HINT = "check the name; for a private image: docker login %s, or AGENTBOX_REGISTRY_AUTH=HOST=USER:PASSWORD"

-- After a 401: true when another try makes sense.
function Registry:_authenticate(headers)
  local basic = credentials.basic(self._name.registry)
  local refused
  for _, header in ipairs(headers:all "www-authenticate") do
    local challenge = M._challenge(header)
    if challenge.scheme == "bearer" then
      self._authorization, refused = self:_token(challenge, basic)
      return self._authorization ~= nil, refused
    elseif challenge.scheme == "basic" and basic and may_send_to(self._base, self._insecure) then
      self._authorization = basic
      return true
    end
  end
  return false, err.new("denied", self._name.registry .. " wants a user and a password",
    { hint = M.LOGIN_HINT:format(self._name.registry) })
end

-- ---------------------------------------------------------------- requests

local function refusal(self, what, stream)
  local status = stream.status
  if status == 404 then
    return err.new("notfound", ("%s has no %s of %s"):format(self._name.registry, what, name.text(self._name)))
  elseif status == 401 or status == 403 then
    return err.new("denied", ("%s refuses %s: HTTP %d"):format(self._name.registry, name.text(self._name), status),
      { hint = M.LOGIN_HINT:format(self._name.registry) })
  elseif status == 429 then
    return err.new("network", self._name.registry .. " says that we ask too often (HTTP 429)",
      { hint = "wait, or log in: " .. M.LOGIN_HINT:format(self._name.registry) })
  end
  return err.new("protocol", ("%s answers HTTP %d to a request for a %s"):format(self._name.registry, status, what))
end

local function is_good(status)
  return status == 200 or status == 206 or status == 416
end

---One request, authenticated when asked to. Gives the stream of a good answer.
---@async
---@param path string     # below the repository
---@param what string     # for errors
---@param headers table<string, string>
---@return agentbox.HttpStream?
---@return agentbox.Err?
---@return boolean? again
---@return number? after_s
function Registry:open(path, what, headers)
  for try = 1, 2 do
    local sent = { Authorization = self._authorization, ["User-Agent"] = "agentbox/" .. os_.version }
    for key, value in pairs(headers) do sent[key] = value end
    local stream, problem = http.open { url = self._base .. path, headers = sent, first_byte_timeout_s = 60 }
    if not stream then return nil, problem, problem.code == "network" or problem.code == "timeout" end
    if is_good(stream.status) then return stream end
    stream:close()
    local ok
    if stream.status == 401 and try == 1 then ok, problem = self:_authenticate(stream.headers) end
    if not ok then
      return nil, problem or refusal(self, what, stream), retry.status(stream.status),
        retry.after(stream.headers:get "retry-after", os.time(), http.date)
    end
  end
end

local function read_capped(stream)
  local parts, size = {}, 0
  while true do
    local bytes, problem = stream:read()
    if problem then return nil, problem, true end
    if not bytes then return table.concat(parts) end
    size = size + #bytes
    if size > DOCUMENT_MAX then return nil, err.new("toobig", "the registry's manifest is larger than 4 MiB") end
    parts[#parts + 1] = bytes
  end
end

---A manifest or an index, by tag or digest, as the registry wrote it. The caller checks its digest.
---@async
---@param reference string
---@return string? bytes
---@return agentbox.Err?
function Registry:manifest(reference)
  return retry.run(RETRY, function()
    local stream <close>, problem, again, after = self:open("manifests/" .. reference, "manifest", { Accept = ACCEPT })
    if not stream then return nil, problem, again, after end
    return read_capped(stream)
  end)
end

---A blob from `offset` on. The stream's status says whether the registry went along with that (206) or begins anew
---(200); 416 when there is nothing beyond.
---@async
---@param digest string
---@param offset integer
---@return agentbox.HttpStream?
---@return agentbox.Err?
---@return boolean? again
---@return number? after_s
function Registry:blob(digest, offset)
  return self:open("blobs/" .. digest, "blob " .. digest:sub(1, 19), {
    Range = offset > 0 and ("bytes=%d-"):format(offset) or nil,
  })
end

return M
