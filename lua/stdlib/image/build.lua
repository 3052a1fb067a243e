--- image/build.lua: images from a Dockerfile or from commands, without a daemon. Every command runs in a sandbox that
--- stands on what the commands before it left; what it changed is frozen and becomes a layer.
local context = require "agentbox.image.context"
local dockerfile = require "agentbox.image.dockerfile"
local err = require "agentbox.err"
local files = require "agentbox.backends._files"
local fs = require "agentbox.sys.fs"
local hash = require "agentbox.sys.hash"
local json = require "agentbox.json"
local layers = require "agentbox.image.layers"
local name = require "agentbox.image.name"
local sandbox = require "agentbox.sandbox"
local store = require "agentbox.image.store"
local tree = require "agentbox.image.tree"

local M = {}

local RUN_TIMEOUT_S = 3600
local MAX_STACK = 20 -- frozen layers below one sandbox; then their tree is made and stood on
local LIMITS = { memory_mb = 4096, disk_mb = 8192, pids_limit = 4096, cpu_count = false }

---@class agentbox.image.Build
---@field private self agentbox.image.Store
---@field private layers agentbox.image.Layer[]
---@field private env [string, string][]
---@field private args table<string, string>
---@field private key string               # of what was done so far, for the cache
---@field private root? string             # a tree to stand on, of the first `rooted` layers
---@field private frozen? agentbox.Layer   # what was changed since
---@field private stacked integer
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

function Build:_expand(step, text)
  local out = dockerfile.expand(self:_vars(), text)
  if out then return out end
  return nil, err.new("unsupported", ("line %d: a $ that is neither $NAME nor ${NAME:-word}"):format(step.line))
end

function Build:_set_env(key, value)
  for _, pair in ipairs(self.env) do
    if pair[1] == key then
      pair[2] = value
      return
    end
  end
  self.env[#self.env + 1] = { key, value }
end

-- The cache's name for the state after a step: everything that the step can depend on.
function Build:_next_key(...)
  local parts = { self.key, self.workdir or "", self.user or "" }
  for _, pair in ipairs(self.env) do parts[#parts + 1] = pair[1] .. "=" .. pair[2] end
  for _, text in ipairs { ... } do parts[#parts + 1] = text end
  return hash.sha256(json.encode(json.array(parts)))
end

function Build:_cached(key)
  local text = fs.read(self.store:path("cache", key), 1 << 20)
  local layer = text and json.decode(text)
  if self.no_cache or not json.is_object(layer) then return nil end
  return self.store:blob_size(layer.digest) == layer.size and layer or nil
end

function Build:_remember(key, value)
  local ok, problem = fs.mkdir(self.store:path "cache", true)
  if not ok then return nil, problem end
  return fs.write(self.store:path("cache", key), json.encode(value))
end

function Build:_drop_frozen()
  if self.frozen then self.frozen:close() end
  self.frozen, self.stacked = nil, 0
end

function Build:_add(layer)
  self.layers[#self.layers + 1] = layer
  self.made = self.made + 1
end

-- A directory with the files so far, unless the frozen layers make it out of an older one.
function Build:_stand()
  if self.frozen and self.stacked < MAX_STACK then return true end
  if self.root and self.rooted == #self.layers then return true end
  self:_drop_frozen()
  local digests, diff_ids = {}, {}
  for i, layer in ipairs(self.layers) do digests[i], diff_ids[i] = layer.digest, layer.diff_id end
  local root, problem = tree.make(self.store, digests, diff_ids, {})
  if not root then return nil, problem end
  self.root, self.rooted = root, #self.layers
  return true
end

function Build:_sandbox()
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

-- ---------------------------------------------------------------- steps

local steps = {}

function Build:_run(sb, step)
  local words = step.words or { "/bin/sh", "-c", step.rest }
  local out, problem = sb:exec(words, {
    timeout_s = self.timeout_s or RUN_TIMEOUT_S, cwd = self.workdir or "/", user = self.user,
    max_output_bytes = 1 << 16, on_output = self.on_output,
  })
  if not out then return nil, problem end
  if out.exit_code == 0 then return true end
  local why = out.timed_out and "took too long" or out.oom and "needed more memory than it was allowed"
      or ("ended with %d"):format(out.exit_code)
  local said = self.on_output and "" or (out.stderr ~= "" and out.stderr or out.stdout):gsub("%s+$", "")
  return nil, err.new("invalid", ("%s %s%s"):format(step.text, why, said ~= "" and ":\n" .. said:sub(-2000) or ""))
end

-- Runs and freezes; what it changed is a layer.
function Build:_run_and_pack(step)
  local sb, problem = self:_sandbox()
  if not sb then return nil, problem end
  local ok
  ok, problem = self:_run(sb, step)
  if not ok then
    sb:close()
    return nil, problem
  end
  local ids = { sb._raw:ids() }
  local frozen
  frozen, problem = sb:freeze()
  if not frozen then return nil, problem end
  local parts = #frozen:parts()
  local made
  made, problem = layers.pack(self.store, frozen, ids,
    { from = parts, skip = self.network == "full" and "etc/resolv.conf" or nil })
  if self.frozen then self.frozen:close() end
  self.frozen, self.stacked = frozen, self.stacked + 1
  return made and made[1], problem
end

function steps.run(self, step)
  local args = {}
  for key, value in pairs(self.args) do args[#args + 1] = key .. "=" .. value end
  table.sort(args)
  local key = self:_next_key("run", step.rest, self.network, table.concat(args, "\0"))
  local layer = self:_cached(key)
  if layer then
    self:_drop_frozen()
  else
    local problem
    layer, problem = self:_run_and_pack(step)
    if not layer then return nil, problem end
    self:_remember(key, layer)
  end
  self:_add(layer)
  self.key = key
  return true
end

-- Where COPY's destination is, and whether it is a folder.
function Build:_destination(step, to, sources)
  local is_dir = to:find "/$" ~= nil or to:find "^%.%.?$" ~= nil or to:find "/%.$" ~= nil or #sources > 1
  if to:sub(1, 1) ~= "/" then to = (self.workdir or "/") .. "/" .. to end
  local parts = {}
  for part in to:gmatch "[^/]+" do
    if part == ".." then parts[#parts] = nil elseif part ~= "." then parts[#parts + 1] = part end
  end
  local clean = table.concat(parts, "/")
  if clean == "" then is_dir = true end
  if is_dir or #self.layers == 0 then return clean, is_dir end
  local sb, problem = self:_sandbox()
  if not sb then return nil, problem end
  local stat = sb:stat("/" .. clean)
  sb:close()
  return clean, stat ~= nil and stat.type == "dir", step
end

-- "1000:1000" or a name of the image's /etc/passwd.
function Build:_owner(chown)
  if not chown then return { uid = 0, gid = 0 } end
  local uid, gid = chown:match "^(%d+):?(%d*)$"
  if uid then return { uid = tonumber(uid), gid = tonumber(gid) or tonumber(uid) } end
  local sb, problem = self:_sandbox()
  if not sb then return nil, problem end
  local _ <close> = sb
  local user, group = chown:match "^([^:]+):?(.*)$"
  if group ~= "" and group ~= user then
    return nil, err.new("unsupported", "--chown with a group's name; give numbers")
  end
  if user == "root" then return { uid = 0, gid = 0 } end
  return files.lookup(sb, user)
end

function steps.copy(self, step)
  local words = {}
  for i, word in ipairs(step.words) do
    local problem
    words[i], problem = self:_expand(step, word)
    if not words[i] then return nil, problem end
  end
  local to = table.remove(words)
  local into, is_dir = self:_destination(step, to, words)
  if not into then return nil, is_dir end
  if not self.context then return nil, err.new("badarg", "COPY needs a folder to copy from: --context DIR") end
  local list, problem = self.context:files(words, into, is_dir)
  if not list then return nil, problem end
  local owner
  owner, problem = self:_owner(step.flags.chown)
  if not owner then return nil, problem end
  local layer
  layer, problem = layers.copy(self.store, list,
    { uid = owner.uid, gid = owner.gid, mode = step.flags.chmod and tonumber(step.flags.chmod, 8) })
  if not layer then return nil, problem end
  self:_drop_frozen()
  self:_add(layer)
  self.key = self:_next_key("copy", layer.diff_id)
  return true
end

function steps.env(self, step)
  local list, problem = dockerfile.pairs_of(step)
  if not list then return nil, problem end
  local set = {}
  for i, pair in ipairs(list) do
    local value
    value, problem = self:_expand(step, pair[2])
    if not value then return nil, problem end
    set[i] = { pair[1], value }
  end
  for _, pair in ipairs(set) do self:_set_env(pair[1], pair[2]) end
  return true
end

function steps.arg(self, step)
  local list, problem = dockerfile.pairs_of(step)
  if not list then return nil, problem end
  for _, pair in ipairs(list) do
    local key, value = pair[1], pair[2]
    if self.given[key] ~= nil then
      self.args[key] = self.given[key]
    elseif value then
      self.args[key], problem = self:_expand(step, value)
      if not self.args[key] then return nil, problem end
    elseif self.before_from[key] then
      self.args[key] = self.before_from[key]
    end
  end
  return true
end

function steps.workdir(self, step)
  local path, problem = self:_expand(step, step.rest)
  if not path then return nil, problem end
  if path:sub(1, 1) ~= "/" then path = (self.workdir or "") .. "/" .. path end
  self.workdir = require "agentbox.path".clean(path)
  return true
end

function steps.user(self, step)
  local user, problem = self:_expand(step, step.rest)
  if not user then return nil, problem end
  if not user:find "^[%w_.-]+$" and not user:find "^%d+:%d+$" then
    return nil, err.new("unsupported", "USER wants a name, a number or two numbers")
  end
  self.user = user
  return true
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
    if key then self:_set_env(key, value) end
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
  local key = self:_next_key "image"
  local before = self:_cached(key)
  if before then return require "agentbox.image"._adopt(self.store, called, before.digest, "build") end
  local image, problem = layers.finish(self.store, called, {
    layers = self.layers, config = self.base and self.base.config, steps = history, source = "build",
    settings = { env = env, workdir = self.workdir, user = self.user },
  })
  if image then self:_remember(key, { digest = image.digest, size = self.store:blob_size(image.digest) }) end
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
    store = self, layers = {}, env = {}, args = {}, given = opts.args or {}, before_from = {}, made = 0, stacked = 0,
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

Build.__close = Build._drop_frozen

return M
