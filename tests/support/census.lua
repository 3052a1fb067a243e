--- What is alive of an engine's: sandboxes, processes, control groups, mounts, descriptors.
local fs = require "agentbox.fs"
local os_ = require "agentbox.sys.os"

local M = {}

local function status_of(pid) return fs.read(("/proc/%s/status"):format(pid), 1 << 16) end

--- Processes below one, and how many of them are the first of a process namespace: its sandboxes.
---@param pid integer
---@return integer sandboxes
---@return integer processes
function M.below(pid)
  local parents, first = {}, {}
  for _, entry in ipairs(assert(fs.list "/proc")) do
    local status = entry.name:find "^%d+$" and status_of(entry.name)
    if status and not status:find "State:%s+[ZX]" then
      local id = tonumber(entry.name)
      parents[id] = tonumber(status:match "PPid:%s+(%d+)")
      first[id] = status:match "NSpid:%s+[%d\t ]-\t1\n" ~= nil
    end
  end
  local function descends(id)
    for _ = 1, 20 do
      if not id or id == 0 then return false end
      if id == pid then return true end
      id = parents[id]
    end
  end
  local sandboxes, processes = 0, 0
  for id in pairs(parents) do
    if id ~= pid and descends(id) then
      processes = processes + 1
      if first[id] then sandboxes = sandboxes + 1 end
    end
  end
  return sandboxes, processes
end

--- An engine's control groups, those of single sandboxes and of commands.
---@param pid integer
---@return integer
function M.cgroups(pid)
  local count = 0
  local function below(dir)
    for _, entry in ipairs(fs.list(dir) or {}) do
      if entry.type == "dir" then
        count = count + 1
        below(dir .. "/" .. entry.name)
      end
    end
  end
  local pipe = assert(io.popen(("find /sys/fs/cgroup -maxdepth 3 -type d -name 'agentbox-*-%d-*' 2>/dev/null"):format(pid)))
  for dir in pipe:lines() do below(dir) end
  pipe:close()
  return count
end

--- Whose parent a process is.
---@param pid integer
---@return integer[]
function M.children(pid)
  local list = {}
  for _, entry in ipairs(assert(fs.list "/proc")) do
    local status = entry.name:find "^%d+$" and status_of(entry.name)
    if status and tonumber(status:match "PPid:%s+(%d+)") == pid then list[#list + 1] = tonumber(entry.name) end
  end
  return list
end

--- Whether an engine has ended, and its children, and its control groups are removed.
---@param pid integer
---@param children integer[]
---@return boolean
function M.gone(pid, children)
  local status = status_of(pid)
  if status and not status:find "State:%s+Z" then return false end
  for _, one in ipairs(children) do
    if fs.exists(("/proc/%d"):format(one)) then return false end
  end
  return M.cgroups(pid) == 0
end

--- What could pile up in this engine, as counts. Ours only: other engines may be at work.
---@return { sandboxes: integer, processes: integer, descriptors: integer, mounts: integer, cgroups: integer }
function M.own()
  local pid, mounts = os_.pid(), 0
  local fds = #assert(fs.list "/proc/self/fd")
  for line in assert(fs.read "/proc/self/mountinfo"):gmatch "[^\n]+" do
    if line:find("agentbox", 1, true) then mounts = mounts + 1 end
  end
  local sandboxes, processes = M.below(pid)
  return { sandboxes = sandboxes, processes = processes, descriptors = fds, mounts = mounts, cgroups = M.cgroups(pid) }
end

return M
