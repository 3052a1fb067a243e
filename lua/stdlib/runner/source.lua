--- Where a run's work comes from: tasks one after another, and of each its groups.
---
--- Nothing is read before it is wanted, so that a stream may be as long as it likes. A group is known by its task and by
--- how often that task came before (`fix`, `fix#2`), so that the same stream gives the same groups in a resumed run.
local err = require "agentbox.err"
local fs = require "agentbox.fs"
local task = require "agentbox.task"

local M = {}

local TASK_FILES = { "task.json", "task.yaml", "task.yml" }

local function is_task(dir, entry)
  if entry.type == "file" or entry.type == "link" and fs.stat(dir .. "/" .. entry.name).type == "file" then
    return entry.name:find "%.json$" ~= nil
  end
  for _, name in ipairs(TASK_FILES) do
    if fs.exists(("%s/%s/%s"):format(dir, entry.name, name)) then return true end
  end
  return false
end

--- The tasks of a folder in the order of their names: folders with a task file, and files that end in .json.
---@async
---@param dir string
---@return string[]? paths
---@return agentbox.Err? err   # `task` when there is none
function M.folder(dir)
  local entries, problem = fs.list(dir)
  if not entries then
    problem.hint = "A folder of tasks is wanted: of folders with a task.json, or of .json files. `agentbox run` takes a single task, "
        .. "ab.dataset lines of a .jsonl or .csv (docs/tasks.md)."
    return nil, problem
  end
  local paths = {}
  for _, entry in ipairs(entries) do
    if is_task(dir, entry) then paths[#paths + 1] = dir .. "/" .. entry.name end
  end
  if #paths > 0 then return paths end
  return nil, err.new("task", dir .. ": no tasks here: neither folders with a task.json nor .json files")
end

local function iterator(what)
  if type(what) == "function" or (getmetatable(what) or {}).__call then return what end
  local at = 0
  return function()
    at = at + 1
    return what[at]
  end
end

---@class agentbox.Source
---@field position integer    # tasks taken so far
---@field ended boolean
local Source = {}
Source.__index = Source

--- A source over a folder, one task file, a list of tasks, or a function that gives the next task (nil ends it).
---@async
---@param what string|table|function
---@param opts { size: integer, per_task: integer, limit?: integer }
---@return agentbox.Source? source
---@return agentbox.Err? err
function M.new(what, opts)
  if type(what) == "string" then
    local stat, problem = fs.stat(what)
    if not stat then return nil, problem end
    local alone = stat.type == "file"
    for _, name in ipairs(TASK_FILES) do alone = alone or fs.exists(what .. "/" .. name) end
    local paths
    paths, problem = alone and { what } or nil, nil
    if not paths then paths, problem = M.folder(what) end
    if not paths then return nil, problem end
    what = paths
  elseif type(what) == "table" and what.task_id then
    what = { what }
  end
  return setmetatable({
    position = 0, ended = false, _next = iterator(what), _size = opts.size, _per_task = opts.per_task,
    _limit = opts.limit or math.huge, _seen = {}, _left = 0,
  }, Source)
end

local function next_task(self)
  if self.position >= self._limit then return nil end
  local what = self._next()
  if what == nil then return nil end
  self.position = self.position + 1
  local found, problem = task.resolve(what)
  if found then return found end
  return nil, err.wrap(problem, ("task %d"):format(self.position))
end

---@class agentbox.Draft
---@field id string
---@field task agentbox.Task
---@field size integer

-- A task's first turn has the task's name, unless that looks like the name of another group: `fix#2` is the second turn of
-- `fix`, `fix+8` the group that a resumed run adds to it.
local function id_of(task_id, turn)
  if turn == 1 and not task_id:find "[#+]%d+$" then return task_id end
  return ("%s#%d"):format(task_id, turn)
end

--- The next group to be made; nil at the end. An error is of one task: the source goes on with the next one.
---@async
---@return agentbox.Draft? draft
---@return agentbox.Err? err
function Source:next()
  if self._left == 0 then
    local problem
    self._task, problem = next_task(self)
    if not self._task then
      self.ended = problem == nil
      return nil, problem
    end
    self._left = self._per_task
  end
  self._left = self._left - 1
  local id = self._task.task_id
  local count = (self._seen[id] or 0) + 1
  self._seen[id] = count
  return { id = id_of(id, count), task = self._task, size = self._size }
end

return M
