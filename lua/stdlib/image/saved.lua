--- image/saved.lua: images from what `docker save` and its kin write.
local bundle = require "agentbox.image.bundle"
local document = require "agentbox.image.document"
local err = require "agentbox.err"
local json = require "agentbox.json"
local name = require "agentbox.image.name"

local M = {}

local function saved_layers(self, dir, entry)
  local layers = {}
  for i, path in ipairs(entry.Layers) do
    if type(path) ~= "string" then return bundle.invalid "manifest.json" end
    local digest, size = bundle.take(self, dir, path)
    if not digest then return nil, size end
    layers[i] = { digest = digest, size = size, mediaType = document.layer_type(self:blob_path(digest)) }
  end
  return layers
end

local function saved_names(entry, opts)
  if opts.name then return { opts.name } end
  local tags = {}
  for _, tag in ipairs(json.is_array(entry.RepoTags) and entry.RepoTags or {}) do tags[#tags + 1] = tostring(tag) end
  if #tags > 0 then return tags end
  return nil, err.new("badarg", "the file does not say what its image is called", { hint = "say it: --name NAME" })
end

local function saved_image(self, dir, entry, opts)
  if not json.is_object(entry) or type(entry.Config) ~= "string" or not json.is_array(entry.Layers) then
    return bundle.invalid "manifest.json"
  end
  local names, problem = saved_names(entry, opts)
  if not names then return nil, problem end
  local config, size = bundle.take(self, dir, entry.Config)
  if not config then return nil, size end
  local layers
  layers, problem = saved_layers(self, dir, entry)
  if not layers then return nil, problem end
  local manifest
  manifest, problem = self:put(document.encode({ digest = config, size = size }, layers))
  if not manifest then return nil, problem end
  local images = {}
  for i, text in ipairs(names) do
    local called
    called, problem = name.parse(text)
    if not called then return nil, problem end
    images[i], problem = require "agentbox.image"._adopt(self, name.text(called), manifest, "import", opts)
    if not images[i] then return nil, problem end
  end
  return images
end

---The images of an unpacked `docker save`.
---@async
---@param self agentbox.image.Store
---@param dir string
---@param opts agentbox.image.ImportOpts
---@return agentbox.Image[]?
---@return agentbox.Err?
function M.import(self, dir, opts)
  local text, problem = bundle.read(dir, "manifest.json")
  local list
  if text then list, problem = json.decode(text) end
  if problem then return nil, problem end
  if not json.is_array(list) or #list == 0 then return bundle.invalid "manifest.json lists no images" end
  if opts.name and #list > 1 then
    return nil, err.new("badarg", "the file has several images, so --name cannot be given")
  end
  local images = {}
  for _, entry in ipairs(list) do
    local some
    some, problem = saved_image(self, dir, entry, opts)
    if not some then return nil, problem end
    table.move(some, 1, #some, #images + 1, images)
  end
  return images
end

return M
