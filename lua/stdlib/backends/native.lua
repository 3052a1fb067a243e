--- backends/native.lua: sandboxes made by this program from the kernel's namespaces; docs/sandbox.md.
local sys = require "agentbox.sys.sandbox"

local M = { name = "native", can_freeze = true }

---@async
---@param spec agentbox.SandboxSpec
---@return userdata? raw       # agentbox.sys.sandbox
---@return agentbox.Err? err
function M.create(spec)
  local limits = spec.limits
  local raw, problem = sys.create {
    image = spec.image, layers = spec.layers, network = spec.network, hostname = "sandbox", workspace = spec.workspace,
    memory_bytes = limits.memory_mb and math.floor(limits.memory_mb * 1048576) or nil,
    pids = limits.pids_limit or nil, cpus = limits.cpu_count or nil,
    disk_bytes = limits.disk_mb and math.floor(limits.disk_mb * 1048576) or nil, inodes = limits.inodes or nil,
    nofile = limits.nofile or nil, env = spec.env,
  }
  return raw, problem
end

return M
