--- image/pull.lua: an image from a registry.
local async = require "agentbox.async"
local document = require "agentbox.image.document"
local download = require "agentbox.image.download"
local err = require "agentbox.err"
local hash = require "agentbox.sys.hash"
local name = require "agentbox.image.name"
local registry = require "agentbox.image.registry"
local store = require "agentbox.image.store"

local M = {}

local AT_ONCE = 3
local CONFIG_MAX = 8 << 20

-- A document with the digest that was promised for it.
local function fetch(from, digest)
  local text, problem = from:manifest(digest)
  if not text then return nil, problem end
  local got = "sha256:" .. hash.sha256(text)
  if got ~= digest then
    return nil, err.new("protocol", ("what came as manifest %s has the digest %s"):format(digest, got))
  end
  return text
end

-- The manifest for this machine: its text and what it says.
local function manifest_of(from, called, platform)
  local text, problem
  if called.digest then text, problem = fetch(from, called.digest) else text, problem = from:manifest(called.tag) end
  if not text then return nil, problem end
  local decoded
  decoded, problem = document.decode(text)
  if not decoded then return nil, problem end
  if document.is_index(decoded) then
    local chosen
    chosen, problem = document.choose(decoded, platform)
    if not chosen then return nil, problem end
    text, problem = fetch(from, chosen.digest)
    if not text then return nil, problem end
    decoded, problem = document.decode(text)
    if not decoded then return nil, problem end
  end
  local manifest
  manifest, problem = document.manifest(decoded)
  if not manifest then return nil, problem end
  return text, manifest
end

local function progress(layers, on_progress)
  if not on_progress then return nil end
  local done, total = 0, 0
  for _, layer in ipairs(layers) do total = total + layer.size end
  return function(n)
    done = done + n
    on_progress(done, total)
  end
end

-- All at once, the first failure ends the others.
local function fetch_blobs(self, from, manifest, on_progress)
  if manifest.config.size > CONFIG_MAX then
    return nil, err.new("toobig", "the image's configuration is larger than 8 MiB")
  end
  local ok, problem = download.blob(self, from, manifest.config)
  if not ok then return nil, problem end
  local on_bytes = progress(manifest.layers, on_progress)
  local failed
  async.each(manifest.layers, function(layer)
    if failed then return end
    local fine, bad = download.blob(self, from, layer, on_bytes)
    if not fine then failed = failed or bad end
  end, { limit = AT_ONCE })
  if failed then return nil, failed end
  return true
end

---@async
---@param text string
---@param opts agentbox.image.PullOpts
---@return agentbox.Image?
---@return agentbox.Err?
function M.pull(text, opts)
  local called, problem = name.parse(text)
  if not called then return nil, problem end
  local self
  self, problem = store.open()
  if not self then return nil, problem end
  local lock <close>, busy = self:use()
  if not lock then return nil, busy end
  local from = registry.new(called, opts)
  local manifest_text, manifest = manifest_of(from, called, opts.platform)
  if not manifest_text then return nil, manifest end
  local ok
  ok, problem = fetch_blobs(self, from, manifest, opts.on_progress)
  if not ok then return nil, problem end
  local digest
  digest, problem = self:put(manifest_text)
  if not digest then return nil, problem end
  return require "agentbox.image"._adopt(self, name.text(called), digest, "pull", { max_bytes = opts.max_bytes })
end

return M
