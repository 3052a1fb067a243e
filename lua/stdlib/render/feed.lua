--- The rows of a path that grows: read as far as there is, then what comes, kept as the text that browsers get, so that
--- a run of a hundred thousand is some megabytes.
local fs = require "agentbox.sys.fs"
local async = require "agentbox.async"
local row = require "agentbox.render.row"
local source = require "agentbox.render.source"

local M = {}

-- Rows of a finished part, and parts of one answer.
local PART, PARTS = 1000, 10
-- Rows after which others have a turn while much is read.
local TURN = 50
-- Fields that figures are made of.
local FACTS = { "slot", "attempt", "task", "reward", "status", "model", "tokens" }

---@class agentbox.Feed
---@field n integer
---@field damaged integer
local Feed = {}
Feed.__index = Feed

--- Opens a feed; nothing is read yet.
---@async
---@nodiscard
---@param path string
---@return agentbox.Feed?
---@return agentbox.Err? err
function M.open(path)
  local self = setmetatable({
    n = 0, damaged = 0, _path = path, _parts = {}, _open = {}, _files = {}, _file = {}, _offset = {}, _facts = {},
    _reached = {}, _paths = {},
  }, Feed)
  for _, name in ipairs(FACTS) do self._facts[name] = {} end
  local stat, problem = fs.stat(path)
  if not stat then return nil, problem end
  local files, none = source.files(path)
  if not files and not (none.code == "notfound" and stat.type == "dir") then return nil, none end
  return self
end

local function keep(self, one)
  local n = self.n + 1
  for _, name in ipairs(FACTS) do self._facts[name][n] = one[name] == nil and false or one[name] end
  self._file[n], self._offset[n] = self._paths[one.place.path], one.place.offset or -1
  one.slot, one.place = nil, nil
  table.insert(self._open, one)
  self.n = n
  if #self._open == PART then
    self._parts[#self._parts + 1] = row.columns(self._open)
    self._open = {}
  end
end

--- Reads what is new.
---@async
---@param tell fun()        # called now and then while there is much
---@return boolean? ok
---@return agentbox.Err? err
function Feed:read(tell)
  local files, problem = source.files(self._path)
  if not files then return nil, problem end
  local since = 0
  local function take(one)
    keep(self, one)
    since = since + 1
    if since % TURN == 0 then async.yield() end
    if since % PART == 0 then tell() end
  end
  for _, file in ipairs(files) do
    if not self._paths[file.path] then
      self._files[#self._files + 1] = file
      self._paths[file.path] = #self._files
    end
    local from, lost = self._reached[file.path] or 0, 0
    if file.lines then
      local reached, damaged = source.scan(file, from, take)
      if not reached then return nil, damaged end
      self._reached[file.path], lost = reached, damaged
    elseif from == 0 then
      lost = source.document(file, take) or 1
      self._reached[file.path] = 1
    end
    self.damaged = self.damaged + lost
  end
  return true
end

--- The rows from number `from` (from 0) on, some parts of them at most, as JSON: `n` in all, `from` of the first one
--- given, and `parts`, columns each.
---@param from integer
---@return string
function Feed:since(from)
  local first = math.min(from // PART, #self._parts)
  local list = table.move(self._parts, first + 1, math.min(#self._parts, first + PARTS), 1, {})
  if first + #list == #self._parts and #self._open > 0 then list[#list + 1] = row.columns(self._open) end
  return ('{"n":%d,"from":%d,"parts":[%s]}'):format(self.n, first * PART, table.concat(list, ","))
end

--- Where a row's trajectory is.
---@param index integer?   # from 0
---@return { path: string, offset?: integer }?
function Feed:place(index)
  local file = index and self._files[self._file[index + 1]]
  if not file then return nil end
  local offset = self._offset[index + 1]
  return { path = file.path, offset = offset >= 0 and offset or nil }
end

--- What figures are made of, a row for each trajectory.
---@return table[]
function Feed:facts()
  local out = {}
  for i = 1, self.n do
    local one = {}
    for _, name in ipairs(FACTS) do one[name] = self._facts[name][i] or nil end
    out[i] = one
  end
  return out
end

return M
