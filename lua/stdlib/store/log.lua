--- A file of lines that many fibers append to: one write and one sync serve all that wait (group commit).
---
--- A line is in the file whole and synced when `append` returns, or it is not there. Files follow one another when one
--- is long enough; a torn last line is cut when the log is opened.
local async = require "agentbox.async"
local fs = require "agentbox.sys.fs"
local recover = require "agentbox.store.recover"

local M = {}

---@class agentbox.LogEntry
---@field line string|fun(): string   # ends with a line feed; a function makes it when its place is known
---@field segment integer?   # set once it is written: which file, and where in it
---@field offset integer?
---@field bytes integer?

---@class agentbox.Log
---@field segment integer    # the file that is written to
local Log = {}
Log.__index = Log

local function open_segment(self)
  local path = self._path(self.segment)
  self._new_in = not fs.stat(path) and path:match "^(.*)/" or nil
  local ok, problem = recover.cut_torn(path)
  if not ok then return nil, problem end
  local file, bad = fs.append_open(path)
  if not file then return nil, bad end
  self._file = file
  return true
end

---@class agentbox.LogOpts
---@field path fun(segment: integer): string
---@field segment? integer                   # the one to go on with
---@field limit? fun(): integer              # bytes after which the next segment is begun
---@field before? fun(): boolean?, agentbox.Err?
---@field ended? fun(batch: agentbox.LogEntry[], problem?: agentbox.Err)

--- Opens a log. `before` puts on the disk what the lines refer to, before they are written; `ended` hears of every
--- batch that was written, or taken back.
---@async
---@nodiscard
---@param opts agentbox.LogOpts
---@return agentbox.Log?
---@return agentbox.Err? err
function M.open(opts)
  local self = setmetatable({
    _path = opts.path, segment = opts.segment or 0, _limit = opts.limit, _before = opts.before, _ended = opts.ended,
    _pending = {}, _turn = async.semaphore(1),
  }, Log)
  local ok, problem = open_segment(self)
  if not ok then return nil, problem end
  return self
end

local function rotate(self)
  local size = self._file:size()
  if not self._limit or not size or size < self._limit() then return true end
  self._file:close()
  self._file, self.segment = nil, self.segment + 1
  return open_segment(self)
end

-- Writes the lines that are not in the file yet, and syncs once for all of them; a failure takes all of them back.
local function write_batch(self, batch)
  local ok, problem = true, nil
  if not batch[1].offset then ok, problem = rotate(self) end
  if ok and self._before then ok, problem = self._before() end
  if not ok then return nil, problem end
  local lines, at = {}, self._file:size()
  for _, entry in ipairs(batch) do
    if not entry.offset then
      local line = type(entry.line) == "function" and entry.line() or entry.line
      entry.segment, entry.offset, entry.bytes = self.segment, at, #line
      at = at + #line
      lines[#lines + 1] = line
    end
  end
  ok, problem = self._file:write(table.concat(lines))
  if ok then ok, problem = self._file:sync() end
  if ok and self._new_in then ok, problem = fs.sync_dir(self._new_in) end
  if ok then
    self._new_in = nil
    return true
  end
  self._file:truncate(batch[1].offset)
  return nil, problem
end

local function finish(self, batch, problem)
  for _, one in ipairs(batch) do one.done, one.problem, one.line = true, problem, nil end
  if self._ended then self._ended(batch, problem) end
end

--- Appends a line; returns when it is on the disk. One fiber writes for all that wait. Whoever is cancelled while it
--- syncs leaves its entries to the next.
---@async
---@nodiscard
---@param entry agentbox.LogEntry
---@return agentbox.LogEntry?
---@return agentbox.Err? err
function Log:append(entry)
  table.insert(self._pending, entry)
  local _ <close> = self._turn:acquire()
  if not entry.done then
    local n = #self._pending
    local batch = table.move(self._pending, 1, n, 1, {})
    local ok, problem = write_batch(self, batch)
    self._pending = table.move(self._pending, n + 1, #self._pending, 1, {})
    finish(self, batch, not ok and problem or nil)
  end
  if entry.problem then return nil, entry.problem end
  return entry
end

--- May be called twice.
function Log:close()
  if self._file then self._file:close() end
  self._file = nil
end

return M
