--- One run of the sandbox gates over tasks of tasks/factory, for measure_gates.lua: prints the CPU seconds of the tests' own
--- commands, the commands' number and the wall time.
---
---     agentbox script bench/gates_once.lua TASK...
local ab = require "agentbox"
local sandbox = require "agentbox.sandbox"

local cpu, commands = 0, 0

-- Every command in a sandbox is one of the tests' here: the gates' own look-ups take no time that could be seen.
local plain = sandbox.create
function sandbox.create(spec)
  local sb, problem = plain(spec)
  if not sb then return nil, problem end
  local exec = sb.exec
  function sb:exec(...)
    local out, why = exec(self, ...)
    if out then cpu, commands = cpu + out.usage.cpu_s, commands + 1 end
    return out, why
  end
  return sb
end

local began = ab.time.monotonic()
ab.async.each(arg, function(dir)
  local ok, reason = ab.generate.validate(dir, { repeats = 3, mutants = 8 })
  if not ok then error(("%s: %s"):format(dir, tostring(reason)), 0) end
end, { limit = 2 })
print(("%.3f %d %.3f"):format(cpu, commands, ab.time.monotonic() - began))
