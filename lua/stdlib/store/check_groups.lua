--- Checks the groups of a run: numbered in order, each closed once, its members stored and in no other group; and that
--- the cursor is not beyond them.
local frame = require "agentbox.store.frame"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local lines = require "agentbox.store.lines"

local M = {}

local function line_key(run, id)
  return ("i%s\0%s"):format(run, id)
end

--- Notes that a rollout has a line.
---@param sieve agentbox.Sieve
---@param run string
---@param id string
function M.note_line(sieve, run, id)
  sieve:add(line_key(run, id))
end

--- Whether a rollout has a line.
---@param sieve agentbox.Sieve
---@param run string
---@param id string
---@return boolean
function M.has_line(sieve, run, id)
  return sieve:has(line_key(run, id))
end

local function members_of(group)
  return json.is_object(group) and json.is_array(group.members) and group.members or {}
end

-- Which of the first groups of a file holds a member (nil: has this id); the file is read again for what was suspected.
local function group_with(path, before, id, member)
  local file <close> = assert(lines.open(path))
  for _ = 1, before - 1 do
    local group = json.decode((frame.read(file:next() or "")) or "")
    for _, one in ipairs(members_of(group)) do
      if one == member then return tostring(group.id) end
    end
    if not member and json.is_object(group) and tostring(group.id) == id then return id end
  end
end

local function check_members(self, run, group, n, path)
  local where, id = ("%s:%d"):format(path, n), tostring(group.id)
  for _, member in ipairs(members_of(group)) do
    member = tostring(member)
    if not M.has_line(self.sieve, run, member) then
      self.add(id, 13, where, ("its member %s has no line"):format(member))
    end
    local other = self.sieve:add(("g%s\0%s"):format(run, member)) and group_with(path, n, id, member)
    if other then self.add(id, 13, where, ("its member %s was delivered in group %s"):format(member, other)) end
  end
end

local function check_group(self, run, group, n, path)
  local where, id = ("%s:%d"):format(path, n), tostring(group.id)
  if group.seq ~= n then self.add(id, 13, where, ("it is number %d and says %s"):format(n, tostring(group.seq))) end
  if self.sieve:add(("c%s\0%s"):format(run, id)) and group_with(path, n, id) then
    self.add(id, 13, where, "a group with this id was closed before")
  end
  check_members(self, run, group, n, path)
end

local function check_cursor(self, run_dir, n, bytes)
  local stat = fs.stat(run_dir .. "/groups.jsonl")
  if (stat and stat.size or 0) > bytes then return end -- it went on meanwhile
  local path = run_dir .. "/cursor.json"
  local text = fs.stat(path) and fs.read(path)
  if not text then return end
  local doc = json.decode(text)
  local at = json.is_object(doc) and doc.acknowledged
  if math.type(at) ~= "integer" or at < 0 or at > n then
    self.add("-", 13, path, ("it acknowledges %s of %d groups"):format(tostring(at), n))
  end
end

--- Checks the groups of a run and its cursor, after its lines. Of a run that goes on, only the groups that were there
--- before its lines were read: their members must be among them.
---@async
---@nodiscard
---@param run_dir string
---@param bytes integer                  # of groups.jsonl before the lines were read
---@param sieve agentbox.Sieve           # has the lines (note_line)
---@param add fun(id: string, rule: integer, where: string, msg: string)
---@return integer? count
---@return agentbox.Err? err
function M.check(run_dir, bytes, sieve, add)
  local self = { sieve = sieve, add = add }
  local path = run_dir .. "/groups.jsonl"
  local n = 0
  if bytes > 0 then
    local file <close>, problem = lines.open(path)
    if not file then return nil, problem end
    local run = json.decode(fs.read(run_dir .. "/run.json") or "")
    for text, offset in file.next, file do
      if offset >= bytes then break end
      n = n + 1
      local object, whole = frame.read(text)
      local group = whole and json.decode(object)
      if json.is_object(group) then
        check_group(self, run and run.run or "", group, n, path)
      else
        self.add("-", 12, ("%s:%d"):format(path, n), "the line does not have its recorded sum")
      end
    end
  end
  check_cursor(self, run_dir, n, bytes)
  return n
end

return M
