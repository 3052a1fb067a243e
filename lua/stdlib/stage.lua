--- stage.lua: the state a task begins with, and sandboxes in that state.
---
---     seeding sandbox ─ files, setup commands ─ freeze ─► layer ─┬─► the agent's sandbox
---                                                                └─► fresh sandboxes for the verifier
---
--- Setup runs once; everything later starts from the same bytes, before any agent had its hands on them. A backend that
--- cannot freeze seeds each sandbox anew.
local err = require "agentbox.err"
local sandbox = require "agentbox.sandbox"
local seed = require "agentbox.seed"
local time = require "agentbox.time"

local M = {}

---@class agentbox.Stage
---@field task agentbox.Task
---@field workspace string
---@field layer? any
---@field boot_s number
---@field seed_s number
local Stage = {}
Stage.__index = Stage

local function create(self, layer)
  local spec = {}
  for key, value in pairs(self.spec) do spec[key] = value end
  spec.layers = layer and { layer } or nil
  local sb, problem = sandbox.create(spec)
  if not sb then return nil, err.wrap(problem, "creating the sandbox") end
  return sb
end

local function seeded(self)
  local began = time.monotonic()
  local sb, problem = create(self)
  if not sb then return nil, problem end
  self.boot_s = self.boot_s + time.monotonic() - began
  began = time.monotonic()
  local ok
  ok, problem = seed.run(sb, self.task, self.workspace, self.user)
  self.seed_s = self.seed_s + time.monotonic() - began
  if ok then return sb end
  sb:close()
  return nil, problem
end

--- Seeds. The stage then gives any number of sandboxes until it is closed.
---@async
---@param task agentbox.Task
---@param spec table               # for sandbox.create
---@param opts { workspace: string, user?: string|integer }
---@return agentbox.Stage? stage
---@return agentbox.Err? err       # code `task` when a setup command failed
function M.open(task, spec, opts)
  local self = setmetatable({
    task = task, spec = spec, workspace = opts.workspace, user = opts.user, boot_s = 0, seed_s = 0,
  }, Stage)
  local sb, problem = seeded(self)
  if not sb then return nil, problem end
  if sb.freeze then
    self.layer, problem = sb:freeze()
    sb:close()
    if not self.layer then return nil, err.wrap(problem, "freezing the seeded sandbox") end
  else
    self.spare = sb
  end
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

--- A sandbox that begins where another one is now.
---@async
---@param sb agentbox.Sandbox
---@return agentbox.Sandbox?
---@return agentbox.Err?
function Stage:fork_of(sb)
  if not sb.freeze then return nil, err.new("config", "this backend cannot copy a whole sandbox") end
  local layer, problem = sb:freeze()
  if not layer then return nil, problem end
  return create(self, layer)
end

--- Releases the layer. May be called twice.
function Stage:close()
  if self.spare then self.spare:close() end
  if self.layer and self.layer.close then self.layer:close() end
  self.spare, self.layer = nil, nil
end

Stage.__close = Stage.close

return M
