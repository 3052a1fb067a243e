--- image/download.lua: one blob from a registry into the store; what was cut off goes on where it stopped.
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local fs = require "agentbox.sys.fs"
local hash = require "agentbox.sys.hash"
local retry = require "agentbox.models.retry"
local store = require "agentbox.image.store"

local M = {}

local RETRY = { max_tries = 6, max_s = 3600, base_s = 1, cap_s = 20 }
local CHUNK = 1 << 20

---@class agentbox.image.Descriptor
---@field digest string
---@field size integer
---@field mediaType? string

-- What is there of an earlier try, hashed.
local function hash_file(path, hasher)
  local file = io.open(path, "rb")
  if not file then return hasher end
  for bytes in function() return file:read(CHUNK) end do
    hasher:update(bytes)
    fiber.yield()
  end
  file:close()
  return hasher
end

-- Where the bytes of the answer belong; nil when the registry has an idea of its own.
local function offset_of(stream, wanted)
  if stream.status == 200 then return 0 end
  local first = (stream.headers:get "content-range" or ""):match "^bytes (%d+)-"
  return tonumber(first) == wanted and wanted or nil
end

local function receive(stream, file, hasher, at, blob, on_bytes)
  while true do
    local bytes, problem = stream:read()
    if problem then return nil, problem, true end
    if not bytes then return at end
    at = at + #bytes
    if at > blob.size then
      return nil, err.new("protocol", ("%s is longer than the %d bytes of the manifest"):format(blob.digest, blob.size))
    end
    hasher:update(bytes)
    local ok
    ok, problem = file:write(bytes)
    if not ok then return nil, problem end
    if on_bytes then on_bytes(#bytes) end
  end
end

-- One try: what is missing behind the `file:size()` bytes that are there.
local function attempt(registry, blob, file, path, on_bytes)
  local have = file:size()
  if have > blob.size then
    file:truncate(0)
    have = 0
  end
  local hasher = hash_file(path, hash.hasher())
  if have < blob.size or blob.size == 0 then
    local stream <close>, problem, again, after = registry:blob(blob.digest, have)
    if not stream then return nil, problem, again, after end
    local at = offset_of(stream, have)
    if not at then
      file:truncate(0)
      return nil, err.new("protocol", "the registry answered with another part of the blob than was asked for"), true
    elseif at < have then
      file:truncate(0)
      hasher = hash.hasher()
    end
    local got
    got, problem, again = receive(stream, file, hasher, at, blob, on_bytes)
    if not got then return nil, problem, again end
    if got < blob.size then
      return nil, err.new("network", ("%s ended after %d of %d bytes"):format(blob.digest, got, blob.size)), true
    end
  end
  if "sha256:" .. hasher:hex() == blob.digest then return true end
  file:truncate(0)
  -- Half of it may have been the damaged rest of an earlier try.
  local problem = err.new("protocol", ("what came as %s has the digest sha256:%s"):format(blob.digest, hasher:hex()))
  return nil, problem, have > 0
end

---@async
---@param self agentbox.image.Store
---@param registry agentbox.image.Registry
---@param blob agentbox.image.Descriptor
---@param on_bytes? fun(n: integer)
---@return true?
---@return agentbox.Err?
function M.blob(self, registry, blob, on_bytes)
  local lock <close>, problem = self:lock("blob-" .. store.hex(blob.digest), { wait_s = 3600 })
  if not lock then return nil, problem end
  if self:blob_size(blob.digest) == blob.size then return true end
  local path = self:path("partial", store.hex(blob.digest))
  local file <close>, bad = fs.append_open(path, 384) -- 0600
  if not file then return nil, bad end
  local ok
  ok, problem = retry.run(RETRY, function() return attempt(registry, blob, file, path, on_bytes) end)
  if not ok then return nil, problem end
  ok, problem = file:sync()
  if not ok then return nil, problem end
  return fs.rename(path, self:blob_path(blob.digest))
end

return M
