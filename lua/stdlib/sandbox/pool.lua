--- sandbox/pool.lua: native sandboxes that are ready before anybody asks for them.
---
--- Those with the same options lie on one shelf. A fiber of the pool fills the shelves, one sandbox at a time and only
--- while nobody else waits for one to be made. It belongs to the pool, not to who claims, and ends with it.
---
--- The first program in a new sandbox takes longer than the second, since nothing of its tree was looked up before. So
--- one that does nothing is run in each ahead. And who claims one is about to use it: the pool lets go of the processor
--- for a while then, if enough are left.
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local limits = require "agentbox.limits"
local log = require "agentbox.log"
local native = require "agentbox.backends.native"
local sandbox = require "agentbox.sandbox"
local schema = require "agentbox.schema"
local specs = require "agentbox.backends._spec"
local time = require "agentbox.sys.time"

local M = {}

--- Kinds that are kept ready; of more, those that were claimed last. So a pool never holds more than this times its size.
M.MAX_KINDS = 8

M.MAX_SIZE = 256

--- After a claim, unless less than half is left or somebody waits for the pool to be full.
M.LULL_S = 0.02

-- Where there is neither, the tree has no programs to be looked up.
local WARM, WARM_S = { "sh", "-c", "exec true" }, 10

---@class agentbox.SandboxPool
---@field size integer
---@field hits integer      # claims that found one ready
---@field misses integer
---@field dead integer      # ready ones that had died, and were thrown away
---@field private _shelves table[]   # the one that was claimed last is the first
---@field private _doomed agentbox.Sandbox[]
local Pool = {}
Pool.__index = Pool

-- A value as text, the same for the same value, and a copy that its owner cannot change.
local function frozen(value)
  if type(value) == "userdata" then return tostring(value), value end
  if type(value) ~= "table" then return ("%q"):format(value), value end
  local copy, parts = {}, {}
  for key, item in pairs(value) do
    local text
    text, copy[key] = frozen(item)
    parts[#parts + 1] = ("[%q]=%s"):format(key, text)
  end
  table.sort(parts)
  return "{" .. table.concat(parts, ",") .. "}", copy
end

-- What sandboxes must have in common to stand for each other. A name that is given to another image is another kind.
local function kind_of(spec)
  spec.name, spec.backend = nil, nil
  local image, problem = native.image(spec.image or "host")
  if not image then return nil, problem end
  local text, copy = frozen(spec)
  return text .. (image.id or ""), copy
end

local function throw_away(self, shelf)
  self._doomed = table.move(shelf.ready, 1, #shelf.ready, #self._doomed + 1, self._doomed)
  shelf.ready, shelf.gone = {}, true
end

-- Moves those that died to the others that are to be closed.
local function sort_out(self, shelf)
  for i = #shelf.ready, 1, -1 do
    if not shelf.ready[i]._raw:is_alive() then
      self._doomed[#self._doomed + 1] = table.remove(shelf.ready, i)
      self.dead = self.dead + 1
    end
  end
end

-- The shelf for what was asked for, now the first.
local function shelf_of(self, spec)
  local key, kept = kind_of(spec)
  if not key then return nil, kept end
  local found
  for i, shelf in ipairs(self._shelves) do
    if shelf.key == key then
      found = table.remove(self._shelves, i)
      break
    end
  end
  found = found or { key = key, spec = kept, ready = {} }
  found.failed = nil
  table.insert(self._shelves, 1, found)
  if #self._shelves > M.MAX_KINDS then throw_away(self, table.remove(self._shelves)) end
  return found
end

-- One that lives.
local function take(self, shelf)
  local sb = table.remove(shelf.ready)
  while sb and not sb._raw:is_alive() do
    self._doomed[#self._doomed + 1] = sb
    self.dead = self.dead + 1
    sb = table.remove(shelf.ready)
  end
  return sb
end

-- ---------------------------------------------------------------- its fiber

local function short_one(self)
  for _, shelf in ipairs(self._shelves) do
    sort_out(self, shelf)
    if #shelf.ready < self.size and not shelf.failed then return shelf end
  end
end

local function tell(self)
  for waiter in pairs(self._waiters) do waiter:wake() end
end

local Fresh = { __close = function(self) if self.sb then self.sb:close() end end }

-- Also a pool that is closed meanwhile leaves nothing.
local function make(spec)
  local sb, problem = sandbox.create(spec)
  if not sb then return nil, problem end
  local fresh <close> = setmetatable({ sb = sb }, Fresh)
  local warm <close>, refused = sb:spawn(WARM)
  if not warm then return nil, refused end
  local out
  out, problem = warm:wait(WARM_S)
  if not out then return nil, problem end
  fresh.sb = nil
  return sb
end

local function fill(self, shelf)
  local pass <close> = limits.enter "creating" -- luacheck: ignore
  local sb, problem = make(shelf.spec)
  if sb and shelf.gone then
    self._doomed[#self._doomed + 1] = sb
  elseif sb then
    table.insert(shelf.ready, sb)
  else -- until somebody asks for one again, and is told
    shelf.failed = problem
    log.warn("no sandbox can be kept ready: %s", problem.msg)
  end
  tell(self)
end

local function close_doomed(self)
  while #self._doomed > 0 do table.remove(self._doomed):close() end
end

-- How long the shelf may stay as it is.
local function lull(self, shelf)
  if next(self._waiters) or 2 * #shelf.ready < self.size then return 0 end
  return self._claimed + M.LULL_S - time.monotonic()
end

local function park(self, timeout_s)
  self._parked = true
  fiber.park(timeout_s)
  self._parked = false
end

-- Between the last look at the shelves and park nothing waits, so that no claim is missed.
local function tend(self)
  while true do
    sandbox.wait_idle()
    local shelf = short_one(self)
    if #self._doomed > 0 then
      close_doomed(self)
    elseif shelf then
      local wait_s = lull(self, shelf)
      if wait_s > 0 then park(self, wait_s) else fill(self, shelf) end
    else
      park(self)
    end
  end
end

local function poke(self)
  if self._parked then self._fiber:wake() end
end

-- ---------------------------------------------------------------- claiming

local function checked(self, spec, what)
  local clean, wrong = specs.check(spec or {})
  if not clean then error(("pool:%s: %s"):format(what, wrong), 3) end
  if (clean.backend or "native") ~= "native" then
    return nil, err.new("unsupported", "a pool keeps native sandboxes, not those of " .. clean.backend)
  elseif not self._fiber then
    return nil, err.new("badarg", "the pool is closed")
  end
  return clean
end

---One that is ready, at once, or nothing. Either way the pool sees to it that there will be others of this kind.
---@async
---@param spec? agentbox.SandboxSpec   # as of `create`
---@return agentbox.Sandbox? sandbox   # who claims it closes it
---@return agentbox.Err? err
function Pool:ready(spec)
  local clean, problem = checked(self, spec, "ready")
  if not clean then return nil, problem end
  if clean.layers then return nil end
  local shelf
  shelf, problem = shelf_of(self, clean)
  if not shelf then return nil, problem end
  local sb = take(self, shelf)
  if sb then self.hits = self.hits + 1 else self.misses = self.misses + 1 end
  self._claimed = time.monotonic()
  poke(self)
  return sb
end

---A sandbox nobody had before: one that is ready, else a new one. Those with layers are always new.
---@async
---@nodiscard
---@param spec? agentbox.SandboxSpec
---@return agentbox.Sandbox? sandbox
---@return agentbox.Err? err
function Pool:claim(spec)
  local sb, problem = self:ready(spec)
  if sb or problem then return sb, problem end
  return sandbox.create(spec)
end

local waiting_meta = { __close = function(self) self.waiters[self.fiber] = nil end }

---Waits until the pool has as many of this kind ready as it may.
---@async
---@param spec? agentbox.SandboxSpec
---@return true? ok
---@return agentbox.Err? err
function Pool:fill(spec)
  local clean, problem = checked(self, spec, "fill")
  if not clean then return nil, problem end
  local shelf
  shelf, problem = shelf_of(self, clean)
  if not shelf then return nil, problem end
  sort_out(self, shelf)
  poke(self)
  local me <close> = setmetatable({ waiters = self._waiters, fiber = fiber.current() }, waiting_meta)
  self._waiters[me.fiber] = true
  while #shelf.ready < self.size do
    if shelf.failed then return nil, shelf.failed end
    if shelf.gone or not self._fiber then return nil, err.new("cancelled", "the pool gave this kind up") end
    fiber.park()
  end
  return true
end

---How many are ready.
---@return integer
function Pool:count()
  local count = 0
  for _, shelf in ipairs(self._shelves) do count = count + #shelf.ready end
  return count
end

---Ends what is ready; what was claimed is its owner's. May be called twice.
---@async
function Pool:close()
  local mine = self._fiber
  self._fiber = nil
  if mine then
    mine:cancel()
    mine:join()
  end
  for _, shelf in ipairs(self._shelves) do throw_away(self, shelf) end
  self._shelves = {}
  tell(self)
  close_doomed(self)
end
Pool.__close = Pool.close

--- Makes it the pool of this fiber and of those it starts from now on: `M.ready` takes from it.
function Pool:use()
  fiber.current():locals().pool = self
end

--- One that is ready in the pool of this fiber, if it has one.
---@async
---@param spec agentbox.SandboxSpec
---@return agentbox.Sandbox?
---@return agentbox.Err?
function M.ready(spec)
  local pool = fiber.current():locals().pool
  if pool and pool._fiber then return pool:ready(spec) end -- closed: the run is being torn down
end

---@param opts { size: integer }
---@return agentbox.SandboxPool
function M.new(opts)
  opts = schema.options(opts, { size = { "integer", min = 1, max = M.MAX_SIZE, default = 4 } }, "sandbox.pool")
  local self = setmetatable({
    size = opts.size, hits = 0, misses = 0, dead = 0, _shelves = {}, _doomed = {}, _waiters = {}, _claimed = 0,
  }, Pool)
  self._fiber = fiber.spawn(tend, self)
  return self
end

return M
