--- Where finished rollouts go: a folder that is complete after every `append`, whatever happens next.
---
---     DIR/<run>/run.json                   what ran, written first
---     DIR/<run>/trajectories-00000.jsonl   one line per finished rollout, appended and synced
---     DIR/<run>/groups.jsonl               one line per closed group; cursor.json: how far they were acknowledged
---     DIR/<run>/events.jsonl               what else happened
---     DIR/<run>/planes-00000.bin           long lists of token ids and log-probs, packed
---     DIR/<run>/blobs/ab/abcd...           large bodies and artifacts, by their hash
---     DIR/<run>/run.db                     the index of it all, which may be deleted
---     DIR/<run>/lock                       held while a writer lives
---     DIR/<task>_<run8>.json               the same rollout in AgentBox's JSON
---
--- Order of one append: blobs, AgentBox JSON, planes, sync, line, sync. A line that is there is whole and has its blobs.
--- What failed to sync is never synced again as if it were fine: it is taken back and written anew, or the append fails.
local async = require "agentbox.async"
local blobs = require "agentbox.store.blobs"
local documents = require "agentbox.store.documents"
local err = require "agentbox.err"
local events = require "agentbox.store.events"
local frame = require "agentbox.store.frame"
local fs = require "agentbox.sys.fs"
local groups = require "agentbox.store.groups"
local json = require "agentbox.json"
local log = require "agentbox.store.log"
local message = require "agentbox.log"
local name = require "agentbox.store.name"
local os_ = require "agentbox.sys.os"
local plain = require "agentbox.record.plain"
local planes = require "agentbox.store.planes"
local read = require "agentbox.store.read"
local recover = require "agentbox.store.recover"
local rows = require "agentbox.store.rows"
local schema = require "agentbox.schema"
local scratch = require "agentbox.sys.scratch"
local secret = require "agentbox.secret"
local summary = require "agentbox.store.summary"
local time = require "agentbox.sys.time"

local M = { safe_name = name.safe, slot = summary.slot }

--- A new segment is begun when the last one has this many bytes.
M.SEGMENT_BYTES = 1 << 30

-- So much of what is in flight waits in memory: that of some sixty rollouts. A write for every text would be a fourth
-- of what writing costs.
local NEAR_BYTES = 3 << 20

local MAX_PAUSE_S = 5
local LOCK_WAIT_S = 1
local OPTIONS = {
  run_id = { "string", required = true }, meta = { "map" }, resume = { "boolean" }, agentbox_json = { "boolean" },
  full_wait_s = { "number", min = 0 },
}

---@class agentbox.Store
---@field dir string         # the output folder
---@field run_dir string     # DIR/<run>
---@field run table          # run.json as it was written when the run began
---@field scratch agentbox.Scratch?   # where what is in flight waits for its line; nil: in memory
---@field full_since number? # unix seconds: appends are waiting for room on the disk
local Store = {}
Store.__index = Store

local function last_segment(run_dir)
  local entries, problem = fs.list(run_dir)
  if not entries then return nil, problem end
  local last = 0
  for _, entry in ipairs(entries) do
    local n = tonumber(entry.name:match "^trajectories%-(%d+)%.jsonl$")
    if n and n > last then last = n end
  end
  return last
end

-- Writes run.json, or reads the one that is there.
local function describe_run(self, meta)
  local path = self.run_dir .. "/run.json"
  if fs.stat(path) then
    local text, unreadable = fs.read(path)
    if not text then return nil, unreadable end
    local doc, damage = json.decode(text)
    return doc, damage and err.wrap(damage, path)
  end
  local doc = json.object {}
  doc.schema = "agentbox.run/1"
  doc.run = self.run_id
  doc.engine = os_.version
  doc.started = time.now()
  for key, value in pairs(plain.copy(meta or {}, "run", {})) do doc[key] = value end
  local ok, problem = fs.write(path, secret.redact(json.encode(doc, { indent = 2 })) .. "\n", { sync = true })
  if not ok then return nil, problem end
  return doc
end

-- Before lines are written, what they refer to is on the disk.
local function settle(self, batch)
  self._events:sync()
  local ok, problem = self._planes:sync()
  for _, entry in ipairs(batch) do
    if ok then ok, problem = self._planes:stands(entry.packed) end
  end
  return ok, problem
end

local function open_segments(self)
  local last, problem = last_segment(self.run_dir)
  if not last then return nil, problem end
  return log.open {
    segment = last, limit = function() return M.SEGMENT_BYTES end,
    path = function(n) return rows.segment_path(self.run_dir, n) end,
    before = function(batch) return settle(self, batch) end,
    ended = function(batch, failed)
      if not failed then self._rows:add(batch) end
    end,
  }
end

local function check_expected(self, resume, there)
  if resume == true and not there then
    return nil, err.new("notfound", ("no run %s in %s to resume"):format(self.run_id, self.dir))
  end
  if resume == false and there then
    return nil, err.new("exists", ("run %s is in %s already"):format(self.run_id, self.dir))
  end
  return true
end

-- The kernel lets go of a killed process's lock a moment after the process is gone: who starts again at once waits.
local function lock_run(self)
  local deadline = time.monotonic() + LOCK_WAIT_S
  while true do
    local lock, problem = fs.lock(self.run_dir .. "/lock")
    if lock or problem.code ~= "busy" or time.monotonic() > deadline then return lock, problem end
    async.sleep(0.02)
  end
end

local function open_parts(self, opts)
  local going_on = fs.stat(self.run_dir .. "/run.json") ~= nil
  local ok, problem = check_expected(self, opts.resume, going_on)
  if ok then ok, problem = fs.mkdir(self.run_dir, true) end
  if ok and not going_on then ok, problem = fs.sync_dir(self.dir) end
  if ok then self._lock, problem = lock_run(self) end
  if not self._lock then return nil, problem end
  recover.sweep(self.dir, self.run_dir)
  self.run, problem = describe_run(self, opts.meta)
  self._planes = planes.open(self.run_dir)
  if self.run then self._segments, problem = open_segments(self) end
  if self._segments then self._groups, problem = groups.open(self.run_dir) end
  if self._groups then self._events, problem = events.open(self.run_dir) end
  if not self._events then return nil, problem end
  self._rows = rows.open(self.run_dir, true)
  self.scratch = scratch.open(self.run_dir, NEAR_BYTES)
  if self._json and going_on then
    documents.sweep(self.dir, self.run_id, self._rows:each(), function(row)
      return read.at(self.run_dir, row.segment, row.offset)
    end)
  end
  return true
end

---@class agentbox.StoreOpts
---@field run_id string
---@field meta? table              # what run.json tells, when the run is new
---@field resume? boolean          # true: the run must be there; false: it must not; default: either
---@field agentbox_json? boolean   # default true: AgentBox's document of each rollout, too
---@field full_wait_s? number      # how long an append waits for room on a full disk; default 0: it fails at once

--- Opens the store of a run, making or continuing its folder; a torn last line is cut.
---
--- Returns nil, err if the folder cannot be written (`denied`, `io`, `full`), if another process writes the same run
--- (`busy`), or if `resume` is not met (`notfound`, `exists`).
---@async
---@nodiscard
---@param dir string
---@param opts agentbox.StoreOpts
---@return agentbox.Store?
---@return agentbox.Err? err
function M.open(dir, opts)
  opts = schema.options(opts, OPTIONS, "store.open")
  local self = setmetatable({
    dir = dir, run_id = opts.run_id, run_dir = dir .. "/" .. name.safe(opts.run_id),
    _json = opts.agentbox_json ~= false, _full_wait_s = opts.full_wait_s or 0, _numbers = {},
    _folders = {}, _holds = 0,
  }, Store)
  local ok, problem = open_parts(self, opts)
  if ok then return self end
  self:close()
  return nil, err.wrap(problem, "cannot record into " .. dir)
end

---@class agentbox.Stored
---@field run_dir string
---@field segment integer
---@field offset integer    # of the line in its segment
---@field json string?      # AgentBox's file

local function append_line(self, line)
  local text, age = self._planes:pack(secret.redact(json.encode(line)))
  if not text then return nil, age end
  return self._segments:append { row = summary.of(line), packed = age, line = frame.close(text) }
end

local function append_once(self, t)
  local ok, problem = blobs.write(self.run_dir, t._from.blobs or {}, self._folders)
  local path, entry
  if ok and self._json then
    path, problem = documents.write(self.dir, t, self._numbers)
    ok = path
  end
  if ok then entry, problem = append_line(self, t.line) end
  if entry then return { run_dir = self.run_dir, segment = entry.segment, offset = entry.offset, json = path } end
  if path then fs.remove(path) end
  return nil, problem
end

local function say_full(self)
  if self.full_since then return end
  self.full_since = time.now()
  message.warn("%s: the disk is full; the run is paused until there is room (at most %.0f s)", self.run_dir,
    self._full_wait_s)
end

-- What is written on a full disk waits here, and the runner with it: `write` is tried again until there is room.
local function with_room(self, write)
  local pause, deadline = 0.25, time.monotonic() + self._full_wait_s
  while true do
    local done, problem = write()
    if done and self.full_since then
      message.warn("%s: there is room again after %.0f s; the run goes on", self.run_dir, time.now() - self.full_since)
      self.full_since = nil
    end
    if done then return done end
    if problem.code == "full" and time.monotonic() + pause <= deadline then
      say_full(self)
      async.sleep(pause)
      pause = math.min(pause * 2, MAX_PAUSE_S)
    elseif not problem.again then
      return nil, problem
    end
  end
end

local function check_open(self)
  if not self._closed then return true end
  return nil, err.new("badarg", "the store is closed")
end

--- Writes a finished rollout. When this returns, it survives a crash.
---
--- Returns nil, err if it could not be written whole; then no line and no document of it is left.
---@async
---@nodiscard
---@param t agentbox.Traj
---@return agentbox.Stored?
---@return agentbox.Err? err
function Store:append(t)
  local stored, problem = check_open(self)
  if stored then stored, problem = with_room(self, function() return append_once(self, t) end) end
  if stored then return stored end
  return nil, err.wrap(problem, ("cannot record %s into %s"):format(t.id, self.run_dir))
end

local SLOT_FIELDS = {
  "status", "final_status", "stop", "class", "scored", "reward", "id", "attempt", "segment", "offset",
}

---@class agentbox.FinishedSlot
---@field status string          # of its last attempt: completed, truncated, failed, cancelled
---@field final_status string?
---@field stop string            # why it ended
---@field class string?          # whose doing it was
---@field scored boolean
---@field reward number?
---@field attempts integer       # lines of the slot
---@field id string              # of the last attempt
---@field attempt integer        # its number
---@field segment integer        # where its line is
---@field offset integer

--- What is on the disk, by slot: `GROUP/MEMBER` for the members of groups, the id of any other rollout. A resumed run
--- does what is wanted less what is here. Of several attempts the last one counts. Every line is read: one that was
--- damaged since it was written is not here.
---@async
---@param seen? fun(row: agentbox.Summary)   # gets each attempt, in the order written
---@return table<string, agentbox.FinishedSlot>
function Store:finished(seen)
  local found = {}
  for row in self._rows:each(true) do
    if seen then seen(row) end
    local slot, before = {}, found[row.slot]
    for _, key in ipairs(SLOT_FIELDS) do slot[key] = row[key] end
    slot.attempts = 1 + (before and before.attempts or 0)
    if before and before.attempt > slot.attempt then
      before.attempts = slot.attempts
    else
      found[row.slot] = slot
    end
  end
  return found
end

--- Adds a closed group, whose members were appended; returns its number, from 1. A group that is there already keeps
--- its number, so that a resumed run may close it again.
---@async
---@nodiscard
---@param group { id: string, members: string[], [string]: any }   # members: ids of rollouts
---@return integer? seq
---@return agentbox.Err? err
function Store:group(group)
  if type(group.id) ~= "string" then error("a group needs an id", 2) end
  if type(group.members) ~= "table" then error("a group needs the list of its members", 2) end
  local ok, problem = check_open(self)
  if not ok then return nil, problem end
  return with_room(self, function() return self._groups:add(group) end)
end

--- Iterates over the closed groups with a number (`seq`) above `after_seq`, in order; by default over those that were
--- not acknowledged. It ends at the last one there is now.
---@async
---@param after_seq? integer
---@return fun(): table?
function Store:groups(after_seq)
  return self._groups:each(after_seq)
end

--- Acknowledges the groups up to number `seq`: no later process gets them from `groups()`. `ahead` are groups beyond it
--- that were acknowledged too: `ahead()` tells a later process.
---@async
---@nodiscard
---@param seq integer
---@param ahead? integer[]
---@return boolean? ok
---@return agentbox.Err? err
function Store:ack(seq, ahead)
  return with_room(self, function() return self._groups:ack(seq, ahead) end)
end

--- The number up to which all groups are acknowledged, 0 before the first; and how many are closed.
---@return integer cursor
---@return integer closed
function Store:cursor()
  return self._groups:cursor(), self._groups:count()
end

--- The groups beyond that number that an earlier process acknowledged.
---@return integer[]
function Store:ahead()
  return self._groups:ahead()
end

--- Adds a line to events.jsonl: it survives the engine at once, and the machine about a second later.
---@nodiscard
---@param kind string
---@param fields? table
---@return boolean? ok
---@return agentbox.Err? err
function Store:event(kind, fields)
  return self._events:add(kind, fields)
end

local function unlock(self)
  if not self._closed or self._holds > 0 or not self._lock then return end
  self._lock:close()
  self._lock = nil
end

local Hold = {}
Hold.__index = Hold

--- May be called twice.
function Hold:close()
  local store = self.store
  if not store then return end
  self.store, store._holds = nil, store._holds - 1
  unlock(store)
end

--- Keeps other processes from going on with the run, beyond `close`, until what it gives is closed: groups are given out
--- and acknowledged when the last rollout has long been written.
---@async
---@nodiscard
---@return { close: fun(self: table) }?
---@return agentbox.Err? err             # code `busy`: the store was closed, and somebody has gone on with the run
function Store:hold()
  if not self._lock then
    local problem
    self._lock, problem = lock_run(self)
    if not self._lock then return nil, problem end
  end
  self._holds = self._holds + 1
  return setmetatable({ store = self }, Hold)
end

--- Lets go of the run's folder; may be called twice.
function Store:close()
  for _, part in ipairs { "_segments", "_planes", "_groups", "_events", "_rows" } do
    if self[part] then self[part]:close() end
  end
  if self.scratch then self.scratch:close() end
  self.scratch, self._closed = nil, true
  unlock(self)
end

Store.__close = Store.close

--- The path of a blob in a run folder.
M.blob_path = blobs.path

return M
