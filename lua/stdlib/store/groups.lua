--- Closed groups of a run, and how far its consumer has come.
---
---     groups.jsonl   one line per closed group; the n-th line is group number n
---     cursor.json    the number up to which all groups were acknowledged, and those beyond it that were
---
--- A group is written after its members' lines; a group that is there can be trained on.
local err = require "agentbox.err"
local frame = require "agentbox.store.frame"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local log = require "agentbox.store.log"
local plain = require "agentbox.record.plain"
local regular = require "agentbox.store.regular"
local secret = require "agentbox.secret"
local time = require "agentbox.sys.time"

local M = {}

local WRITING = -1

---@class agentbox.StoreGroups
local Groups = {}
Groups.__index = Groups

local function damaged(path, n)
  return nil, err.new("parse", ("%s:%d: the line does not have its recorded sum"):format(path, n))
end

local function decode(line, path, n)
  local text, whole = frame.read(line)
  local group = whole and json.decode(text)
  if not json.is_object(group) or group.seq ~= n then return damaged(path, n) end
  return group
end

-- Notes where each group is.
local function scan(self)
  local file <close>, missing = regular(self._path)
  if not file then return nil, missing end
  local at = 0
  for line in file:lines "L" do
    local n = #self._offsets + 1
    local group, problem = decode(line, self._path, n)
    if not group then return nil, problem end
    self._offsets[n], self._known[group.id] = at, n
    at = at + #line
  end
  return true
end

local function read_cursor(path)
  if not fs.stat(path) then return 0, {} end
  local text, problem = fs.read(path)
  if not text then return nil, problem end
  local doc = json.decode(text)
  local ahead = {}
  local fine = json.is_object(doc) and math.type(doc.acknowledged) == "integer"
  for i, seq in ipairs(fine and doc.ahead or ahead) do
    ahead[i], fine = seq, fine and math.type(seq) == "integer"
  end
  if fine then return doc.acknowledged, ahead end
  return nil, err.new("parse", path .. ": not a cursor")
end

-- The file is made for the first group, and opened at once where it is there: a torn line is cut before it is read.
local function open_log(self)
  local problem
  self._log, problem = log.open { path = function() return self._path end, ended = function(...) self:_ended(...) end }
  return self._log ~= nil, problem
end

--- Opens the groups of a run.
---@async
---@nodiscard
---@param run_dir string
---@return agentbox.StoreGroups?
---@return agentbox.Err? err
function M.open(run_dir)
  local path = run_dir .. "/groups.jsonl"
  local self = setmetatable({
    _path = path, _cursor_path = run_dir .. "/cursor.json", _offsets = {}, _known = {},
  }, Groups)
  local ok, problem = true, nil
  if fs.stat(path) then
    ok, problem = open_log(self)
    if ok then ok, problem = scan(self) end
  end
  local ahead
  if ok then self._cursor, ahead = read_cursor(self._cursor_path) end
  if self._cursor then self._ahead = ahead else problem = problem or ahead end
  self._next = #self._offsets + 1
  if self._cursor then return self end
  self:close()
  return nil, problem
end

function Groups:_ended(batch, problem)
  for _, entry in ipairs(batch) do
    if not problem then self._offsets[entry.seq] = entry.offset end
    self._known[entry.id] = not problem and entry.seq or nil
  end
  self._next = #self._offsets + 1
end

-- Its number is the next one when its line is written, not before: what is written before it may fail.
local function line_of(self, entry, facts)
  local doc = json.object {}
  entry.seq, self._next = self._next, self._next + 1
  doc.schema, doc.seq, doc.id = "agentbox.group/1", entry.seq, facts.id
  doc.members = json.array(table.move(facts.members, 1, #facts.members, 1, {}))
  doc.closed_at = time.now()
  for key, value in pairs(plain.copy(facts, "group", {})) do
    if doc[key] == nil then doc[key] = value end
  end
  return frame.close(secret.redact(json.encode(doc)))
end

--- Adds a closed group; returns its number when it is on the disk. A group that is there already keeps its number.
---@async
---@nodiscard
---@param facts { id: string, members: string[], [string]: any }
---@return integer? seq
---@return agentbox.Err? err
function Groups:add(facts)
  local known = self._known[facts.id]
  if known == WRITING then return nil, err.new("busy", ("group %s is being written"):format(facts.id)) end
  if known then return known end
  if not self._log then
    local ok, problem = open_log(self)
    if not ok then return nil, problem end
  end
  local entry = { id = facts.id }
  entry.line = function() return line_of(self, entry, facts) end
  self._known[facts.id] = WRITING
  local ok, problem = self._log:append(entry)
  if not ok then return nil, problem end
  return entry.seq
end

--- How many groups are closed.
---@return integer
function Groups:count()
  return #self._offsets
end

--- Iterates over the closed groups with a number above `after` (default: the cursor), in order, up to the last one
--- there is.
---@async
---@param after? integer
---@return fun(): table?
function Groups:each(after)
  local n, file = after or self._cursor, nil
  return function()
    local at = self._offsets[n + 1]
    if not at then
      if file then file:close() end
      file = nil
      return nil
    end
    file = file or assert(io.open(self._path, "rb"))
    file:seek("set", at)
    n = n + 1
    return assert(decode(file:read "L", self._path, n))
  end
end

--- Acknowledges all groups up to number `seq`: they are not delivered again, whatever happens next. `ahead` are groups
--- beyond it that were acknowledged too.
---@async
---@nodiscard
---@param seq integer
---@param ahead? integer[]
---@return boolean? ok
---@return agentbox.Err? err
function Groups:ack(seq, ahead)
  if seq < self._cursor or seq == self._cursor and not ahead then return true end
  if seq > #self._offsets then
    return nil, err.new("badarg", ("group %d is not closed: there are %d"):format(seq, #self._offsets))
  end
  local doc = json.object {}
  doc.schema, doc.acknowledged, doc.at = "agentbox.cursor/1", seq, time.now()
  if ahead and #ahead > 0 then doc.ahead = json.array(ahead) end
  local ok, problem = fs.write(self._cursor_path, json.encode(doc) .. "\n", { sync = true })
  if not ok then return nil, problem end
  self._cursor = math.max(self._cursor, seq)
  return true
end

--- The number up to which all groups are acknowledged; 0 before the first.
---@return integer
function Groups:cursor()
  return self._cursor
end

--- Those beyond it that had been acknowledged when the groups were opened.
---@return integer[]
function Groups:ahead()
  return self._ahead
end

--- May be called twice.
function Groups:close()
  if self._log then self._log:close() end
end

return M
