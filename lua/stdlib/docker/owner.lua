--- docker/owner.lua: whose container it is, as labels, and whether that engine is still alive.
---
--- A process is its number, when it began, the boot and the pid namespace. From another machine or another namespace
--- nothing can be said about it.
local fs = require "agentbox.sys.fs"
local os_ = require "agentbox.sys.os"

local M = {}

M.LABEL = "agentbox"

local function start_of(pid)
  local stat = fs.read("/proc/" .. pid .. "/stat", 4096)
  -- After the name, which may hold anything, the start is the twentieth field.
  local rest = stat and stat:match "^.*%) (.*)$"
  if not rest then return nil end
  local n = 0
  for field in rest:gmatch "%S+" do
    n = n + 1
    if n == 20 then return field end
  end
end

local place
local function here()
  if not place then
    local boot = (fs.read("/proc/sys/kernel/random/boot_id", 64) or ""):match "^%S*"
    place = boot .. "/" .. (fs.readlink "/proc/self/ns/pid" or "")
  end
  return place
end

---@param extra? table<string, string>   # "agentbox.KEY"
---@return table<string, string>
function M.labels(extra)
  local pid = os_.pid()
  local labels = {
    [M.LABEL] = "1", ["agentbox.pid"] = tostring(pid), ["agentbox.start"] = start_of(pid) or "", ["agentbox.place"] = here(),
  }
  for key, value in pairs(extra or {}) do labels["agentbox." .. key] = value end
  return labels
end

---Whether the engine that these labels name is surely dead.
---@param labels? table<string, string>
---@return boolean
function M.is_dead(labels)
  if type(labels) ~= "table" or labels["agentbox.place"] ~= here() then return false end
  return start_of(labels["agentbox.pid"] or "0") ~= labels["agentbox.start"]
end

---Whether that can be said at all from here.
---@param labels? table<string, string>
---@return boolean
function M.is_near(labels)
  return type(labels) == "table" and labels["agentbox.place"] == here()
end

return M
