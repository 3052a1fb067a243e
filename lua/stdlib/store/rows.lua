--- One row per stored rollout: what can be asked of a run without reading its messages.
---
--- Rows come from the index as far as it goes, and from the segments beyond it; without an index all of them come from
--- the segments. A run of a single rollout gets no index.
local async = require "agentbox.async"
local frame = require "agentbox.store.frame"
local fs = require "agentbox.sys.fs"
local lines = require "agentbox.store.lines"
local message = require "agentbox.log"
local regular = require "agentbox.store.regular"
local summary = require "agentbox.store.summary"

local M = {}

-- Rows wait in memory until there are this many; a crash loses none, for they are made again from the segments.
local BATCH = 64

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

--- The rows of a run. Only a writer, who holds the run's lock, changes the index.
---@param run_dir string
---@param write? boolean
---@return agentbox.Rows
function M.open(run_dir, write)
  return setmetatable({ _dir = run_dir, _write = write, _queue = {}, _total = 0, _turn = async.semaphore(1) }, Rows)
end

local function say_damaged(path, offset)
  message.warn("%s: the line at byte %d is damaged and counts as not done; see agentbox traj check", path, offset)
end

-- Gives the rows of a segment from an offset on, up to another one or to its end. A damaged line has none: its rollout
-- counts as not done.
local function scan(self, segment, from, to)
  local path = M.segment_path(self._dir, segment)
  local file = assert(lines.open(path, from))
  return function()
    for text, offset in file.next, file do
      if to and offset >= to then break end
      local object, whole = frame.read(text)
      local row = whole and summary.read(object)
      if row then
        row.segment, row.offset, row.bytes = segment, offset, #text + 1
        return row
      end
      say_damaged(path, offset)
    end
    file:close()
  end, nil, nil, file
end

local function size_of(self, segment)
  local stat = fs.stat(M.segment_path(self._dir, segment))
  return stat and stat.size
end

local function give_up(self, problem)
  message.warn("%s has no index, so that looking something up takes longer: %s", self._dir, problem.msg)
  if self._index then self._index:close() end
  self._index, self._broken = nil, true
  self._queue = {}
end

local function byte_at(self, segment, at)
  local file <close> = io.open(M.segment_path(self._dir, segment), "rb")
  return file and file:seek("set", at) and file:read(1)
end

-- Where the index is right up to: its rows must follow one another without a gap and end where a line does.
local function trusted(self, index, segment)
  local reach, sum = index:reach(segment)
  if not reach or reach == 0 then return reach, sum end
  if reach == sum and byte_at(self, segment, reach - 1) == "\n" then return reach end
  local ok, problem = index:cut(segment, -1)
  return ok and 0, problem
end

-- Drops the rows of what a crash or a person cut off, and adds those of what was not indexed any more, up to an offset.
local function catch_up(self, index, segment, size)
  local ok, problem = index:cut(segment, size)
  if not ok then return nil, problem end
  local from
  from, problem = trusted(self, index, segment)
  if not from then return nil, problem end
  local batch = {}
  for row in scan(self, segment, from, size) do
    batch[#batch + 1] = row
    if #batch == BATCH then
      ok, problem = index:add(batch)
      if not ok then return nil, problem end
      batch = {}
    end
  end
  return index:add(batch)
end

-- The index gets the rows of all lines up to those whose rows are in the queue: these were written just now.
local function catch_up_all(self, index)
  local first, segment = self._queue[1], 0
  while true do
    local size = size_of(self, segment)
    if first and segment == first.segment then size = first.offset end
    if not size or first and segment > first.segment then return true end
    local ok, problem = catch_up(self, index, segment, size)
    if not ok then return nil, problem end
    segment = segment + 1
  end
end

-- The index, opened when it is first needed: most runs of a single rollout never do.
local function index_of(self)
  if self._index or self._broken then return self._index end
  local index = require "agentbox.store.index"
  if not self._write and not index.exists(self._dir) then return nil end
  local found, problem = index.open(self._dir, self._write == true)
  local ok = found
  if found and self._write then ok, problem = catch_up_all(self, found) end
  self._index = found
  if ok then return found end
  if self._write then give_up(self, problem) else self._broken = true end
end

local function flush(self)
  local _ <close> = self._turn:acquire()
  local queue = self._queue
  local index = #queue > 0 and index_of(self)
  if not index then return end
  local n = #queue
  local ok, problem = index:add(table.move(queue, 1, n, 1, {}))
  if not ok then return give_up(self, problem) end
  self._queue = table.move(queue, n + 1, #queue, 1, {})
end

--- Adds the rows of lines that were just written.
---@async
---@param batch agentbox.LogEntry[]
function Rows:add(batch)
  self._total = self._total + #batch
  if self._broken then return end
  for _, entry in ipairs(batch) do
    local row = entry.row
    row.segment, row.offset, row.bytes = entry.segment, entry.offset, entry.bytes
    table.insert(self._queue, row)
  end
  if #self._queue >= BATCH then flush(self) end
end

-- Gives the indexed rows of a segment, and afterwards where they end.
local function indexed(self, segment, size)
  local index = index_of(self)
  local page, i, at = {}, 0, 0
  local function next_row()
    i = i + 1
    if page and not page[i] and index then page, i = index:page(segment, at), 1 end
    local row = page and page[i]
    if not row or row.offset + row.bytes > size then return nil end
    at = row.offset + row.bytes
    return row
  end
  return next_row, function() return at end
end

-- The rows whose lines are still what was indexed.
local function whole_rows(self, segment, next_row)
  local path = M.segment_path(self._dir, segment)
  local file = assert(regular(path))
  return function()
    for row in next_row do
      file:seek("set", row.offset)
      if frame.check(file:read(row.bytes) or "") then return row end
      say_damaged(path, row.offset)
    end
    file:close()
  end
end

--- Iterates over all rows in the order written.
---@async
---@param verify? boolean   # only those whose line is whole: reads every line, as something may have damaged one since
---@return fun(): agentbox.Summary?
function Rows:each(verify)
  if self._write then flush(self) end
  local segment, from_index, from_file, reach = -1, nil, nil, nil
  return function()
    while true do
      local row = from_index and from_index() or from_file and from_file()
      if row then return row end
      if from_index then
        from_index, from_file = nil, scan(self, segment, reach())
      else
        segment = segment + 1
        local size = size_of(self, segment)
        if not size then return nil end
        from_index, reach = indexed(self, segment, size)
        if verify then from_index = whole_rows(self, segment, from_index) end
        from_file = nil
      end
    end
  end
end

--- Where the lines are whose id is a text or begins with it.
---@async
---@param prefix string
---@return agentbox.Summary[]
function Rows:find(prefix)
  local found, segment = {}, 0
  local index = index_of(self)
  local known = index and index:find(prefix)
  for _, row in ipairs(known or {}) do found[#found + 1] = row end
  while size_of(self, segment) do
    local from = known and index:reach(segment) or 0
    for row in scan(self, segment, from) do
      if row.id:sub(1, #prefix) == prefix then found[#found + 1] = row end
    end
    segment = segment + 1
  end
  return found
end

--- Brings the index up to date and lets go of it. May be called twice.
---@async
function Rows:close()
  if self._write and (self._index or self._total > 1) then flush(self) end
  if self._index then self._index:close() end
  self._index, self._queue, self._broken = nil, {}, true
end

return M
