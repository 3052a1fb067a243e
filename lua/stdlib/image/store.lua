--- image/store.lua: the images of this user, on disk.
---
---     refs/NAME.json        which manifest a name means
---     blobs/sha256/HEX      manifests, configurations and layers, as they came; never changed
---     trees/KEY/root        the files of an image, unpacked; KEY is the chain of its layers, and who owns the files
---     partial/HEX           a download that was cut off
---     tmp/                  what is being made; renamed when it is whole
---     locks/
---
--- Everything in it is whole or not there: a kill leaves something in tmp/ and partial/ at most. Who uses the store
--- holds locks/store shared; who takes away from it, or sweeps tmp/, holds it alone. Who runs sandboxes from a tree
--- holds locks/use-KEY shared.
local child = require "agentbox.image.child"
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local fs = require "agentbox.sys.fs"
local hash = require "agentbox.sys.hash"
local json = require "agentbox.json"
local os_ = require "agentbox.sys.os"
local rand = require "agentbox.sys.rand"
local time = require "agentbox.sys.time"

local M = {}

local CHUNK = 1 << 20
local DOCUMENT_MAX = 8 << 20

---@class agentbox.image.Store
---@field dir string
local Store = {}
Store.__index = Store

---@private
---@type string?   # tests have stores of their own
M._home = nil

---Where the store is: below $AGENTBOX_HOME, else $XDG_DATA_HOME/agentbox, else ~/.local/share/agentbox.
---@return string? dir
---@return agentbox.Err?
function M.dir()
  local home = M._home or os_.env "AGENTBOX_HOME"
  if not home or home == "" then
    local data = os_.env "XDG_DATA_HOME"
    if not data or data:sub(1, 1) ~= "/" then
      data = os_.env "HOME"
      if not data or data == "" then
        return nil, err.new("config", "no place for images: HOME is not set",
          { hint = "set AGENTBOX_HOME to a folder" })
      end
      data = data .. "/.local/share"
    end
    home = data .. "/agentbox"
  end
  if home:sub(1, 1) ~= "/" then home = fs.cwd() .. "/" .. home end
  return home .. "/images"
end

---Opens the store. To look at it only, it need not be there; else it is made.
---@param look? boolean
---@return agentbox.image.Store?
---@return agentbox.Err?
function M.open(look)
  local dir, problem = M.dir()
  if not dir then return nil, problem end
  if look then return setmetatable({ dir = dir }, Store) end
  for _, name in ipairs { "refs", "blobs/sha256", "trees", "partial", "tmp", "locks" } do
    local ok
    ok, problem = fs.mkdir(dir .. "/" .. name, true)
    if not ok then return nil, problem end
  end
  return setmetatable({ dir = dir }, Store)
end

---@param ... string
---@return string
function Store:path(...)
  return table.concat({ self.dir, ... }, "/")
end

---A lock on a name, waited for. `busy` when it was not free in time.
---@async
---@param name string
---@param opts { shared?: boolean, wait_s: number }
---@return { close: fun(self) }?
---@return agentbox.Err?
function Store:lock(name, opts)
  local deadline, pause = time.monotonic() + opts.wait_s, 0.005
  while true do
    local lock, problem = fs.lock(self:path("locks", name), opts.shared)
    if lock or problem.code ~= "busy" then return lock, problem end
    if time.monotonic() >= deadline then
      return nil, err.new("busy", ("the image store %s is in use by another agentbox"):format(self.dir))
    end
    fiber.sleep(pause)
    pause = math.min(pause * 2, 0.2)
  end
end

---For everyone who uses the store: nothing is taken away meanwhile. Sweeps first, when nobody else is there.
---@async
---@return { close: fun(self) }?
---@return agentbox.Err?
function Store:use()
  local alone = fs.lock(self:path("locks", "store"))
  if alone then
    self:_sweep()
    alone:close()
  end
  return self:lock("store", { shared = true, wait_s = 600 })
end

---What a killed process was making. The store must be locked alone.
---@async
---@return integer count
function Store:_sweep()
  local count = 0
  for _, entry in ipairs(fs.list(self:path "tmp") or {}) do
    if child.remove(self:path "tmp", entry.name) then count = count + 1 end
  end
  return count
end

---A new name in tmp/.
---@return string name
---@return string path
function Store:temporary()
  local name = ("%d-%s"):format(os_.pid(), rand.uuid4():sub(1, 13))
  return name, self:path("tmp", name)
end

---The digits of a digest.
---@param digest string
---@return string
function M.hex(digest)
  return (digest:match "^sha256:(%x+)$")
end

---@param digest string
---@return string
function Store:blob_path(digest)
  return self:path("blobs/sha256", M.hex(digest))
end

---@param digest string
---@return integer? size
function Store:blob_size(digest)
  local stat = fs.stat(self:blob_path(digest))
  return stat and stat.size
end

---@async
---@param bytes string
---@return string? digest
---@return agentbox.Err?
function Store:put(bytes)
  local digest = "sha256:" .. hash.sha256(bytes)
  local ok, problem = fs.write(self:blob_path(digest), bytes)
  if not ok then return nil, problem end
  return digest
end

---A small blob, checked again.
---@async
---@param digest string
---@return string? bytes
---@return agentbox.Err?
function Store:read(digest)
  local bytes, problem = fs.read(self:blob_path(digest), DOCUMENT_MAX)
  if not bytes then return nil, problem end
  if "sha256:" .. hash.sha256(bytes) == digest then return bytes end
  return nil, err.new("io", ("the image store is damaged: blob %s does not have that digest"):format(digest),
    { hint = "agentbox image gc --check removes it; then pull the image again" })
end

---@async
---@param digest string
---@return table?
---@return agentbox.Err?
function Store:document(digest)
  local bytes, problem = self:read(digest)
  if not bytes then return nil, problem end
  return json.decode(bytes)
end

---Copies a file into the store as a blob. With `expected` its digest must be that. `reader` gives its bytes piece by
---piece, as io.read does.
---@async
---@param reader fun(n: integer): string?
---@param expected? string
---@return string? digest
---@return integer|agentbox.Err size
function Store:ingest(reader, expected)
  local _, path = self:temporary()
  local file <close>, problem = fs.append_open(path, 384) -- 0600
  if not file then return nil, problem end
  local hasher, size = hash.hasher(), 0
  for bytes in function() return reader(CHUNK) end do
    hasher:update(bytes)
    size = size + #bytes
    local ok
    ok, problem = file:write(bytes)
    if not ok then break end
    fiber.yield()
  end
  local digest = "sha256:" .. hasher:hex()
  if not problem and expected and digest ~= expected then
    problem = err.new("protocol", ("%s has the digest %s"):format(expected, digest))
  end
  if not problem then
    local ok
    ok, problem = file:sync()
    if ok then ok, problem = fs.rename(path, self:blob_path(digest)) end
    if ok then return digest, size end
  end
  fs.remove(path)
  return nil, problem
end

local function encode_name(text)
  return (text:gsub("[^%w._-]", function(c) return ("%%%02X"):format(c:byte()) end))
end

local function decode_name(file)
  return (file:gsub("%.json$", ""):gsub("%%(%x%x)", function(h) return string.char(tonumber(h, 16)) end))
end

---@class agentbox.image.Ref
---@field name string
---@field manifest string    # digest
---@field config string      # digest, which is the image's id
---@field source string      # "pull", "import", "build", "commit"
---@field at number          # unix time

---@async
---@param ref agentbox.image.Ref
---@return true?
---@return agentbox.Err?
function Store:set_ref(ref)
  return fs.write(self:path("refs", encode_name(ref.name) .. ".json"), json.encode(ref) .. "\n")
end

---@async
---@param name string
---@return agentbox.image.Ref?
function Store:ref(name)
  local text = fs.read(self:path("refs", encode_name(name) .. ".json"), DOCUMENT_MAX)
  return text and json.decode(text) or nil
end

---@async
---@return agentbox.image.Ref[]   # by name
function Store:refs()
  local refs = {}
  for _, entry in ipairs(fs.list(self:path "refs") or {}) do
    if entry.name:find "%.json$" then refs[#refs + 1] = self:ref(decode_name(entry.name)) end
  end
  return refs
end

---@async
---@param name string
---@return true?
---@return agentbox.Err?
function Store:remove_ref(name)
  return fs.remove(self:path("refs", encode_name(name) .. ".json"))
end

return M
