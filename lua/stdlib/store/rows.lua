--- One row per stored rollout: what can be asked of a run without reading its messages.
local frame = require "agentbox.store.frame"
local fs = require "agentbox.sys.fs"
local lines = require "agentbox.store.lines"
local message = require "agentbox.log"
local summary = require "agentbox.store.summary"

local M = {}

--- The path of a segment.
---@param run_dir string
---@param n integer
---@return string
function M.segment_path(run_dir, n)
  return ("%s/trajectories-%05d.jsonl"):format(run_dir, n)
end

---@class agentbox.Rows
local Rows = {}
Rows.__index = Rows

-- Reads the rows of a segment from an offset on. A damaged line has no row: its rollout counts as not done.
local function scan(run_dir, segment, from, take)
  local path = M.segment_path(run_dir, segment)
  local file <close>, problem = lines.open(path, from)
  if not file then return nil, problem end
  for text, offset in file.next, file do
    local row = frame.check(text) and summary.read(frame.open(text))
    if row then
      row.segment, row.offset, row.bytes = segment, offset, #text + 1
      take(row)
    else
      message.warn("%s: the line at byte %d is damaged and counts as not done; see agentbox traj check", path, offset)
    end
  end
  return true
end

--- Opens the rows of a run.
---@async
---@nodiscard
---@param run_dir string
---@return agentbox.Rows?
---@return agentbox.Err? err
function M.open(run_dir)
  local self = setmetatable({ _list = {} }, Rows)
  local n = 0
  while fs.stat(M.segment_path(run_dir, n)) do
    local ok, problem = scan(run_dir, n, 0, function(row) table.insert(self._list, row) end)
    if not ok then return nil, problem end
    n = n + 1
  end
  return self
end

--- Adds the rows of lines that were just written.
---@param batch agentbox.LogEntry[]
function Rows:add(batch)
  for _, entry in ipairs(batch) do
    local row = entry.row
    row.segment, row.offset, row.bytes = entry.segment, entry.offset, entry.bytes
    table.insert(self._list, row)
  end
end

--- Iterates over all rows in the order written.
---@async
---@return fun(): agentbox.Summary?
function Rows:each()
  local i = 0
  return function()
    i = i + 1
    return self._list[i]
  end
end

--- May be called twice.
function Rows:close()
  self._list = {}
end

return M
