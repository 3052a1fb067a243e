--- Gives out the groups of a run that is over: DIR RUN. Prints its address, ends when all are acknowledged.
local ab = require "agentbox"

local run <close> = assert(ab.runner.start {
  tasks = {}, n = 16, out = arg[1], run_id = arg[2], resume = true, model = ab.model.scripted { "done" },
})
local door <close> = assert(run:serve { listen = "127.0.0.1:0" })
print(door.url, require "agentbox.sys.os".pid())
io.stdout:flush()
door:wait()
