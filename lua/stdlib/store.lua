--- Where finished rollouts go: a folder that is complete after every `append`, whatever happens next.
---
---     DIR/<run>/run.json                   what ran, written first
---     DIR/<run>/trajectories-00000.jsonl   one line per finished rollout, appended and synced
---     DIR/<run>/blobs/ab/abcd...           large bodies and artifacts, by their hash
---     DIR/<run>/lock                       held while a writer lives
---     DIR/<task>_<run8>.json               the same rollout in AgentBox's JSON
---
--- Order of one append: blobs, AgentBox JSON, line, sync. A line that is there is whole and has its blobs.
local agentbox = require "agentbox.formats.agentbox"
local async = require "agentbox.async"
local err = require "agentbox.err"
local frame = require "agentbox.store.frame"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local name = require "agentbox.store.name"
local os_ = require "agentbox.sys.os"
local plain = require "agentbox.record.plain"
local recover = require "agentbox.store.recover"
local secret = require "agentbox.secret"
local time = require "agentbox.sys.time"

local M = { safe_name = name.safe }

--- A new segment is begun when the last one has this many bytes.
M.SEGMENT_BYTES = 1 << 30

---@class agentbox.Store
---@field dir string       # the output folder
---@field run_dir string   # DIR/<run>
local Store = {}
Store.__index = Store

local function segment_path(run_dir, n)
  return ("%s/trajectories-%05d.jsonl"):format(run_dir, n)
end

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

local function write_run(self, meta)
  local path = self.run_dir .. "/run.json"
  if fs.stat(path) then return true end
  local notes, doc = {}, json.object {}
  doc.schema = "agentbox.run/1"
  doc.run = self.run_id
  doc.engine = os_.version
  doc.started = time.now()
  for key, value in pairs(plain.copy(meta or {}, "run", notes)) do doc[key] = value end
  return fs.write(path, secret.redact(json.encode(doc, { indent = 2 })) .. "\n", { sync = true })
end

local function open_segment(self)
  local path = segment_path(self.run_dir, self.segment)
  local ok, problem = recover.cut_torn(path)
  if not ok then return nil, problem end
  local file, bad = fs.append_open(path)
  if not file then return nil, bad end
  self._file = file
  return true
end

--- Opens the store of a run, making or continuing its folder; a torn last line is cut.
---
--- Returns nil, err if the folder cannot be written (`denied`, `io`, `full`), or if another process writes the same
--- run (`busy`).
---@async
---@nodiscard
---@param dir string
---@param opts { run_id: string, meta?: table, agentbox_json?: boolean }
---@return agentbox.Store?
---@return agentbox.Err? err
function M.open(dir, opts)
  local self = setmetatable({
    dir = dir, run_id = opts.run_id, run_dir = dir .. "/" .. name.safe(opts.run_id),
    _json = opts.agentbox_json ~= false, segment = 0, _pending = {}, _turn = async.semaphore(1),
  }, Store)
  local function failed(problem)
    self:close()
    return nil, err.wrap(problem, "cannot record into " .. dir)
  end
  local ok, problem = fs.mkdir(self.run_dir, true)
  if not ok then return failed(problem) end
  self._lock, problem = fs.lock(self.run_dir .. "/lock")
  if not self._lock then return failed(problem) end
  recover.sweep(self.dir, self.run_dir)
  ok, problem = write_run(self, opts.meta)
  if not ok then return failed(problem) end
  self.segment, problem = last_segment(self.run_dir)
  if not self.segment then return failed(problem) end
  ok, problem = open_segment(self)
  if not ok then return failed(problem) end
  return self
end

local function blob_path(run_dir, id)
  local hex = id:gsub("^sha256:", "")
  return ("%s/blobs/%s"):format(run_dir, hex:sub(1, 2)), hex
end

local function write_blobs(self, blobs)
  for id, bytes in pairs(blobs) do
    local folder, hex = blob_path(self.run_dir, id)
    if not fs.stat(folder .. "/" .. hex) then
      local ok, problem = fs.mkdir(folder, true)
      if ok then ok, problem = fs.write(folder .. "/" .. hex, bytes, { sync = true }) end
      if not ok then return nil, problem end
    end
  end
  return true
end

local function rotate(self)
  local size = self._file:size()
  if not size or size < M.SEGMENT_BYTES then return true end
  self._file:close()
  self._file, self.segment = nil, self.segment + 1
  return open_segment(self)
end

-- Writes the lines that are not in the file yet, and syncs once for all of them; a failure takes all of them back.
local function write_batch(self, batch)
  local ok, problem = true, nil
  if not batch[1].offset then ok, problem = rotate(self) end
  if not ok then return nil, problem end
  local lines, at = {}, self._file:size()
  for _, entry in ipairs(batch) do
    if not entry.offset then
      entry.segment = self.segment
      entry.offset = at
      at = at + #entry.line
      lines[#lines + 1] = entry.line
    end
  end
  ok, problem = self._file:write(table.concat(lines))
  if ok then ok, problem = self._file:sync() end
  if ok then return true end
  self._file:truncate(batch[1].offset)
  return nil, problem
end

-- One fiber writes for all that wait. Whoever is cancelled while it syncs leaves its entries to the next.
local function write_line(self, line)
  local entry = { line = line }
  table.insert(self._pending, entry)
  local _ <close> = self._turn:acquire()
  if not entry.done then
    local n = #self._pending
    local batch = table.move(self._pending, 1, n, 1, {})
    local ok, problem = write_batch(self, batch)
    self._pending = table.move(self._pending, n + 1, #self._pending, 1, {})
    for _, one in ipairs(batch) do
      one.done = true
      one.problem = not ok and problem or nil
    end
  end
  if entry.problem then return nil, entry.problem end
  return entry
end

-- AgentBox's file for the rollout. Its name is taken from task and run; where several rollouts share both, a
-- number follows.
local function write_json(self, t)
  local doc = agentbox.convert(t)
  local text = secret.redact(json.encode(doc, { indent = 2 }))
  local stem = ("%s/%s_%s"):format(self.dir, name.safe(t.task_id), name.safe(t.run_id:sub(1, 8)))
  local path, n = stem .. ".json", 1
  while true do
    local ok, problem = fs.write(path, text, { sync = true, exclusive = true })
    if ok then return path end
    if problem.code ~= "exists" then return nil, problem end
    n = n + 1
    path = ("%s_%d.json"):format(stem, n)
  end
end

---@class agentbox.Stored
---@field run_dir string
---@field segment integer
---@field offset integer    # of the line in its segment
---@field json string?      # AgentBox's file

--- Writes a finished rollout. When this returns, it survives a crash.
---
--- Returns nil, err if it could not be written whole; then no line and no document of it is left.
---@async
---@nodiscard
---@param t agentbox.Traj
---@return agentbox.Stored?
---@return agentbox.Err? err
function Store:append(t)
  if not self._file then return nil, err.new("badarg", "the store is closed") end
  local ok, problem = write_blobs(self, t._from.blobs or {})
  local entry, path
  if ok and self._json then path, problem = write_json(self, t) end
  if path or ok and not self._json then
    entry, problem = write_line(self, frame.close(secret.redact(json.encode(t.line))))
  end
  if entry then return { run_dir = self.run_dir, segment = entry.segment, offset = entry.offset, json = path } end
  if path then fs.remove(path) end
  return nil, err.wrap(problem, ("cannot record %s into %s"):format(t.id, self.run_dir))
end

--- Lets go of the run's folder; may be called twice.
function Store:close()
  if self._file then self._file:close() end
  if self._lock then self._lock:close() end
  self._file, self._lock = nil, nil
end

Store.__close = Store.close

--- The path of a blob in a run folder, and its bytes' hash in hex.
---@param run_dir string
---@param id string    # "sha256:..."
---@return string path
function M.blob_path(run_dir, id)
  local folder, hex = blob_path(run_dir, id)
  return folder .. "/" .. hex
end

return M
