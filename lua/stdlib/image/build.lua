--- image/build.lua: images from a Dockerfile or from commands, without a daemon. Every command runs in a sandbox that
--- stands on what the commands before it left; what it changed is frozen and becomes a layer.
local context = require "agentbox.image.context"
local dockerfile = require "agentbox.image.dockerfile"
local err = require "agentbox.err"
local fs = require "agentbox.sys.fs"
local hash = require "agentbox.sys.hash"
local json = require "agentbox.json"
local layers = require "agentbox.image.layers"
local name = require "agentbox.image.name"
local sandbox = require "agentbox.sandbox"
local steps = require "agentbox.image.steps"
local store = require "agentbox.image.store"
local tree = require "agentbox.image.tree"

local M = {}

local MAX_STACK = 20 -- frozen layers below one sandbox; then their tree is made and stood on
local LIMITS = { memory_mb = 4096, disk_mb = 8192, pids_limit = 4096, cpu_count = false }

---@class agentbox.image.Build
---@field store agentbox.image.Store
---@field layers agentbox.image.Layer[]
---@field env [string, string][]
---@field args table<string, string>
---@field workdir? string
---@field user? string
---@field network "none"|"full"
---@field context? agentbox.image.Context
---@field key string               # of what was done so far, for the cache
---@field root? string             # a tree to stand on, of the first `rooted` layers
---@field frozen? agentbox.Layer   # what was changed since
---@field stacked integer          # how many frozen layers that is
local Build = {}
Build.__index = Build

local function at_line(step, problem)
  problem.msg = ("line %d: %s"):format(step.line, problem.msg)
  return nil, problem
end

-- ---------------------------------------------------------------- state

function Build:_vars()
  local vars = {}
  for key, value in pairs(self.args) do vars[key] = value end
  for _, pair in ipairs(self.env) do vars[pair[1]] = pair[2] end
  return vars
end

function Build:expand(step, text)
  local out = dockerfile.expand(self:_vars(), text)
  if out then return out end
  return nil, err.new("unsupported", ("line %d: a $ that is neither $NAME nor ${NAME:-word}"):format(step.line))
end

function Build:set_env(key, value)
  for _, pair in ipairs(self.env) do
    if pair[1] == key then
      pair[2] = value
      return
    end
  end
  self.env[#self.env + 1] = { key, value }
end

-- The cache's name for the state after a step: everything that the step can depend on.
function Build:next_key(...)
  local parts = { self.key, self.workdir or "", self.user or "" }
  for _, pair in ipairs(self.env) do parts[#parts + 1] = pair[1] .. "=" .. pair[2] end
  for _, text in ipairs { ... } do parts[#parts + 1] = text end
  return hash.sha256(json.encode(json.array(parts)))
end

function Build:cached(key)
  local text = fs.read(self.store:path("cache", key), 1 << 20)
  local layer = text and json.decode(text)
  if self.no_cache or not json.is_object(layer) then return nil end
  return self.store:blob_size(layer.digest) == layer.size and layer or nil
end

function Build:remember(key, value)
  local ok, problem = fs.mkdir(self.store:path "cache", true)
  if not ok then return nil, problem end
  return fs.write(self.store:path("cache", key), json.encode(value))
end

function Build:drop_frozen()
  if self.frozen then self.frozen:close() end
  self.frozen, self.stacked = nil, 0
end

function Build:add(layer)
  self.layers[#self.layers + 1] = layer
end

-- A directory with the files so far, unless the frozen layers make it out of an older one.
function Build:_stand()
  if self.frozen and self.stacked < MAX_STACK then return true end
  if self.root and self.rooted == #self.layers then return true end
  self:drop_frozen()
  local digests, diff_ids = {}, {}
  for i, layer in ipairs(self.layers) do digests[i], diff_ids[i] = layer.digest, layer.diff_id end
  local root, problem = tree.make(self.store, digests, diff_ids, {})
  if not root then return nil, problem end
  self.root, self.rooted = root, #self.layers
  return true
end

function Build:sandbox()
  local ok, problem = self:_stand()
  if not ok then return nil, problem end
  local env = {}
  for _, pair in ipairs(self.env) do env[pair[1]] = pair[2] end
  for key, value in pairs(self.args) do env[key] = env[key] or value end
  local workdir = self.workdir or "/"
  return sandbox.create {
    image = self.root, layers = self.frozen and { self.frozen } or nil, network = self.network, env = env,
    workspace = workdir ~= "/" and workdir or "/tmp", limits = self.limits,
  }
end

-- ---------------------------------------------------------------- from

-- The image to begin with; fetched when it is not here.
local function base_of(text, opts)
  local image = require "agentbox.image"
  local base, problem = image.get(text)
  if base or problem.code ~= "notfound" then return base, problem end
  return image.pull(text, { platform = opts.platform, insecure = opts.insecure, on_progress = opts.on_progress })
end

function Build:_from(text, opts)
  if text == "scratch" then return true end
  local base, problem = base_of(text, opts)
  if not base then return nil, problem end
  for i, layer in ipairs(base.layers) do self.layers[i] = layer end
  for _, line in ipairs(base.config.config and base.config.config.Env or {}) do
    local key, value = tostring(line):match "^([^=]+)=(.*)$"
    if key then self:set_env(key, value) end
  end
  self.base, self.workdir, self.user, self.key = base, base.workdir, base.user, base.id
  return true
end

-- ---------------------------------------------------------------- all of it

function Build:_step(step, opts)
  if opts.on_step then opts.on_step(step) end
  local ok, problem
  if step.op == "from" then
    self.before_from, self.args = self.args, {}
    local text = dockerfile.expand(self.before_from, step.rest)
    if not text then return nil, err.new("unsupported", ("line %d: FROM %s"):format(step.line, step.rest)) end
    ok, problem = self:_from(text, opts)
  else
    ok, problem = steps[step.op](self, step)
  end
  if ok then return true end
  if step.line > 0 and not problem.msg:find "^line %d" then return at_line(step, problem) end
  return nil, problem
end

function Build:_finish(called, list)
  local env, history = {}, {}
  for i, pair in ipairs(self.env) do env[i] = pair[1] .. "=" .. pair[2] end
  for i, step in ipairs(list) do history[i] = { text = step.text, empty = step.op ~= "run" and step.op ~= "copy" } end
  local key = self:next_key "image"
  local before = self:cached(key)
  if before then return require "agentbox.image"._adopt(self.store, called, before.digest, "build") end
  local image, problem = layers.finish(self.store, called, {
    layers = self.layers, config = self.base and self.base.config, steps = history, source = "build",
    settings = { env = env, workdir = self.workdir, user = self.user },
  })
  if image then self:remember(key, { digest = image.digest, size = self.store:blob_size(image.digest) }) end
  return image, problem
end

local function steps_of(opts)
  if not opts.file then
    local list = { { op = "from", line = 0, text = "FROM " .. opts.from, rest = opts.from } }
    for i, command in ipairs(opts.run or {}) do
      list[i + 1] = { op = "run", line = 0, text = "RUN " .. command, rest = command }
    end
    return list
  end
  local text, problem = fs.read(opts.file, 1 << 20)
  if not text then return nil, problem end
  return dockerfile.parse(text)
end

---@async
---@param opts agentbox.image.BuildOpts
---@return agentbox.Image?
---@return agentbox.Err?
function M.build(opts)
  local called, problem = name.parse(opts.name)
  if not called then return nil, problem end
  local list
  list, problem = steps_of(opts)
  if not list then return nil, problem end
  local self
  self, problem = store.open()
  if not self then return nil, problem end
  local lock <close>, busy = self:use()
  if not lock then return nil, busy end
  local limits = {}
  for key, value in pairs(LIMITS) do limits[key] = value end
  for key, value in pairs(opts.limits or {}) do limits[key] = value end
  local build <close> = setmetatable({
    store = self, layers = {}, env = {}, args = {}, given = opts.args or {}, before_from = {}, stacked = 0,
    key = "scratch", network = opts.network or "none", limits = limits, timeout_s = opts.timeout_s,
    no_cache = opts.no_cache, on_output = opts.on_output, context = nil,
  }, Build)
  if opts.context then
    build.context, problem = context.open(opts.context)
    if not build.context then return nil, problem end
  end
  for _, step in ipairs(list) do
    local ok
    ok, problem = build:_step(step, opts)
    if not ok then return nil, problem end
  end
  return build:_finish(name.text(called), list)
end

Build.__close = Build.drop_frozen

return M
