--- What happened to a run besides its rollouts: `events.jsonl`, one object a line with `t` and `kind`.
---
--- A line is handed to the operating system at once, so that it survives the engine; it is synced together with the
--- next rollout, and at the end.
local err = require "agentbox.err"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local plain = require "agentbox.record.plain"
local recover = require "agentbox.store.recover"
local secret = require "agentbox.secret"
local time = require "agentbox.sys.time"

local M = {}

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
  local self = setmetatable({ _path = run_dir .. "/events.jsonl" }, Events)
  local ok, problem = recover.cut_torn(self._path)
  if not ok then return nil, problem end
  return self
end

--- Adds an event.
---@nodiscard
---@param kind string
---@param fields? table
---@return boolean? ok
---@return agentbox.Err? err
function Events:add(kind, fields)
  if self._closed then return nil, err.new("badarg", "the store is closed") end
  if not self._file then
    local problem
    self._new = not fs.stat(self._path)
    self._file, problem = fs.append_open(self._path)
    if not self._file then return nil, problem end
  end
  local doc = json.object {}
  doc.t, doc.kind = time.now(), kind
  for key, value in pairs(plain.copy(fields or {}, "event", {})) do
    if doc[key] == nil then doc[key] = value end
  end
  self._unsynced = true
  return self._file:write(secret.redact(json.encode(doc)) .. "\n")
end

--- Puts what was added on the disk.
---@async
---@nodiscard
---@return boolean? ok
---@return agentbox.Err? err
function Events:sync()
  if not self._file or not self._unsynced then return true end
  local new = self._new
  self._unsynced, self._new = false, false
  local ok, problem = self._file:sync()
  if ok and new then ok, problem = fs.sync_dir(self._path:match "^(.*)/") end
  return ok, problem
end

--- May be called twice.
function Events:close()
  if self._file then self._file:close() end
  self._file, self._closed = nil, true
end

return M
