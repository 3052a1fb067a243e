--- `make bench`: measures this machine and prints a table with the targets beside the results.
---
---     agentbox script bench/run.lua [WHAT] [--rounds N]
---
--- WHAT is engine, json, sandbox, network, docker, image, store, export, render, runner, generate, gates, door or http_server.
---
--- Ours and the peers' runs alternate in small blocks, so that a slow minute of the machine slows all of them. Medians.
--- Docker is measured if its server runs, bwrap if it is installed; what is missing has no row.
local ab = require "agentbox"
local report = require "report"

ab.log.set_level "error" -- backend none says at each use what it is
local which, rounds = nil, 5
local at = 1
while arg[at] do
  if arg[at] == "--rounds" then
    rounds, at = tonumber(arg[at + 1]), at + 1
  else
    which = arg[at]
  end
  at = at + 1
end

local function machine()
  local pipe = assert(io.popen "nproc; uname -r; . /etc/os-release; echo \"$PRETTY_NAME\"")
  local cores, kernel, system = pipe:read("l", "l", "l")
  pipe:close()
  return ("%s cores, Linux %s, %s"):format(cores, kernel, system)
end

local ALL = {
  "engine", "json", "sandbox", "network", "docker", "image", "store", "export", "render", "runner", "generate", "gates", "door",
  "http_server",
}
for _, name in ipairs(ALL) do
  if not which or which == name then
    io.stderr:write(name, "\n")
    require("measure_" .. name)(rounds)
  end
end
require "peer".close()
print(("%s; medians of %d interleaved rounds.\n"):format(machine(), rounds))
print(report.table())
