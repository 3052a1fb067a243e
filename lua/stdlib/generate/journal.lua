--- generate/journal.lua: what a batch knows, on disk beside its output directory (`OUT.state/`) and nowhere else.
---
--- Lines with sums: `answer` what a model said for a candidate, which was paid for; `end` a candidate's end with its stage,
--- reason and facts, and the task itself when it was rejected; in each of them, or alone, what the models took. The accepted tasks are the
--- folders in the output directory: a folder that somebody removes is not counted, one that an engine wrote just before it
--- was killed is. In memory stays only what a batch needs: a line's report is read again by who wants to see it.
local frame = require "agentbox.store.frame"
local fs = require "agentbox.fs"
local json = require "agentbox.json"
local log = require "agentbox.store.log"
local regular = require "agentbox.store.regular"
local task_ = require "agentbox.task"

local M = {}

---@class agentbox.Journal
---@field dir string
---@field answers table<integer, table<string, string>>     # of candidates that have not ended, by who was asked
---@field specs table<integer, table>                       # what those were to be about
---@field ended table<integer, { accepted: boolean, stage?: string, task_id?: string, family?: string, difficulty?: string }>
---@field next integer                      # the first index that nobody used
---@field spent table
local Journal = {}
Journal.__index = Journal

local function take(self, line)
  local i = line.index
  if line.event == "answer" then
    self.answers[i] = self.answers[i] or {}
    self.answers[i][line.session], self.specs[i] = line.text, line.spec or self.specs[i]
  elseif line.event == "end" then
    local spec = line.spec or self.specs[i] or {}
    self.ended[i] = { accepted = line.accepted, stage = line.stage, task_id = line.task_id, family = spec.family,
      difficulty = spec.difficulty }
    self.answers[i], self.specs[i] = nil, nil
  end
  if line.spent then self.spent = line.spent end
  if i then self.next = math.max(self.next, i + 1) end
end

--- Calls fn with every whole line of a journal, in order; a file that is not there has none.
---@async
---@param path string
---@param fn fun(line: table)
---@return true?
---@return agentbox.Err?
function M.each(path, fn)
  local file, problem = regular(path)
  if not file then
    if problem.code == "notfound" then return true end
    return nil, problem
  end
  local _ <close> = file
  for text in file:lines "L" do
    local covered, ok = frame.read(text)
    local line = covered and ok and json.decode(covered)
    if line then fn(line) end
  end
  return true
end

--- Where an output directory's state is.
---@param out string
---@return string
function M.state(out) return (#out > 1 and out:gsub("/+$", "") or out) .. ".state" end

--- Where its journal is.
---@param out string
---@return string
function M.path(out) return M.state(out) .. "/journal.jsonl" end

--- Reads a journal; none is an empty one.
---@async
---@param out string     # the output directory
---@return agentbox.Journal?
---@return agentbox.Err?
function M.read(out)
  local self = setmetatable({ dir = M.state(out), answers = {}, specs = {}, ended = {}, next = 1, spent = {} }, Journal)
  local ok, problem = M.each(M.path(out), function(line) take(self, line) end)
  if not ok then return nil, problem end
  return self
end

-- Folders that a killed engine did not put in place. Their candidates are made again, or turn out to be doubles.
local function sweep(dir)
  for _, entry in ipairs(fs.list(dir) or {}) do
    if entry.name:find "^new%-%d+$" then fs.remove(dir .. "/" .. entry.name, true) end
  end
end

--- Reads it and keeps others from writing it until it is closed.
---@async
---@param out string
---@return agentbox.Journal?
---@return agentbox.Err?    # `busy`: another batch writes there
function M.open(out)
  local dir = M.state(out)
  local ok, problem = fs.mkdir(dir, true)
  if ok then ok, problem = fs.mkdir(out, true) end
  if not ok then return nil, problem end
  local lock
  lock, problem = fs.lock(dir .. "/lock")
  if not lock then return nil, problem end
  sweep(dir)
  local self
  self, problem = M.read(out)
  if not self then
    lock:close()
    return nil, problem
  end
  self._lock = lock
  self._log, problem = log.open { path = function() return M.path(out) end }
  if self._log then return self end
  lock:close()
  return nil, problem
end

--- Appends a line; it is on the disk when this returns.
---@async
---@param line table
---@return true?
---@return agentbox.Err?
function Journal:add(line)
  local entry, problem = self._log:append { line = frame.close(json.encode(line)) }
  if not entry then return nil, problem end
  take(self, line)
  return true
end

--- Closes it. May be called twice.
function Journal:close()
  if self._log then self._log:close() end
  if self._lock then self._lock:close() end
  self._log, self._lock = nil, nil
end

--- Calls fn with each accepted task of an output directory; a folder that does not load as a task is named and does not count.
---@async
---@param out string
---@param fn fun(task: agentbox.Task, name: string)    # name: of its folder
---@return string[]? bad
---@return agentbox.Err? err
function M.accepted(out, fn)
  local entries, problem = fs.list(out)
  if not entries then
    if problem.code == "notfound" then return {} end
    return nil, problem
  end
  local bad = {}
  for _, entry in ipairs(entries) do
    if entry.type == "dir" and entry.name:sub(1, 1) ~= "." then
      local task, why = task_.load(out .. "/" .. entry.name)
      if task then fn(task, entry.name) else bad[#bad + 1] = why.msg end
    end
  end
  return bad
end

return M
