--- image/gc.lua: takes away what no name needs.
local child = require "agentbox.image.child"
local document = require "agentbox.image.document"
local fiber = require "agentbox.sys.fiber"
local fs = require "agentbox.sys.fs"
local hash = require "agentbox.sys.hash"
local store = require "agentbox.image.store"
local tree = require "agentbox.image.tree"

local M = {}

local CHUNK = 1 << 20

local function digest_of(path)
  local file, hasher = io.open(path, "rb"), hash.hasher()
  if not file then return nil end
  for bytes in function() return file:read(CHUNK) end do
    hasher:update(bytes)
    fiber.yield()
  end
  file:close()
  return hasher:hex()
end

-- Damaged ones go first: what they belong to can then be pulled again.
local function check(self, counts)
  for _, entry in ipairs(fs.list(self:path "blobs/sha256") or {}) do
    local path = self:path("blobs/sha256", entry.name)
    if digest_of(path) ~= entry.name and fs.remove(path) then counts.damaged = counts.damaged + 1 end
  end
end

-- Digits of blobs, and keys of trees, that names lead to. A tree may be called as one of its blobs.
local function needed(self)
  local blobs, trees = {}, {}
  for _, ref in ipairs(self:refs()) do
    blobs[store.hex(ref.manifest)] = true
    local manifest = document.manifest(self:document(ref.manifest) or {})
    local config = manifest and document.config(self:document(manifest.config.digest), #manifest.layers)
    if manifest then
      blobs[store.hex(manifest.config.digest)] = true
      for _, layer in ipairs(manifest.layers) do blobs[store.hex(layer.digest)] = true end
    end
    if config then
      local chain = tree.chain(config.diff_ids)
      trees[tree.key(chain[#chain])] = true
    end
  end
  return blobs, trees
end

local function sweep_blobs(self, keep, counts)
  for _, entry in ipairs(fs.list(self:path "blobs/sha256") or {}) do
    local path = self:path("blobs/sha256", entry.name)
    local stat = not keep[entry.name] and fs.stat(path)
    if stat and fs.remove(path) then
      counts.blobs, counts.bytes = counts.blobs + 1, counts.bytes + stat.size
    end
  end
end

-- A running sandbox's engine holds a lock on its tree. Renamed first, so that a half removed one is never found.
local function sweep_trees(self, keep, counts)
  for _, entry in ipairs(fs.list(self:path "trees") or {}) do
    if not keep[entry.name] then
      local lock <close> = fs.lock(self:path("locks", "use-" .. entry.name))
      if not lock then
        counts.in_use = counts.in_use + 1
      else
        local facts = tree.facts(self, entry.name)
        local name, path = self:temporary()
        if fs.rename(self:path("trees", entry.name), path) and child.remove(self:path "tmp", name) then
          counts.trees, counts.bytes = counts.trees + 1, counts.bytes + (facts and facts.bytes or 0)
        end
      end
    end
  end
end

---@async
---@param opts { check?: boolean }
---@return table?
---@return agentbox.Err?
function M.gc(opts)
  local self, problem = store.open()
  if not self then return nil, problem end
  local lock <close>, busy = self:lock("store", { wait_s = 30 })
  if not lock then return nil, busy end
  local counts = { blobs = 0, trees = 0, leftovers = self:_sweep(), damaged = 0, bytes = 0, in_use = 0 }
  for _, entry in ipairs(fs.list(self:path "partial") or {}) do
    if fs.remove(self:path("partial", entry.name)) then counts.leftovers = counts.leftovers + 1 end
  end
  if opts.check then check(self, counts) end
  local blobs, trees = needed(self)
  sweep_blobs(self, blobs, counts)
  sweep_trees(self, trees, counts)
  return counts
end

return M
