--- generate/journal.lua: what a batch knows, on disk beside its output directory (`OUT.state/`) and nowhere else.
---
--- Lines with sums: `draft` an answer that was paid for, `end` a candidate's end with its stage, reason and facts, `spent`
--- what the models took. The accepted tasks are the folders in the output directory: a folder that somebody removes is not
--- counted, one that an engine wrote just before it was killed is.
local frame = require "agentbox.store.frame"
local fs = require "agentbox.fs"
local json = require "agentbox.json"
local log = require "agentbox.store.log"
local task_ = require "agentbox.task"

local M = {}

local MAX_JOURNAL = 4 << 30

---@class agentbox.Journal
---@field dir string
---@field drafts table<integer, string>     # answers of candidates that have not ended
---@field ended table<integer, table>
---@field next integer                      # the first index that nobody used
---@field spent table
local Journal = {}
Journal.__index = Journal

local function take(self, line)
  if line.event == "draft" then
    self.drafts[line.index] = line.text
  elseif line.event == "end" then
    self.ended[line.index], self.drafts[line.index] = line, nil
  end
  if line.spent then self.spent = line.spent end
  if line.index then self.next = math.max(self.next, line.index + 1) end
end

--- Reads a journal; none is an empty one.
---@async
---@param out string     # the output directory
---@return agentbox.Journal?
---@return agentbox.Err?
function M.read(out)
  local self = setmetatable({ dir = out .. ".state", drafts = {}, ended = {}, next = 1, spent = {} }, Journal)
  local path = self.dir .. "/journal.jsonl"
  if not fs.exists(path) then return self end
  local bytes, problem = fs.read(path, MAX_JOURNAL)
  if not bytes then return nil, problem end
  for text in bytes:gmatch "[^\n]+\n" do
    local covered, ok = frame.read(text)
    local line = covered and ok and json.decode(covered)
    if line then take(self, line) end
  end
  return self
end

--- Reads it and keeps others from writing it until it is closed.
---@async
---@param out string
---@return agentbox.Journal?
---@return agentbox.Err?    # `busy`: another batch writes there
function M.open(out)
  local dir = out .. ".state"
  local ok, problem = fs.mkdir(dir, true)
  if ok then ok, problem = fs.mkdir(out, true) end
  if not ok then return nil, problem end
  local lock
  lock, problem = fs.lock(dir .. "/lock")
  if not lock then return nil, problem end
  local self
  self, problem = M.read(out)
  if not self then
    lock:close()
    return nil, problem
  end
  self._lock = lock
  self._log, problem = log.open { path = function() return dir .. "/journal.jsonl" end }
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

--- The accepted tasks in an output directory; a folder that does not load as a task is named and does not count.
---@async
---@param out string
---@return agentbox.Task[]? tasks
---@return agentbox.Err|string[]|nil err_or_bad
function M.accepted(out)
  local entries, problem = fs.list(out)
  if not entries then
    if problem.code == "notfound" then return {}, {} end
    return nil, problem
  end
  local tasks, bad = {}, {}
  for _, entry in ipairs(entries) do
    if entry.type == "dir" and entry.name:sub(1, 1) ~= "." then
      local task, why = task_.load(out .. "/" .. entry.name)
      if task then tasks[#tasks + 1] = task else bad[#bad + 1] = why.msg end
    end
  end
  return tasks, bad
end

return M
