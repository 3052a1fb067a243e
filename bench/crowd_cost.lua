-- crowd_cost.lua [ALIVE] [COUNT]: microseconds of CPU that a sandbox takes to be made and ended: alone, as one of a growing
-- crowd that ends as a whole, and among ALIVE of them. Counted are the engine, its zygote and each pid 1, not the kernel's own threads.
local ab = require "agentbox"
local fs = require "agentbox.sys.fs"
local os_sys = require "agentbox.sys.os"

local AT_ONCE, TICK_US = 16, 10000
local alive, count = tonumber(arg[1]) or 1900, tonumber(arg[2]) or 1000

---@param children boolean  # with those that it has waited for
---@return string? parent, string? name, integer ticks
local function look(pid, children)
  local name, rest = (fs.read("/proc/" .. pid .. "/stat", 4096) or ""):match "%((.*)%) (.*)$"
  if not name then return nil, nil, 0 end
  local fields = {}
  for field in rest:gmatch "%S+" do fields[#fields + 1] = field end
  local ticks = fields[12] + fields[13] + (children and fields[14] + fields[15] or 0)
  return fields[2], name, ticks
end

local zygote
local function find_zygote()
  for _, entry in ipairs(assert(fs.list "/proc")) do
    local parent, name = look(entry.name, false)
    if name == "agentbox-zygote" and parent == tostring(os_sys.pid()) then return entry.name end
  end
end

local function cpu_us()
  return (select(3, look(os_sys.pid(), true)) + select(3, look(zygote, false))) * TICK_US
end

local function create()
  return assert(ab.sandbox.create { limits = { memory_mb = 512 } })
end

local function each(n, fn)
  local jobs = {}
  for i = 1, n do jobs[i] = i end
  local began = cpu_us()
  ab.async.each(jobs, fn, { limit = AT_ONCE })
  return (cpu_us() - began) / n
end

local function create_and_close()
  create():close()
end

create_and_close()
zygote = assert(find_zygote(), "there is no zygote")
for _ = 1, 64 do create_and_close() end
print(("alone                   %5.0f us"):format(each(count, create_and_close)))
local boxes = {}
local growing = each(alive, function(i) boxes[i] = create() end)
local among = each(count, create_and_close)
local ending = each(alive, function(i) boxes[i]:close() end)
print(("one of a growing crowd  %5.0f us"):format(growing + ending))
print(("among %-5d             %5.0f us"):format(alive, among))
