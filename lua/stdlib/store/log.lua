--- A file of lines that many fibers append to: one sync serves all that wait (group commit).
---
--- A line is in the file whole and synced when `append` returns, or it is not there. Syncs that follow one another
--- closely wait for lines to share them with; one that comes alone is made at once. Files follow one another when one is
--- long enough; a torn last line is cut when the log is opened.
local async = require "agentbox.async"
local fiber = require "agentbox.sys.fiber"
local fs = require "agentbox.sys.fs"
local recover = require "agentbox.store.recover"
local time = require "agentbox.sys.time"

local M = {}

-- A sync costs the engine as much as ten lines. The next one begins this long after the last one, or when so many lines
-- share it that waiting for more would save nothing.
local GATHER_S = 0.04
local ENOUGH = 8

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
---@field before? fun(batch: agentbox.LogEntry[]): boolean?, agentbox.Err?
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
    _pending = {}, _turn = async.semaphore(1), _synced_s = -math.huge,
  }, Log)
  local ok, problem = open_segment(self)
  if not ok then return nil, problem end
  return self
end

-- Makes ready the file that the next lines go to.
local function ready(self)
  if self._broken then return nil, self._broken end
  if not self._file then return open_segment(self) end
  local size = self._file:size()
  if not self._limit or not size or size < self._limit() then return true end
  self._file:close()
  self._file, self.segment = nil, self.segment + 1
  return open_segment(self)
end

-- Takes back what is in the file from an offset on. The kernel tells of a failed sync once and then takes the pages for
-- clean: what it covered is never synced again, only written again; and a file whose name may be lost is made again.
local function take_back(self, offset)
  local ok, problem = self._file:truncate(offset)
  if ok and self._new_in then
    self._file:close()
    self._file = nil
    ok, problem = fs.remove(self._path(self.segment))
  end
  if not ok then self._broken = problem end
  return ok, problem
end

-- Lines that somebody wrote who was cancelled while they were synced: nobody has seen whether that went well.
local function drop_unseen(self, batch)
  local ok, problem = true, nil
  if batch[1].offset then ok, problem = take_back(self, batch[1].offset) end
  for _, entry in ipairs(batch) do entry.offset = nil end
  return ok, problem
end

local function write_lines(self, batch)
  local at = self._file:size()
  for _, entry in ipairs(batch) do
    if type(entry.line) == "function" then entry.line = entry.line() end
    entry.segment, entry.offset, entry.bytes = self.segment, at, #entry.line
    at = at + entry.bytes
    local ok, problem = self._file:write(entry.line)
    if not ok then return nil, problem end
  end
  local ok, problem = self._file:sync()
  if ok and self._new_in then ok, problem = fs.sync_dir(self._new_in) end
  return ok, problem
end

-- Writes the lines, and syncs once for all of them; a failure takes all of them back.
local function write_batch(self, batch)
  local ok, problem = drop_unseen(self, batch)
  if ok then ok, problem = ready(self) end
  if ok and self._before then ok, problem = self._before(batch) end
  if not ok then return nil, problem end
  self._synced_s = time.monotonic()
  ok, problem = write_lines(self, batch)
  if ok then
    self._new_in = nil
    return true
  end
  take_back(self, batch[1].offset)
  return nil, problem
end

local gathering = { __close = function(self) self.log._gatherer = nil end }

-- Waits for lines to share the sync with, when one was made a moment ago.
local function gather(self)
  local left = self._synced_s + GATHER_S - time.monotonic()
  if left <= 0 or #self._pending >= ENOUGH then return end
  local _ <close> = setmetatable({ log = self }, gathering)
  self._gatherer = fiber.current()
  fiber.park(left)
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
  if self._gatherer and #self._pending >= ENOUGH then self._gatherer:wake() end
  local _ <close> = self._turn:acquire()
  if not entry.done then
    gather(self)
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
