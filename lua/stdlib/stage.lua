--- stage.lua: the state a task begins with, and sandboxes in that state.
---
---     seeding sandbox ─ files, setup commands ─ freeze ─► layer ─┬─► the agent's sandbox
---                                                                └─► fresh sandboxes for the verifier
---
--- Setup runs once; everything later starts from the same bytes, before any agent had its hands on them. Without setup
--- commands writing the files again is quicker than freezing; a backend that cannot freeze seeds each sandbox anew.
local err = require "agentbox.err"
local left = require "agentbox.sandbox.left"
local limits = require "agentbox.limits"
local pool = require "agentbox.sandbox.pool"
local sandbox = require "agentbox.sandbox"
local seed = require "agentbox.seed"
local time = require "agentbox.time"

local M = {}

---@class agentbox.Stage
---@field task agentbox.Task
---@field workspace string
---@field workdir string
---@field layer? any
---@field boot_s number
---@field seed_s number
---@field private sound? boolean   # a sandbox in that state ran what it was told
local Stage = {}
Stage.__index = Stage

local function create(self, layer)
  local spec = {}
  for key, value in pairs(self.spec) do spec[key] = value end
  spec.layers = layer and { layer } or nil
  local sb, problem = pool.ready(spec)
  if sb then return sb end
  local pass <close> = limits.enter "creating" -- luacheck: ignore
  if not problem then sb, problem = sandbox.create(spec) end
  if not sb then return nil, err.wrap(problem, "creating the sandbox") end
  return sb
end

local function seeded(self)
  local began = time.monotonic()
  local sb, problem = create(self)
  if not sb then return nil, problem end
  self.boot_s = self.boot_s + time.monotonic() - began
  began = time.monotonic()
  local pass <close> = limits.enter "commands" -- luacheck: ignore
  local ok
  ok, problem = seed.run(sb, self.task, {
    workspace = self.workspace, workdir = self.workdir, owner = self.user, sound = self.sound,
  })
  self.seed_s = self.seed_s + time.monotonic() - began
  self.sound = ok
  if ok then return sb end
  sb:close()
  return nil, problem
end

--- Seeds. The stage then gives any number of sandboxes until it is closed.
---@async
---@param task agentbox.Task
---@param spec table               # for sandbox.create
---@param opts { workspace: string, workdir: string, user?: string|integer }
---@return agentbox.Stage? stage
---@return agentbox.Err? err       # code `task` when a setup command failed
function M.open(task, spec, opts)
  local self = setmetatable({
    task = task, spec = spec, workspace = opts.workspace, workdir = opts.workdir, user = opts.user,
    boot_s = 0, seed_s = 0,
  }, Stage)
  local sb, problem = seeded(self)
  if not sb then return nil, problem end
  if not sb.freeze or #task.setup_commands == 0 then
    self.spare = sb
    return self
  end
  self.layer, problem = sb:freeze()
  sb:close()
  if not self.layer then return nil, err.wrap(problem, "freezing the seeded sandbox") end
  return self
end

--- A sandbox in the seeded state; the caller closes it.
---@async
---@return agentbox.Sandbox?
---@return agentbox.Err?
function Stage:fresh()
  if self.spare then
    local sb = self.spare
    self.spare = nil
    return sb
  end
  if not self.layer then return seeded(self) end
  local began = time.monotonic()
  local sb, problem = create(self, self.layer)
  self.boot_s = self.boot_s + time.monotonic() - began
  return sb, problem
end

---@class agentbox.Remains
---@field private _stage agentbox.Stage
---@field private _layer? any
---@field private _sb agentbox.Sandbox
local Remains = {}
Remains.__index = Remains

--- Ends an agent's sandbox: every process in it is dead when this returns, and what it left can be looked at and
--- copied.
---@async
---@param sb agentbox.Sandbox
---@return agentbox.Remains?
---@return agentbox.Err?
function Stage:settle(sb)
  local remains = setmetatable({ _stage = self }, Remains)
  if sb.freeze then
    local layer, seen = left.of(sb, function(layer) return create(self, layer) end)
    if not layer then return nil, seen end
    remains._layer, remains._sb = layer, seen
    return remains
  end
  local ok, problem = sb:kill_all()
  if not ok then return nil, problem end
  remains._sb = sb
  return remains
end

--- The state the agent left, for looking at.
---@return agentbox.Sandbox
function Remains:sandbox() return self._sb end

--- Another sandbox in that state, for running things in; the caller closes it.
---@async
---@return agentbox.Sandbox?
---@return agentbox.Err?
function Remains:copy()
  if not self._layer then return nil, err.new("unsupported", "this backend cannot copy a whole sandbox") end
  left.look_away(self._sb)
  return create(self._stage, self._layer)
end

--- May be called twice.
function Remains:close()
  if self._sb then self._sb:close() end
  if self._layer then self._layer:close() end
  self._sb, self._layer = nil, nil
end

--- For one more who closes it.
---@return agentbox.Stage
function Stage:share()
  self.shares = (self.shares or 0) + 1
  return self
end

--- Releases the layer, with the last of those who share it.
function Stage:close()
  if self.shares and self.shares > 0 then
    self.shares = self.shares - 1
    return
  end
  if self.spare then self.spare:close() end
  if self.layer then self.layer:close() end
  self.spare, self.layer = nil, nil
end

Stage.__close = Stage.close

return M
