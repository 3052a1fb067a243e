--- image/import.lua: an image from a file: `docker save`, an OCI layout, a root file system.
local child = require "agentbox.image.child"
local document = require "agentbox.image.document"
local err = require "agentbox.err"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local name = require "agentbox.image.name"
local os_ = require "agentbox.sys.os"
local path_ = require "agentbox.path"
local store = require "agentbox.image.store"
local time = require "agentbox.sys.time"
local tree = require "agentbox.image.tree"

local M = {}

local DOCUMENT_MAX = 8 << 20
local MAX_LINKS = 8

local function invalid(text)
  return nil, err.new("invalid", text)
end

-- ---------------------------------------------------------------- files of a bundle

-- "a/../b" as "b"; nil when it leaves.
local function normal(path)
  local parts = {}
  for part in path:gmatch "[^/]+" do
    if part == ".." then
      if #parts == 0 then return nil end
      parts[#parts] = nil
    elseif part ~= "." then
      parts[#parts + 1] = part
    end
  end
  return table.concat(parts, "/")
end

---The path of a regular file below dir, links followed only inside it: the names come from the bundle.
---@param dir string
---@param path string
---@return string?
function M._inside(dir, path)
  path = normal(path)
  local links, at, rest = 0, "", path
  while rest and rest ~= "" do
    local part, tail = rest:match "^([^/]+)/?(.*)$"
    local here = at == "" and part or at .. "/" .. part
    local stat = fs.lstat(dir .. "/" .. here)
    if not stat then return nil end
    if stat.type == "link" then
      local target = fs.readlink(dir .. "/" .. here)
      links = links + 1
      if not target or target:sub(1, 1) == "/" or links > MAX_LINKS then return nil end
      at, rest = "", normal(at .. "/" .. target .. "/" .. tail)
    else
      if tail == "" then return stat.type == "file" and dir .. "/" .. here or nil end
      at, rest = here, tail
    end
  end
end

local function read_document(dir, path)
  local file = M._inside(dir, path)
  if not file then return invalid(("the bundle has no file %s"):format(path)) end
  return fs.read(file, DOCUMENT_MAX)
end

-- A file of the bundle as a blob of the store.
local function take(self, dir, path, expected)
  local file = M._inside(dir, path)
  local handle = file and io.open(file, "rb")
  if not handle then return invalid(("the bundle has no file %s"):format(path)) end
  local digest, size = self:ingest(function(n) return handle:read(n) end, expected)
  handle:close()
  return digest, size
end

-- ---------------------------------------------------------------- OCI layouts

local function blob_in(descriptor)
  return "blobs/sha256/" .. store.hex(descriptor.digest)
end

local function named(annotations)
  if not json.is_object(annotations) then return nil end
  local full = annotations["io.containerd.image.name"]
  return type(full) == "string" and full or annotations["org.opencontainers.image.ref.name"]
end

local function oci_manifest(dir, descriptor, opts)
  local text, problem = read_document(dir, blob_in(descriptor))
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
      ok, problem = take(self, dir, blob_in(blob), blob.digest)
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

local function import_oci(self, dir, opts)
  local text, problem = read_document(dir, "index.json")
  local index
  if text then index, problem = document.decode(text) end
  if not index then return nil, problem end
  if not document.is_index(index) then return invalid "index.json lists no images" end
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

-- ---------------------------------------------------------------- docker save

local function saved_layers(self, dir, entry)
  local layers = {}
  for i, path in ipairs(entry.Layers) do
    if type(path) ~= "string" then return invalid "manifest.json" end
    local digest, size = take(self, dir, path)
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
    return invalid "manifest.json"
  end
  local names, problem = saved_names(entry, opts)
  if not names then return nil, problem end
  local config, size = take(self, dir, entry.Config)
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

local function import_saved(self, dir, opts)
  local text, problem = read_document(dir, "manifest.json")
  local list
  if text then list, problem = json.decode(text) end
  if problem then return nil, problem end
  if not json.is_array(list) or #list == 0 then return invalid "manifest.json lists no images" end
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

-- ---------------------------------------------------------------- root file systems

local function import_rootfs(self, path, opts)
  if not opts.name then
    return nil, err.new("badarg", "a root file system has no name of its own",
      { hint = "say what to call it: --name NAME" })
  end
  local called, problem = name.parse(opts.name)
  if not called then return nil, problem end
  local handle = io.open(path, "rb")
  if not handle then return nil, err.new("notfound", "cannot read " .. path) end
  local layer, size = self:ingest(function(n) return handle:read(n) end)
  handle:close()
  if not layer then return nil, size end
  local diff_id
  diff_id, problem = tree.discover(self, layer, opts)
  if not diff_id then return nil, problem end
  local config = json.encode {
    architecture = document.architecture(), os = "linux", created = time.iso(time.now()), config = json.object {},
    rootfs = { type = "layers", diff_ids = { diff_id } },
  }
  local manifest, config_digest
  config_digest, problem = self:put(config)
  if not config_digest then return nil, problem end
  manifest, problem = self:put(document.encode({ digest = config_digest, size = #config },
    { { digest = layer, size = size, mediaType = document.layer_type(self:blob_path(layer)) } }))
  if not manifest then return nil, problem end
  local image
  image, problem = require "agentbox.image"._adopt(self, name.text(called), manifest, "import", opts)
  return image and { image }, problem
end

-- ---------------------------------------------------------------- what is it?

local function import_dir(self, dir, opts)
  if M._inside(dir, "index.json") then return import_oci(self, dir, opts) end
  if M._inside(dir, "manifest.json") then return import_saved(self, dir, opts) end
  return invalid(dir .. " is no OCI layout: it has no index.json")
end

local function import_file(self, path, opts)
  local called, dir = self:temporary()
  local ok, problem = fs.mkdir(dir)
  if not ok then return nil, problem end
  local counts, images
  counts, problem = child.unpack(dir, { { path = path } }, {
    bundle = true, max_bytes = opts.max_bytes or tree.MAX_BYTES, max_entries = 100000,
  })
  if counts and M._inside(dir, "manifest.json") then
    images, problem = import_saved(self, dir, opts) -- newer files have an index.json too, which knows fewer names
  elseif counts and M._inside(dir, "index.json") then
    images, problem = import_oci(self, dir, opts)
  elseif counts then
    problem = err.new("invalid", path .. " is no image: it has neither manifest.json nor index.json")
  end
  child.remove(self:path "tmp", called)
  if counts or problem.code ~= "invalid" then return images, problem end
  return import_rootfs(self, path, opts)
end

-- Standard input has to be a file, since it is looked at twice.
local function spool(self)
  local _, path = self:temporary()
  local file <close>, problem = fs.append_open(path, 384) -- 0600
  if not file then return nil, problem end
  while true do
    local bytes, bad = os_.read_stdin(1 << 20)
    if bad then return nil, bad end
    if not bytes then return path end
    local ok
    ok, bad = file:write(bytes)
    if not ok then return nil, bad end
  end
end

---@async
---@param path string
---@param opts agentbox.image.ImportOpts
---@return agentbox.Image[]?
---@return agentbox.Err?
function M.import(path, opts)
  local self, problem = store.open()
  if not self then return nil, problem end
  local lock <close>, busy = self:use()
  if not lock then return nil, busy end
  if path == "-" then
    local spooled
    spooled, problem = spool(self)
    if not spooled then return nil, problem end
    local images
    images, problem = import_file(self, spooled, opts)
    fs.remove(spooled)
    return images, problem
  end
  local stat
  stat, problem = fs.stat(path)
  if not stat then return nil, problem end
  path = path_.abs(path)
  if stat.type == "dir" then return import_dir(self, path, opts) end
  return import_file(self, path, opts)
end

return M
