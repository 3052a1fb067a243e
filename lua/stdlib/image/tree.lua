--- image/tree.lua: the files of an image as one directory, which sandboxes stand on.
---
--- One directory, not one for each layer: a sandbox's overlay has then one lower directory whose ids are mapped once,
--- on any kernel and without privileges; whiteouts are gone when it is made. What images have in common is stored
--- once all the same: a tree starts as hard links to the longest chain of its layers that is there already.
local child = require "agentbox.image.child"
local err = require "agentbox.err"
local fs = require "agentbox.sys.fs"
local hash = require "agentbox.sys.hash"
local json = require "agentbox.json"
local os_ = require "agentbox.sys.os"
local store = require "agentbox.image.store"

local M = {}

--- Caps on what an image may unpack to.
M.MAX_BYTES = 64 << 30
M.MAX_ENTRIES = 4000000

-- A bomb is an archive that grows out of proportion; small ones may.
local RATIO, RATIO_FREE = 250, 1 << 30

---The chain of layers as one digest for each length, as the OCI specification has it.
---@param diff_ids string[]
---@return string[]
function M.chain(diff_ids)
  local chain = {}
  for i, diff_id in ipairs(diff_ids) do
    chain[i] = i == 1 and diff_id or "sha256:" .. hash.sha256(chain[i - 1] .. " " .. diff_id)
  end
  if #chain == 0 then chain[1] = "sha256:" .. hash.sha256 "" end
  return chain
end

---@param chain_id string
---@return string
function M.key(chain_id)
  return store.hex(chain_id) .. (child.keeps_owners() and "" or "-u" .. os_.uid())
end

---The path of a tree that is whole, or nil.
---@param self agentbox.image.Store
---@param chain_id string
---@return string?
function M.find(self, chain_id)
  local dir = self:path("trees", M.key(chain_id))
  return fs.exists(dir .. "/tree.json") and dir .. "/root" or nil
end

---@async
---@param self agentbox.image.Store
---@param key string
---@return { entries: integer, bytes: integer, skipped: integer, stripped: integer }?
function M.facts(self, key)
  local text = fs.read(self:path("trees", key, "tree.json"), 65536)
  return text and json.decode(text) or nil
end

local function cap(archives, limit)
  local packed = 0
  for _, archive in ipairs(archives) do
    local stat = fs.stat(archive.path)
    packed = packed + (stat and stat.size or 0)
  end
  return math.min(limit or M.MAX_BYTES, math.max(RATIO_FREE, RATIO * packed))
end

-- Unpacks into tmp/; gives its name there and what was counted.
local function unpack(self, archives, base, opts)
  local name, path = self:temporary()
  local ok, problem = fs.mkdir(path .. "/root", true)
  if not ok then return nil, problem end
  local counts
  counts, problem = child.unpack(path .. "/root", archives, {
    base = base, max_bytes = cap(archives, opts.max_bytes), max_entries = opts.max_entries or M.MAX_ENTRIES,
  })
  if counts then
    ok, problem = fs.write(path .. "/tree.json", json.encode {
      entries = counts.entries, bytes = counts.bytes, skipped = counts.skipped, stripped = counts.stripped,
    } .. "\n")
    if ok then return name, counts end
  end
  child.remove(self:path "tmp", name)
  return nil, problem
end

-- The longest chain that is unpacked already, and how many layers it has.
local function nearest(self, chain)
  for i = #chain - 1, 1, -1 do
    local base = M.find(self, chain[i])
    if base then return base, i end
  end
  return nil, 0
end

local function archives_of(self, layers, diff_ids, first)
  local archives = {}
  for i = first, #layers do
    archives[#archives + 1] = { path = self:blob_path(layers[i]), diff_id = store.hex(diff_ids[i]) }
  end
  return archives
end

---Makes the tree of an image whose layers are in the store, unless it is there.
---@async
---@param self agentbox.image.Store
---@param layers string[]     # digests
---@param diff_ids string[]   # as many
---@param opts { max_bytes?: integer, max_entries?: integer }
---@return string? root
---@return agentbox.Err?
function M.make(self, layers, diff_ids, opts)
  local chain = M.chain(diff_ids)
  local key = M.key(chain[#chain])
  local lock <close>, problem = self:lock("tree-" .. key, { wait_s = 3600 })
  if not lock then return nil, problem end
  local root = M.find(self, chain[#chain])
  if root then return root end
  local base, have = nearest(self, chain)
  local name
  name, problem = unpack(self, archives_of(self, layers, diff_ids, have + 1), base, opts)
  if not name then return nil, problem end
  local ok
  ok, problem = fs.rename(self:path("tmp", name), self:path("trees", key))
  if not ok then return nil, problem end
  return M.find(self, chain[#chain])
end

---Unpacks one archive whose diff id is not known; gives it.
---@async
---@param self agentbox.image.Store
---@param layer string
---@param opts { max_bytes?: integer, max_entries?: integer }
---@return string? diff_id
---@return agentbox.Err?
function M.discover(self, layer, opts)
  local name, counts = unpack(self, { { path = self:blob_path(layer) } }, nil, opts)
  if not name then return nil, counts end
  local diff_id = "sha256:" .. counts.diff_ids[1]
  local target = self:path("trees", M.key(diff_id))
  local lock <close>, problem = self:lock("tree-" .. M.key(diff_id), { wait_s = 3600 })
  local ok = lock and (M.find(self, diff_id) and child.remove(self:path "tmp", name))
  if lock and not ok then ok, problem = fs.rename(self:path("tmp", name), target) end
  if not ok then return nil, problem end
  return diff_id
end

---Keeps a tree from being collected as long as this process lives.
---@async
---@param self agentbox.image.Store
---@param key string
---@return true?
---@return agentbox.Err?
function M.hold(self, key)
  local id = self.dir .. "\0" .. key
  if M._held[id] then return true end
  local lock, problem = self:lock("use-" .. key, { shared = true, wait_s = 60 })
  if not lock then return nil, problem end
  if not M.facts(self, key) then
    lock:close()
    return nil, err.new("notfound", "the image was removed meanwhile")
  end
  M._held[id] = lock
  return true
end

---@private
---@type table<string, { close: fun(self) }>
M._held = {}

return M
