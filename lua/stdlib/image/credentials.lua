--- image/credentials.lua: who we are to a registry. What belongs to one registry is never sent to another.
---
--- `AGENTBOX_REGISTRY_AUTH` holds HOST=USER:PASSWORD, several separated by blanks; then `auths` of
--- $DOCKER_CONFIG/config.json, else ~/.docker/config.json, as `docker login` writes it without a helper.
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local os_ = require "agentbox.sys.os"
local secret = require "agentbox.secret"

local M = {}

local ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

---@param bytes string
---@return string
function M.base64(bytes)
  local out = {}
  for i = 1, #bytes, 3 do
    local a, b, c = bytes:byte(i, i + 2)
    local word = a << 16 | (b or 0) << 8 | (c or 0)
    for shift = 18, 0, -6 do
      local digit = (word >> shift & 63) + 1
      out[#out + 1] = ALPHABET:sub(digit, digit)
    end
  end
  local text = table.concat(out)
  local pad = (3 - #bytes % 3) % 3
  return text:sub(1, #text - pad) .. ("="):rep(pad)
end

local function from_environment(registry)
  for host, pair in (os_.env "AGENTBOX_REGISTRY_AUTH" or ""):gmatch "([^%s=]+)=(%S+)" do
    if host == registry then return M.base64(pair) end
  end
end

-- Docker writes its own hub as a URL.
local function host_of(key)
  local host = key:gsub("^https?://", ""):match "^[^/]+"
  return host == "index.docker.io" and "docker.io" or host
end

local function from_docker(registry)
  local dir = os_.env "DOCKER_CONFIG" or (os_.env "HOME" or "") .. "/.docker"
  local config = json.decode(fs.read(dir .. "/config.json", 1 << 20) or "null")
  local auths = json.is_object(config) and config.auths
  if not json.is_object(auths) then return nil end
  for key, entry in pairs(auths) do
    if host_of(key) == registry and json.is_object(entry) then
      if type(entry.auth) == "string" and entry.auth ~= "" then return entry.auth end
      if type(entry.username) == "string" and type(entry.password) == "string" then
        return M.base64(entry.username .. ":" .. entry.password)
      end
    end
  end
end

---The value of a Basic header for that registry, or nil.
---@async
---@param registry string
---@return agentbox.Secret?
function M.basic(registry)
  local value = from_environment(registry) or from_docker(registry)
  return value and secret.new("Basic " .. value) or nil
end

return M
