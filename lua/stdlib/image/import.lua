--- image/import.lua: an image from a file: `docker save`, an OCI layout, a root file system.
local bundle = require "agentbox.image.bundle"
local child = require "agentbox.image.child"
local document = require "agentbox.image.document"
local err = require "agentbox.err"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local layout = require "agentbox.image.layout"
local name = require "agentbox.image.name"
local os_ = require "agentbox.sys.os"
local path_ = require "agentbox.path"
local saved = require "agentbox.image.saved"
local store = require "agentbox.image.store"
local time = require "agentbox.sys.time"
local tree = require "agentbox.image.tree"

local M = {}

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
  if bundle.inside(dir, "index.json") then return layout.import(self, dir, opts) end
  if bundle.inside(dir, "manifest.json") then return saved.import(self, dir, opts) end
  return bundle.invalid(dir .. " is no OCI layout: it has no index.json")
end

local function import_file(self, path, opts)
  local called, dir = self:temporary()
  local ok, problem = fs.mkdir(dir)
  if not ok then return nil, problem end
  local counts, images
  counts, problem = child.unpack(dir, { { path = path } }, {
    bundle = true, max_bytes = opts.max_bytes or tree.MAX_BYTES, max_entries = 100000,
  })
  if counts and bundle.inside(dir, "manifest.json") then
    images, problem = saved.import(self, dir, opts) -- newer files have an index.json too, which knows fewer names
  elseif counts and bundle.inside(dir, "index.json") then
    images, problem = layout.import(self, dir, opts)
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
