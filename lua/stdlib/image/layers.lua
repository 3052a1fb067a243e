--- image/layers.lua: makes new layers: what a frozen sandbox changed, and files of the host.
local child = require "agentbox.image.child"
local document = require "agentbox.image.document"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local time = require "agentbox.sys.time"

local M = {}

local MEDIA_TYPE = "application/vnd.oci.image.layer.v1.tar"

---@class agentbox.image.Layer
---@field digest string
---@field diff_id string    # the same: layers made here are not compressed
---@field size integer
---@field mediaType string

local function keep(self, path, counts)
  local diff_id = "sha256:" .. counts.diff_ids[1]
  local ok, problem = fs.rename(path, self:blob_path(diff_id))
  if not ok then return nil, problem end
  return { digest = diff_id, diff_id = diff_id, size = counts.bytes, mediaType = MEDIA_TYPE }
end

---The layers of a frozen sandbox, from the given one on, lowest first.
---@async
---@param self agentbox.image.Store
---@param frozen agentbox.Layer
---@param ids integer[]
---@param opts { from?: integer, skip?: string }
---@return agentbox.image.Layer[]?
---@return agentbox.Err?
function M.pack(self, frozen, ids, opts)
  local layers, parts = {}, frozen:parts()
  for i = opts.from or 1, #parts do
    local _, path = self:temporary()
    local counts, problem = child.pack(parts[i], path, ids, opts.skip)
    if counts then layers[#layers + 1], problem = keep(self, path, counts) end
    if problem then
      fs.remove(path)
      return nil, problem
    end
  end
  return layers
end

---@async
---@param self agentbox.image.Store
---@param files { from: string, to: string }[]
---@param how { uid: integer, gid: integer, mode?: integer }
---@return agentbox.image.Layer?
---@return agentbox.Err?
function M.copy(self, files, how)
  local _, path = self:temporary()
  local counts, problem = child.copy(path, files, how)
  local layer
  if counts then layer, problem = keep(self, path, counts) end
  if not layer then fs.remove(path) end
  return layer, problem
end

---@class agentbox.image.Settings
---@field env string[]       # "NAME=VALUE", in order
---@field workdir? string
---@field user? string

---Writes configuration and manifest of an image and gives it a name.
---@async
---@param self agentbox.image.Store
---@param called string
---@param image { layers: agentbox.image.Layer[], config?: table, settings?: agentbox.image.Settings, steps: { text: string, empty?: boolean }[], source: string }
---@return agentbox.Image?
---@return agentbox.Err?
function M.finish(self, called, image)
  local old = image.config or {}
  local config = json.object {}
  for key, value in pairs(json.is_object(old.config) and old.config or {}) do config[key] = value end
  if image.settings then
    local settings = image.settings
    config.Env, config.WorkingDir, config.User = json.array(settings.env), settings.workdir, settings.user
  end
  local diff_ids, history = json.array {}, json.array {}
  for i, layer in ipairs(image.layers) do diff_ids[i] = layer.diff_id end
  for i, entry in ipairs(json.is_array(old.history) and old.history or {}) do history[i] = entry end
  for _, step in ipairs(image.steps) do
    history[#history + 1] = { created = time.iso(time.now()), created_by = step.text, empty_layer = step.empty or nil }
  end
  local text = json.encode(json.object({
    architecture = old.architecture or document.architecture(), os = "linux", created = time.iso(time.now()),
    config = config, rootfs = { type = "layers", diff_ids = diff_ids }, history = history,
  }, { "architecture", "os", "created", "config", "rootfs", "history" }))
  local id, problem = self:put(text)
  if not id then return nil, problem end
  local manifest
  manifest, problem = self:put(document.encode({ digest = id, size = #text }, image.layers))
  if not manifest then return nil, problem end
  return require "agentbox.image"._adopt(self, called, manifest, image.source)
end

return M
