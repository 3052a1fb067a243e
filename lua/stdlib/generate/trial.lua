--- generate/trial.lua: a candidate's task in sandboxes: with its starter, its solution, or what a cheat would leave, and the
--- verdict that the real verifier gives on each.
local err = require "agentbox.err"
local seed = require "agentbox.seed"
local stage = require "agentbox.stage"
local verify = require "agentbox.verify"

local M = {}

---@class agentbox.Trial
---@field workspace string
local Trial = {}
Trial.__index = Trial

--- Seeds the task. The network is off, whatever the task may say.
---@async
---@param task agentbox.Task
---@param spec table      # backend, image, limits
---@return agentbox.Trial?
---@return agentbox.Err?
function M.open(task, spec)
  local workspace = "/workspace"
  local full = { workspace = workspace, network = "none" }
  for key, value in pairs(spec) do full[key] = value end
  full.network, full.image = "none", task.image or full.image
  local opened, problem = stage.open(task, full, { workspace = workspace, workdir = workspace })
  if not opened then return nil, problem end
  return setmetatable({ task = task, workspace = workspace, _stage = opened }, Trial)
end

--- A sandbox with the starter and these files over it; the caller closes it.
---@async
---@param files? table<string, agentbox.TaskFile>
---@return agentbox.Sandbox?
---@return agentbox.Err?
function Trial:box(files)
  local box, problem = self._stage:fresh()
  if not box then return nil, problem end
  local ok
  ok, problem = seed.write_files(box, self.workspace, files or {})
  if ok then return box end
  box:close()
  return nil, problem
end

--- What the task's own verifier says of an agent that left these files.
---@async
---@param files table<string, agentbox.TaskFile>
---@return agentbox.Verdict?
---@return agentbox.Err?     # could not be judged
function Trial:verdict(files)
  local box, problem = self:box(files)
  if not box then return nil, problem end
  local remains
  remains, problem = self._stage:settle(box)
  if not remains then
    box:close()
    return nil, problem
  end
  local _ <close> = setmetatable({}, { __close = function()
    remains:close()
    box:close()
  end })
  local fn, bad, name = verify.resolve(nil, self.task.verifier)
  if not fn then return nil, bad end
  local verdict, why = verify.run {
    task = self.task, stage = self._stage, remains = remains, verifier = fn, name = name, rec = { event = function() end },
    traj = { task_id = self.task.task_id, messages = {}, stop_reason = "final_answer", steps = 0 },
  }
  if verdict then return verdict end
  return nil, err.wrap(why, "judging")
end

--- May be called twice.
function Trial:close() self._stage:close() end
Trial.__close = Trial.close

return M
