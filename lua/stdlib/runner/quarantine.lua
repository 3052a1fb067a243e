--- Tasks that fail again and again while others do not: they are given up, and a resumed run remembers.
local outcome = require "agentbox.outcome"

local M = { methods = {} }

---@class agentbox.Run
local Run = M.methods

-- Counts the attempts of a task that failed in a row; true when they have become too many with this one.
local function count(self, task_id, result)
  local before = self.quarantine[task_id]
  if before == true then return false end
  if result.scored or not result.class or not outcome.INFRA[result.class] then
    self.quarantine[task_id] = nil
  elseif result.class ~= "model_server" then
    self.quarantine[task_id] = (before or 0) + 1
    return self.quarantine[task_id] >= self.opts.quarantine
  end
  return false
end

local function give_up(self, task_id)
  self.quarantine[task_id] = true
  self.tally.quarantined[#self.tally.quarantined + 1] = task_id
end

--- An attempt at a task has ended.
---@param task_id string
---@param result table
function Run:_suspect(task_id, result)
  if not count(self, task_id, result) then return end
  local failures = self.quarantine[task_id]
  give_up(self, task_id)
  self:_event("quarantine", { task_id = task_id, failures = failures, class = result.class, msg = result.error })
end

--- The same of an attempt that an earlier process made: what it gave up stays so, unless what failed is to be made again.
---@param row agentbox.Summary
function Run:_suspected(row)
  if self.opts.retry_errors or row.status == "cancelled" then return end
  if count(self, row.task, row) then give_up(self, row.task) end
end

--- Whether a group's task was given up.
---@param group agentbox.Group_
function Run:_gives_up(group) return self.quarantine[group.task_id] == true end

-- Members of the group that did not begin never will.
local function skip(self, group)
  for _, one in ipairs(group.members) do
    if one.state == "idle" then
      local result = { scored = false, final_status = "error", stop = "task_error", class = "task", error = "quarantined" }
      group:note(one, result)
      self.tally:ended(result)
    end
  end
  if group:complete() then self:_close_group(group) end
end

--- Nothing more of a task that was given up begins: in this group, and in those of it that are open or wait.
---@param group agentbox.Group_
function Run:_skip(group)
  skip(self, group)
  for _, list in ipairs { self.open, self.ahead } do
    for _, other in ipairs(table.move(list, 1, #list, 1, {})) do
      if other.task_id == group.task_id and not other.closed then skip(self, other) end
    end
  end
  for i = #self.ahead, 1, -1 do
    if self.ahead[i].closed then table.remove(self.ahead, i) end
  end
end

return M
