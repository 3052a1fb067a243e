--- What is known of a rollout without its messages: one flat row, made of its line.
local json = require "agentbox.json"

local M = {}

-- Members that stay text; nearly all bytes of a line are theirs.
local UNREAD = {
  raw = {
    "nodes", "calls", "tool_runs", "tools", "verify", "tamper", "components", "scorer", "describe", "notes", "logs",
    "metadata", "modules", "artifacts", "errors", "agents",
  },
}

local value_of = json.plain

local function integer_of(field)
  field = value_of(field)
  return math.type(field) == "integer" and field or nil
end

--- The place of a rollout in its run: `GROUP/MEMBER` for a member of a group, else its id. Several attempts share one.
---@param group { id: string, member?: integer, index?: integer }?
---@param id string
---@return string slot
function M.slot(group, id)
  if not group then return id end
  local member = value_of(group.member)
  if member == nil then member = value_of(group.index) end
  return ("%s/%s"):format(tostring(group.id), tostring(member))
end

---@class agentbox.Summary
---@field slot string
---@field id string
---@field attempt integer
---@field grp string?            # group id
---@field group_size integer?    # members that it was begun for
---@field task string?
---@field status string          # completed, truncated, failed, cancelled
---@field final_status string?
---@field stop string
---@field class string?
---@field scored boolean
---@field reward number?
---@field version_min integer?
---@field version_max integer?
---@field started number?
---@field finished number?
---@field segment integer?       # where the line is
---@field offset integer?
---@field bytes integer?

--- The row of a record.
---@param line table
---@return agentbox.Summary
function M.of(line)
  local group, task = value_of(line.group), value_of(line.task) or {}
  return {
    slot = M.slot(group, line.id), id = line.id, attempt = integer_of(line.attempt) or 0,
    grp = group and tostring(group.id), group_size = group and integer_of(group.size), task = value_of(task.id), status = line.status,
    final_status = value_of(line.final_status), stop = line.stop.reason, class = value_of(line.stop.class),
    scored = line.reward.scored == true, reward = value_of(line.reward.value),
    version_min = integer_of(line.policy.version_min), version_max = integer_of(line.policy.version_max),
    started = value_of(line.started), finished = value_of(line.finished),
  }
end

--- The row of a line's JSON text, without reading its messages; nil if it is no record.
---@param text string
---@return agentbox.Summary?
function M.read(text)
  local line = json.decode(text, UNREAD)
  if type(line) ~= "table" or type(line.id) ~= "string" or type(line.stop) ~= "table"
      or type(line.reward) ~= "table" or type(line.policy) ~= "table" then
    return nil
  end
  return M.of(line)
end

return M
