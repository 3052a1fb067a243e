-- Fails on writable globals in our objects: two engines must be able to live in one process. (agentbox-init and
-- agentbox-guest are programs of their own, one per sandbox, and may have some.)
-- Usage: lua5.4 tools/globals.lua BUILD/src
local allowed = {
  -- symbol → why it may be there
  logger = "base/log.c: where log lines go",
  armed = "base/fault.c: the failure points, in test builds only",
  target = "rt/watchdog.c: what the signal handler interrupts",
  fault_exit = "lua/slice.c: the way out of a signal handler that reads a stack being moved",
  zygote = "sandbox/zygote.c: the process has one zygote, started before threads and engines",
  ab_la = "rt/archive_lib.c: the library loaded by the program that unpacks, which is no engine",
  crypto = "rt/digest.c: the library loaded at first use, written once and never unloaded",
  lib = "rt/sqlite.c: the library loaded at first use under a once, and never unloaded",
  counting = "lua/count.c: whether instructions are counted, in test builds only",
  instructions = "lua/count.c: how many there were, in test builds only",
  ab_cgroup_self = "sandbox/cgroup.c: the cgroup that this process was started in, and what it made below",
  sandboxes_made = "sandbox/sandbox.c: numbers names that must differ in the whole process",
  stop_flag = "cli/main.c: set by the first Ctrl-C",
}

local dir = assert(arg[1], "usage: globals.lua BUILD/src")
local pipe = assert(io.popen(("find '%s' -name '*.o' | sort | xargs objdump -t"):format(dir)))
local object, bad, seen = "?", 0, 0
for line in pipe:lines() do
  object = line:match "^(.-):%s+file format" or object
  seen = seen + 1
  local section, symbol = line:match "%sO%s+(%S+)%s+%x+%s+([%w_.$]+)$"
  local writable = section and (section:find "^%.data$" or section:find "^%.data%.[^r]" or section:find "^%.t?bss" or section:find "^%.tdata"
    or section == "*COM*")
  if writable and not allowed[symbol:gsub("%.%d+$", "")] and not object:find "/agentbox%-init" and not object:find "/agentbox%-guest"
    and not symbol:find "simdjson" then
    bad = bad + 1
    print(("%s: writable global %s in %s"):format(object:gsub("^.*/src/", "src/"), symbol, section))
  end
end
pipe:close()
if seen == 0 then
  print("no objects under " .. dir)
  os.exit(1)
end
print(("globals: %d writable"):format(bad))
os.exit(bad == 0 and 0 or 1)
