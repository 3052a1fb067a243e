--- What happened to a run besides its rollouts: `events.jsonl`, one object a line with `t` and `kind`.
---
--- A line is handed to the operating system at once, so that it survives the engine; it is synced with a rollout, at most
--- once a second, and at the end. Nothing is known from events alone, so a sync that fails is told and no more. A run
--- that is over has events too, while its groups are delivered: the file is opened for each of them.
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local message = require "agentbox.log"
local plain = require "agentbox.record.plain"
local recover = require "agentbox.store.recover"
local secret = require "agentbox.secret"
local time = require "agentbox.sys.time"

local M = {}

local EVERY_S = 1

---@class agentbox.StoreEvents
local Events = {}
Events.__index = Events

--- Opens the events of a run.
---@async
---@nodiscard
---@param run_dir string
---@return agentbox.StoreEvents?
---@return agentbox.Err? err
function M.open(run_dir)
  local self = setmetatable({ _path = run_dir .. "/events.jsonl", _synced_s = -math.huge }, Events)
  local ok, problem = recover.cut_torn(self._path)
  if not ok then return nil, problem end
  return self
end

local function open_file(self)
  local problem
  self._new = not fs.stat(self._path)
  self._file, problem = fs.append_open(self._path)
  return self._file, problem
end

--- Adds an event.
---@nodiscard
---@param kind string
---@param fields? table
---@return boolean? ok
---@return agentbox.Err? err
function Events:add(kind, fields)
  if not self._file then
    local file, problem = open_file(self)
    if not file then return nil, problem end
  end
  local doc = json.object {}
  doc.t, doc.kind = time.now(), kind
  for key, value in pairs(plain.copy(fields or {}, "event", {})) do
    if doc[key] == nil then doc[key] = value end
  end
  self._unsynced = true
  local ok, problem = self._file:write(secret.redact(json.encode(doc)) .. "\n")
  if self._closed then self:_release() end
  return ok, problem
end

function Events:_release()
  self._file:close()
  self._file = nil
end

--- Puts what was added on the disk, unless that was done a moment ago.
---@async
---@param now? boolean   # also then
function Events:sync(now)
  local clock = time.monotonic()
  if not self._file or not self._unsynced or not now and clock < self._synced_s + EVERY_S then return end
  local new = self._new
  self._unsynced, self._new, self._synced_s = false, false, clock
  local ok, problem = self._file:sync()
  if ok and new then ok, problem = fs.sync_dir(self._path:match "^(.*)/") end
  if not ok then message.warn("%s: what was added last may be lost: %s", self._path, problem.msg) end
end

--- May be called twice.
---@async
function Events:close()
  if self._file then
    self:sync(true)
    self:_release()
  end
  self._closed = true
end

return M
