--- Images of file systems for sandboxes, without a daemon: pulled from a registry, imported, built, committed.
---
---     assert(ab.image.pull "python:3.12-slim-bookworm")
---     local sb <close> = assert(ab.sandbox.create { image = "python:3.12-slim-bookworm" })
---
--- They are kept below $AGENTBOX_HOME, or ~/.local/share/agentbox, for this user. Everything has the digest that its
--- name promises, or it is not there. docs/images.md.
local async = require "agentbox.async"
local document = require "agentbox.image.document"
local err = require "agentbox.err"
local name = require "agentbox.image.name"
local store = require "agentbox.image.store"
local time = require "agentbox.sys.time"
local tree = require "agentbox.image.tree"

local M = {}

---@class agentbox.Image
---@field name string        # "python:3.12-slim-bookworm"
---@field id string          # digest of its configuration
---@field digest string      # of its manifest
---@field env table<string, string>
---@field workdir? string
---@field user? string
---@field architecture? string
---@field created? string
---@field source string      # "pull", "import", "build", "commit"
---@field at number          # when it came here, unix time
---@field layers { digest: string, size: integer, diff_id: string, mediaType: string }[]
---@field size integer       # bytes of its layers as they are stored
---@field root? string       # the directory of its files, when they are unpacked
---@field key string         # name of that directory in the store

local function environment(list)
  local env = {}
  for _, line in ipairs(list) do
    local key, value = line:match "^([^=]+)=(.*)$"
    if key then env[key] = value end
  end
  return env
end

-- All that is known of a reference, from the documents in the store.
local function describe(self, ref)
  local manifest, config, problem
  manifest, problem = self:document(ref.manifest)
  if manifest then manifest, problem = document.manifest(manifest) end
  if not manifest then return nil, problem end
  config, problem = self:document(manifest.config.digest)
  if config then config, problem = document.config(config, #manifest.layers) end
  if not config then return nil, problem end
  local image = {
    name = ref.name, id = manifest.config.digest, digest = ref.manifest, env = environment(config.env),
    workdir = config.workdir, user = config.user, architecture = config.architecture, created = config.created,
    source = ref.source, at = ref.at, layers = {}, size = 0, config = config.raw,
  }
  for i, layer in ipairs(manifest.layers) do
    image.layers[i] = {
      digest = layer.digest, size = layer.size, diff_id = config.diff_ids[i], mediaType = layer.mediaType,
    }
    image.size = image.size + layer.size
  end
  local chain = tree.chain(config.diff_ids)
  image.key = tree.key(chain[#chain])
  image.root = tree.find(self, chain[#chain])
  return image
end

-- A name, or the beginning of a digest: of the configuration, which is what Docker calls an image's id, or manifest.
local function find(self, text)
  local digits = text:match "^sha256:(%x+)$" or text:match "^(%x+)$"
  if digits and #digits >= 12 then
    for _, ref in ipairs(self:refs()) do
      if ref.config:sub(8, 7 + #digits) == digits or ref.manifest:sub(8, 7 + #digits) == digits then return ref end
    end
    if text:find "^sha256:" then return nil end
  end
  local parsed, problem = name.parse(text)
  if not parsed then return nil, problem end
  local ref = self:ref(name.text(parsed))
  if not ref and parsed.digest then
    for _, other in ipairs(self:refs()) do
      if other.manifest == parsed.digest then return other end
    end
  end
  return ref
end

local function missing(text)
  local step = "agentbox image pull " .. text -- in the message too: of a rollout's error nothing else is kept
  return err.new("notfound", ("no image '%s' here: %s"):format(text, step), { hint = step })
end

---An image that is here, by its name or digest.
---@async
---@nodiscard
---@param text string
---@return agentbox.Image?
---@return agentbox.Err?
function M.get(text)
  local self, problem = store.open(true)
  if not self then return nil, problem end
  local ref
  ref, problem = find(self, text)
  if not ref then return nil, problem or missing(text) end
  return describe(self, ref)
end

---Every image that is here, by name. What cannot be read is left out.
---@async
---@return agentbox.Image[]?
---@return agentbox.Err?
function M.list()
  local self, problem = store.open(true)
  if not self then return nil, problem end
  local images = {}
  for _, ref in ipairs(self:refs()) do images[#images + 1] = describe(self, ref) end
  return images
end

local function find_and_hold(text)
  local there, problem = M.get(text)
  if not there then return nil, problem end
  local self
  self, problem = store.open()
  if not self then return nil, problem end
  local lock <close>, busy = self:use()
  if not lock then return nil, busy end
  local image
  image, problem = M.get(text)
  if not image then return nil, problem end
  if not image.root then
    image.root, problem = M._unpack(self, image, {})
    if not image.root then return nil, problem end
  end
  local ok
  ok, problem = tree.hold(self, image.key)
  if not ok then return nil, problem end
  return image
end

-- By name; emptied when a name gets another meaning. One fiber at a time looks.
local used, gate = {}, async.semaphore(1)

---What a sandbox stands on: the image with its files, which stay as long as this process lives. Unpacks them when
---that was not done yet, or not for this user. What a name means to a process it means until the process itself
---gives it another meaning, so that all rollouts of a run stand on the same files.
---@async
---@param text string
---@return agentbox.Image?
---@return agentbox.Err?
function M.use(text)
  if used[text] then return used[text] end
  local _ <close> = gate:acquire()
  if used[text] then return used[text] end
  local image, problem = find_and_hold(text)
  used[text] = image
  return image, problem
end

---@private
function M._unpack(self, image, limits)
  local layers, diff_ids = {}, {}
  for i, layer in ipairs(image.layers) do layers[i], diff_ids[i] = layer.digest, layer.diff_id end
  return tree.make(self, layers, diff_ids, limits)
end

---Makes a name mean a manifest whose parts are all in the store, and unpacks it. The store must be in use.
---@private
---@async
---@return agentbox.Image?
---@return agentbox.Err?
function M._adopt(self, called, manifest, source, limits)
  local ref = { name = called, manifest = manifest, source = source, at = time.now(), config = "" }
  local image, problem = describe(self, ref)
  if not image then return nil, problem end
  ref.config = image.id
  local root
  root, problem = M._unpack(self, image, limits or {})
  if not root then return nil, problem end
  local ok
  ok, problem = self:set_ref(ref)
  if not ok then return nil, problem end
  used = {}
  image.root = root
  return image
end

---@class agentbox.image.PullOpts
---@field platform? string     # "linux/arm64"; default: this machine's
---@field insecure? boolean    # plain HTTP; loopback registries are spoken to so anyway
---@field max_bytes? integer   # of the unpacked files
---@field on_progress? fun(done: integer, total: integer)   # bytes of its layers

---Fetches an image from its registry. What is here already is not fetched again; what was cut off goes on.
---@async
---@nodiscard
---@param text string
---@param opts? agentbox.image.PullOpts
---@return agentbox.Image?
---@return agentbox.Err?
function M.pull(text, opts)
  return require "agentbox.image.pull".pull(text, opts or {})
end

---@class agentbox.image.ImportOpts
---@field name? string         # what to call it; else what the file says
---@field ref? string          # which of the images in an OCI layout, by the name that it has there
---@field platform? string
---@field max_bytes? integer

---Takes an image from a file of `docker save`, an OCI layout (a folder or a tar of one), or a tar of a root file
---system, compressed or not; "-" is standard input.
---@async
---@nodiscard
---@param path string
---@param opts? agentbox.image.ImportOpts
---@return agentbox.Image[]?
---@return agentbox.Err?
function M.import(path, opts)
  return require "agentbox.image.import".import(path, opts or {})
end

---@class agentbox.image.BuildOpts
---@field name string               # what to call it
---@field file? string              # a Dockerfile; else `from` and `run`
---@field from? string              # the image to begin with; fetched when it is not here
---@field run? string[]             # shell commands
---@field context? string           # the folder that COPY takes files from
---@field args? table<string, string>
---@field network? "none"|"full"    # of the commands; none when nothing is said
---@field limits? table             # as of sandboxes; 4 GB of memory, 8 GB of disk when nothing is said
---@field timeout_s? number         # of each command; 3600 when nothing is said
---@field platform? string
---@field insecure? boolean
---@field no_cache? boolean         # do every step again
---@field on_step? fun(step: agentbox.image.Step)
---@field on_output? fun(chunk: string, stream: "stdout"|"stderr")
---@field on_progress? fun(done: integer, total: integer)

---Builds an image: commands run in a sandbox on a base, each a layer, or a Dockerfile of FROM, RUN, COPY, local ADD,
---ENV, WORKDIR, USER and ARG. Steps whose result is here already are not done again.
---@async
---@nodiscard
---@param opts agentbox.image.BuildOpts
---@return agentbox.Image?
---@return agentbox.Err?
function M.build(opts)
  if type(opts.name) ~= "string" then error("image.build: option 'name': string expected", 2) end
  if not opts.file and type(opts.from) ~= "string" then error("image.build: give 'file' or 'from'", 2) end
  return require "agentbox.image.build".build(opts)
end

---Takes names away. The files go with `gc`.
---@async
---@param text string
---@return string? name
---@return agentbox.Err?
function M.rm(text)
  local self, problem = store.open()
  if not self then return nil, problem end
  local ref
  ref, problem = find(self, text)
  if not ref then return nil, problem or missing(text) end
  local ok
  ok, problem = self:remove_ref(ref.name)
  if not ok then return nil, problem end
  used = {}
  return ref.name
end

---Removes what no name needs: layers, trees, leftovers. What a running sandbox stands on stays.
---@async
---@param opts? { check?: boolean }   # check: read every blob, and remove those that are damaged
---@return { blobs: integer, trees: integer, leftovers: integer, damaged: integer, bytes: integer, in_use: integer }?
---@return agentbox.Err?
function M.gc(opts)
  return require "agentbox.image.gc".gc(opts or {})
end

return M
