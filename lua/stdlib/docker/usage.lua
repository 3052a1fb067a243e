--- docker/usage.lua: what a container uses, from what its engine mounts of its control group. What is not there is absent.
local M = {}

local SOURCES = {
  memory_bytes = { "memory.current", "memory/memory.usage_in_bytes" },
  memory_peak_bytes = { "memory.peak", "memory/memory.max_usage_in_bytes" },
  pids = { "pids.current", "pids/pids.current" },
  oom_kills = { "memory.events", "memory/memory.oom_control", pattern = "oom_kill (%d+)" },
}

local function first_number(container, source)
  for _, name in ipairs(source) do
    local text = container:read("/sys/fs/cgroup/" .. name, 4096)
    local number = text and tonumber(text:match(source.pattern or "^%d+"))
    if number then return number end
  end
end

---@async
---@param container agentbox.docker.Container
---@return table? usage
---@return agentbox.Err? err
function M.read(container)
  local usage = {}
  for key, source in pairs(SOURCES) do usage[key] = first_number(container, source) end
  local modern = container:read("/sys/fs/cgroup/cpu.stat", 4096)
  local microseconds = modern and modern:match "usage_usec (%d+)"
  local nanoseconds = not modern and first_number(container, { "cpuacct/cpuacct.usage" })
  usage.cpu_s = microseconds and tonumber(microseconds) / 1e6 or nanoseconds and nanoseconds / 1e9 or nil
  if container.link.dead then return nil, container.link.dead end
  return usage
end

return M
