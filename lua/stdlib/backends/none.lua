--- backends/none.lua: no sandbox. A directory of the host stands for the root, commands are processes of the host. For
--- tests of the library, and for machines without Linux namespaces when nothing hostile runs; it says so, once.
local fs = require "agentbox.sys.fs"
local log = require "agentbox.log"
local os_sys = require "agentbox.sys.os"
local sys = require "agentbox.sys.sandbox"

local M = { name = "none", can_freeze = false }

local PREFIX = "agentbox-none-"

local warned = false

-- The directory goes when the handle does, whichever way it is closed.
local function remove_dir(dir)
  return function() return fs.remove(dir, true) end
end

---@async
---@param spec agentbox.SandboxSpec
---@return userdata? raw
---@return agentbox.Err? err
---@return fun()? after_close
function M.create(spec)
  if not warned then
    warned = true
    log.warn "backend none: commands run on this machine, unconfined"
  end
  local dir, problem = fs.tmpdir(PREFIX .. os_sys.pid() .. "-")
  if not dir then return nil, problem end
  local raw
  local env = {}
  for key, value in pairs(spec.env) do env[key] = value end
  env.HOME, env.TMPDIR = dir .. "/root", dir .. "/tmp"
  raw, problem = sys.plain { root = dir, workspace = spec.workspace, env = env, scratch = true }
  if not raw then
    fs.remove(dir, true)
    return nil, problem
  end
  for _, path in ipairs { "/root", "/tmp", spec.workspace } do
    local ok
    ok, problem = raw:mkdir(path)
    if not ok then
      raw:close()
      fs.remove(dir, true)
      return nil, problem
    end
  end
  return raw, nil, remove_dir(dir)
end

--- Removes the directories of engines that are dead; dry only counts them.
---@async
---@param dry? boolean
---@return integer
function M.sweep(dry)
  local tmp, found = os_sys.env "TMPDIR" or "/tmp", 0
  for _, entry in ipairs(fs.list(tmp) or {}) do
    local pid = entry.type == "dir" and entry.name:match("^" .. PREFIX:gsub("%-", "%%-") .. "(%d+)%-%w+$")
    if pid and not fs.exists("/proc/" .. pid) and (dry or fs.remove(tmp .. "/" .. entry.name, true)) then
      found = found + 1
    end
  end
  return found
end

return M
