--- image/layout.lua: images from an OCI layout.
local bundle = require "agentbox.image.bundle"
local document = require "agentbox.image.document"
local err = require "agentbox.err"
local json = require "agentbox.json"
local name = require "agentbox.image.name"
local store = require "agentbox.image.store"

local M = {}

local function blob_in(descriptor)
  return "blobs/sha256/" .. store.hex(descriptor.digest)
end

local function named(annotations)
  if not json.is_object(annotations) then return nil end
  local full = annotations["io.containerd.image.name"]
  return type(full) == "string" and full or annotations["org.opencontainers.image.ref.name"]
end

local function oci_manifest(dir, descriptor, opts)
  local text, problem = bundle.read(dir, blob_in(descriptor))
  if not text then return nil, problem end
  local decoded
  decoded, problem = document.decode(text)
  if not decoded then return nil, problem end
  if document.is_index(decoded) then
    local chosen
    chosen, problem = document.choose(decoded, opts.platform)
    if not chosen then return nil, problem end
    return oci_manifest(dir, chosen, opts)
  end
  local manifest
  manifest, problem = document.manifest(decoded)
  return manifest, problem, descriptor.digest
end

local function oci_image(self, dir, descriptor, called, opts)
  local manifest, problem, digest = oci_manifest(dir, descriptor, opts)
  if not manifest then return nil, problem end
  local blobs = { { digest = digest }, manifest.config }
  table.move(manifest.layers, 1, #manifest.layers, 3, blobs)
  for _, blob in ipairs(blobs) do
    if not self:blob_size(blob.digest) then
      local ok
      ok, problem = bundle.take(self, dir, blob_in(blob), blob.digest)
      if not ok then return nil, problem end
    end
  end
  return require "agentbox.image"._adopt(self, called, digest, "import", opts)
end

-- Which images of the index are wanted, and what they are to be called.
local function oci_wanted(index, opts)
  local wanted, names = {}, {}
  for _, entry in ipairs(index.manifests) do
    if json.is_object(entry) and type(entry.digest) == "string" and name.is_digest(entry.digest) then
      local own = named(entry.annotations)
      names[#names + 1] = own
      if not opts.ref or own == opts.ref then
        wanted[#wanted + 1] = { descriptor = entry, name = opts.name or own }
      end
    end
  end
  if #wanted == 0 then return nil, err.new("notfound", "the layout has no image " .. (opts.ref or "at all")) end
  if opts.name and #wanted > 1 then -- the same for several machines, or several images
    local chosen, problem = document.choose(index, opts.platform)
    if not chosen then
      return nil, err.new("badarg", "the layout has several images: " .. table.concat(names, ", "),
        { hint = "say which: --ref NAME", cause = problem })
    end
    wanted = { { descriptor = chosen, name = opts.name } }
  end
  for _, one in ipairs(wanted) do
    if not one.name then
      return nil, err.new("badarg", "the layout does not say what its image is called",
        { hint = "say it: --name NAME" })
    end
  end
  return wanted
end

---The images of an OCI layout, all of them or the one that is asked for.
---@async
---@param self agentbox.image.Store
---@param dir string
---@param opts agentbox.image.ImportOpts
---@return agentbox.Image[]?
---@return agentbox.Err?
function M.import(self, dir, opts)
  local text, problem = bundle.read(dir, "index.json")
  local index
  if text then index, problem = document.decode(text) end
  if not index then return nil, problem end
  if not document.is_index(index) then return bundle.invalid "index.json lists no images" end
  local wanted
  wanted, problem = oci_wanted(index, opts)
  if not wanted then return nil, problem end
  local images = {}
  for i, one in ipairs(wanted) do
    local called, image
    called, problem = name.parse(one.name)
    if not called then return nil, problem end
    image, problem = oci_image(self, dir, one.descriptor, name.text(called), opts)
    if not image then return nil, problem end
    images[i] = image
  end
  return images
end

return M
