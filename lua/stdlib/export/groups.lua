--- Groups while they are put together: what of each is there, and which are whole.
---
--- A planned group is handed on as soon as all its members gave a document, so that an export of a run holds those that
--- are not whole yet and no others. What never becomes whole, and groups that nobody planned, come at the end.
local json = require "agentbox.json"
local membership = require "agentbox.record.membership"
local sys = require "agentbox.sys.json"

local M = {}

---@class agentbox.ExportGroups
local Groups = {}
Groups.__index = Groups

---@param format agentbox.Format
---@param options table
---@return agentbox.ExportGroups
function M.new(format, options)
  return setmetatable({ _format = format, _options = options, _open = {}, _order = {}, _done = {}, _whole = {} }, Groups)
end

-- The group that takes the trajectory; nil when it was whole without it.
local function group_of(self, t)
  local id, _, size, key = membership(t)
  if self._done[key] then return nil end
  local group = self._open[key]
  if not group then
    group = { key = key, id = id, task_id = t.task_id, docs = {}, exceptions = {}, size = size, left = 0 }
    self._open[key], self._order[#self._order + 1] = group, group
  end
  return group
end

-- An attempt that was made again leaves nothing: the later one counts.
local function forget(group, id)
  for i, entry in ipairs(group.exceptions) do
    if entry.id == id then
      table.remove(group.exceptions, i)
      return
    end
  end
end

local function note(self, group)
  if group.size and #group.docs + group.left == group.size then table.insert(self._whole, group) end
end

--- Adds a trajectory's document, or what its format makes of one that gave none. Returns why it is left out, when its
--- group was whole without it.
---@param t agentbox.Traj
---@param doc table?
---@param reason string?
---@return string? surplus
function Groups:add(t, doc, reason)
  local group = group_of(self, t)
  if not group then return "surplus: its group was whole without it" end
  forget(group, t.id)
  if doc then
    table.insert(group.docs, self._format.keep_docs and doc or sys.trusted(json.encode(doc)))
    note(self, group)
  elseif self._format.exception then
    table.insert(group.exceptions, { id = t.id, value = self._format.exception(t, reason) })
  end
end

--- Notes that a member was filtered out.
---@param t agentbox.Traj
function Groups:leave(t)
  local group = group_of(self, t)
  if not group then return end
  group.left = group.left + 1
  note(self, group)
end

local function close(self, group, put)
  local exceptions, size = {}, group.size and group.size - group.left
  for i, entry in ipairs(group.exceptions) do exceptions[i] = entry.value end
  local doc, why, skipped = self._format.join(group.id, group.docs, exceptions, self._options, size)
  put(doc, why, skipped, group)
  self._done[group.key], self._open[group.key] = true, nil
  group.docs, group.exceptions = nil, nil -- its place in the order stays
end

--- Hands on the groups that are whole; with `all`, the others too.
---@param put fun(doc?: table, why?: string, skipped?: string, group: table)
---@param all? boolean
function Groups:flush(put, all)
  for _, group in ipairs(self._whole) do close(self, group, put) end
  if #self._whole > 0 then self._whole = {} end
  if not all then return end
  for _, group in ipairs(self._order) do
    if self._open[group.key] == group then close(self, group, put) end
  end
end

return M
