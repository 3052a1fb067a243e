--- docker/changes.lua: what differs in a container from the image that it was made of, as the engine tells it.
local err = require "agentbox.err"
local guest = require "agentbox.docker.guest"

local M = {}

local CHANGED, ADDED, REMOVED = 0, 1, 2

local function is_ours(path) return path == guest.DIR or path:sub(1, #guest.DIR + 1) == guest.DIR .. "/" end

-- The engine names a folder as changed when something in it is; and of what is gone, what it was is not known.
local function entry(raw, change, in_removed)
  local path, kind = change.Path, change.Kind
  if is_ours(path) then return nil end
  if kind == REMOVED then
    in_removed[path] = true
    if in_removed[path:match "^(.*)/[^/]*$"] then return nil end
    return { path = path, kind = "removed", type = "unknown", size = 0, mode = 0, uid = 0, gid = 0 }
  end
  local stat = raw:lstat(path)
  if not stat or kind == CHANGED and stat.type == "dir" then return nil end
  return { path = path, kind = kind == ADDED and "added" or "changed", type = stat.type, size = stat.size, mode = stat.mode,
    uid = stat.uid, gid = stat.gid }
end

---@async
---@param raw agentbox.docker.Container
---@param base any          # only what it started from is known
---@param max integer
---@return agentbox.Difference[]? differences
---@return agentbox.Err? err
function M.of(raw, base, max)
  if base ~= nil then
    return nil, err.new("unsupported", "an engine tells what differs from what a container started from, and from nothing else")
  end
  local changes, problem = raw.api:call("GET", "/containers/" .. raw.cid .. "/changes", { timeout_s = 300 })
  if not changes then return nil, problem end
  if type(changes) ~= "table" then return {} end -- null: nothing
  if #changes > max then return nil, err.new("toobig", ("more than %d differences"):format(max)) end
  table.sort(changes, function(a, b) return a.Path < b.Path end)
  local list, in_removed = {}, {}
  for _, change in ipairs(changes) do list[#list + 1] = entry(raw, change, in_removed) end
  return list
end

return M
