--- A part of a suite: the first so many tasks, or those whose ids match. It is a subset wherever it is told of, since its
--- numbers are not the suite's.
local err = require "agentbox.err"
local glob = require "agentbox.glob"
local hash = require "agentbox.sys.hash"
local json = require "agentbox.json"

local M = {}

-- The second attempt at task `a` is called `a#2` in the record.
local function clash_of(tasks)
  local ids = {}
  for _, task in ipairs(tasks) do ids[task.task_id] = true end
  for _, task in ipairs(tasks) do
    local stem = task.task_id:match "^(.*)#%d+$"
    if stem and ids[stem] then return task.task_id end
  end
end

--- The tasks to run, in the suite's order.
---@param tasks agentbox.Task[]
---@param opts { limit?: integer, tasks?: string[] }   # ids, or globs over them
---@return agentbox.Task[]?
---@return agentbox.Err? err   # `usage` when nothing is left
function M.choose(tasks, opts)
  local out = {}
  local wanted = opts.tasks and #opts.tasks > 0 and opts.tasks or nil
  local matched = {}
  for _, task in ipairs(tasks) do
    local take = not wanted
    for i, pattern in ipairs(wanted or {}) do
      if pattern == task.task_id or glob.compile { pattern }(task.task_id) then take, matched[i] = true, true end
    end
    if take and #out < (opts.limit or math.huge) then out[#out + 1] = task end
  end
  for i, pattern in ipairs(wanted or {}) do
    if not matched[i] then return nil, err.new("usage", ("no task of the suite is called %s"):format(pattern)) end
  end
  if #out == 0 then return nil, err.new("usage", "no tasks are left to run") end
  local clash = clash_of(out)
  if clash then return nil, err.new("task", ("the task %s has the name of another one's attempt; give it another id"):format(clash)) end
  return out
end

--- What is told of it; nil for the whole suite.
---@param all agentbox.Task[]
---@param chosen agentbox.Task[]
---@param opts { limit?: integer, tasks?: string[] }
---@return table?
function M.facts(all, chosen, opts)
  if #chosen == #all then return nil end
  local out, ids = json.object {}, {}
  for i, task in ipairs(chosen) do ids[i] = task.task_id end
  out.tasks, out.of, out.limit = #chosen, #all, opts.limit
  if opts.tasks and #opts.tasks > 0 then out.filter = json.array(opts.tasks) end
  out.hash = "sha256:" .. hash.sha256(table.concat(ids, "\0"))
  return out
end

return M
