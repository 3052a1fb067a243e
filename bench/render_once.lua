--- Makes one page and prints what it took: seconds of CPU, the most resident memory in MB, trajectories, bytes.
---
---     agentbox script bench/render_once.lua RUN PAGE
local render = require "agentbox.render"

local began = os.clock()
local made = assert(render.file(arg[1], arg[2]))
local cpu = os.clock() - began
local status <close> = assert(io.open "/proc/self/status")
print(cpu, tonumber(status:read("a"):match "VmHWM:%s*(%d+)") / 1024, made.trajectories, made.bytes)
