--- image/document.lua: manifests, indexes and configurations, as OCI and Docker write them; checked before use.
local err = require "agentbox.err"
local json = require "agentbox.json"
local name = require "agentbox.image.name"

local M = {}

local MAX_LAYERS = 500

local machines = { ["\x3e\0"] = "amd64", ["\xb7\0"] = "arm64", ["\xf3\0"] = "riscv64", ["\x28\0"] = "arm" }

---The architecture of this machine, as images call it: what the program itself is made for.
---@return string
function M.architecture()
  local file = io.open("/proc/self/exe", "rb")
  local head = file and file:read(20) or ""
  if file then file:close() end
  return machines[head:sub(19, 20)] or "amd64"
end

local function bad(what)
  return nil, err.new("protocol", "not an image that can be used: " .. what)
end

local function is_descriptor(d)
  return json.is_object(d) and type(d.digest) == "string" and name.is_digest(d.digest)
      and math.type(d.size) == "integer" and d.size >= 0
end

---@class agentbox.image.Manifest
---@field config agentbox.image.Descriptor
---@field layers agentbox.image.Descriptor[]

---@param text string
---@return table?   # the decoded document
---@return agentbox.Err?
function M.decode(text)
  local document, problem = json.decode(text)
  if problem then return nil, err.new("protocol", "not a manifest: " .. problem.msg) end
  if not json.is_object(document) then return bad "its manifest is no object" end
  return document
end

---@param document table
---@return boolean
function M.is_index(document)
  return json.is_array(document.manifests)
end

---Which of the manifests is for this machine.
---@param index table
---@param platform? string   # "linux/arm64/v8"; default: this machine's
---@return agentbox.image.Descriptor?
---@return agentbox.Err?
function M.choose(index, platform)
  local os, arch, variant = (platform or "linux/" .. M.architecture()):match "^(%l+)/([%w_]+)/?(%w*)$"
  if not os then return nil, err.new("badarg", "a platform looks like linux/amd64, not " .. platform) end
  local seen = {}
  for _, entry in ipairs(index.manifests) do
    if is_descriptor(entry) then
      local of = json.is_object(entry.platform) and entry.platform or {}
      local same = of.os == os and of.architecture == arch and (variant == "" or of.variant == variant)
      if same or (#index.manifests == 1 and not of.architecture) then return entry end
      if of.os and of.os ~= "unknown" then
        seen[#seen + 1] = ("%s/%s"):format(tostring(of.os), tostring(of.architecture))
      end
    end
  end
  return nil, err.new("notfound", ("the image is not made for %s/%s, only for %s"):format(os, arch,
    #seen > 0 and table.concat(seen, ", ") or "nothing that it names"))
end

---@param document table
---@return agentbox.image.Manifest?
---@return agentbox.Err?
function M.manifest(document)
  if document.schemaVersion ~= 2 then return bad "its manifest is of an old kind (schema 1)" end
  if not is_descriptor(document.config) or not json.is_array(document.layers) then return bad "its manifest" end
  if #document.layers > MAX_LAYERS then return bad(("it has more than %d layers"):format(MAX_LAYERS)) end
  local layers = {}
  for i, layer in ipairs(document.layers) do
    if not is_descriptor(layer) then return bad("its layer " .. i) end
    local kind = tostring(layer.mediaType or "")
    if layer.urls or kind:find "foreign" then return bad "a layer of it is kept elsewhere (a foreign layer)" end
    if not kind:find "tar" then return bad("a layer of it is no archive but " .. kind:sub(1, 100)) end
    layers[i] = { digest = layer.digest, size = layer.size, mediaType = layer.mediaType }
  end
  return { config = document.config, layers = layers }
end

---@class agentbox.image.Config
---@field diff_ids string[]
---@field env string[]
---@field workdir? string
---@field user? string
---@field architecture? string
---@field created? string
---@field raw table           # the whole document

local function texts(list)
  local out = {}
  if json.is_array(list) then
    for _, item in ipairs(list) do
      if type(item) == "string" then out[#out + 1] = item end
    end
  end
  return out
end

local function text(value)
  return type(value) == "string" and value ~= "" and value or nil
end

---@param document table
---@param layer_count integer
---@return agentbox.image.Config?
---@return agentbox.Err?
function M.config(document, layer_count)
  local rootfs = json.is_object(document) and document.rootfs
  if not json.is_object(rootfs) then return bad "its configuration names no layers" end
  local diff_ids = texts(rootfs.diff_ids)
  for _, diff_id in ipairs(diff_ids) do
    if not name.is_digest(diff_id) then return bad "a digest in its configuration" end
  end
  if #diff_ids ~= layer_count then
    return bad(("its manifest has %d layers, its configuration %d"):format(layer_count, #diff_ids))
  end
  local settings = json.is_object(document.config) and document.config or {}
  return {
    diff_ids = diff_ids, env = texts(settings.Env), workdir = text(settings.WorkingDir), user = text(settings.User),
    architecture = text(document.architecture), created = text(document.created), raw = document,
  }
end

---A manifest for layers that came without one.
---@param config agentbox.image.Descriptor
---@param layers agentbox.image.Descriptor[]
---@return string
function M.encode(config, layers)
  local list = json.array {}
  for i, layer in ipairs(layers) do
    list[i] = json.object({ mediaType = layer.mediaType, digest = layer.digest, size = layer.size },
      { "mediaType", "digest", "size" })
  end
  return json.encode(json.object({
    schemaVersion = 2, mediaType = "application/vnd.oci.image.manifest.v1+json",
    config = json.object({ mediaType = "application/vnd.oci.image.config.v1+json", digest = config.digest,
      size = config.size }, { "mediaType", "digest", "size" }),
    layers = list,
  }, { "schemaVersion", "mediaType", "config", "layers" }))
end

---What the first bytes of a layer say about its compression.
---@param path string
---@return string media_type
function M.layer_type(path)
  local file = io.open(path, "rb")
  local magic = file and file:read(4) or ""
  if file then file:close() end
  local suffix = magic:sub(1, 2) == "\x1f\x8b" and "+gzip" or magic == "\x28\xb5\x2f\xfd" and "+zstd" or ""
  return "application/vnd.oci.image.layer.v1.tar" .. suffix
end

return M
