--- N rollouts wait for a model server that never answers; prints what the engine uses. `agentbox script waiting.lua N`
local ab = require "agentbox"
local os_ = require "agentbox.sys.os"

local count = tonumber(arg[1])
local here = arg[0]:match "^(.*)/[^/]*$" or "."

-- The server tells its port first and then, once it has them all, the number of requests it holds.
local pipe = assert(io.popen(("exec python3 %s/silent_server.py %d"):format(here, count)))
local port = assert(pipe:read "n", "the server did not start")

local model = ab.model.open { model = "m", base_url = ("http://127.0.0.1:%d/v1"):format(port), timeout_s = 600,
  idle_timeout_s = 600 }
local boots = ab.async.semaphore(16) -- as a runner does: not all at once
local GROUP = 8 -- rollouts of a task

local task
local function rollout(i)
  local permit = boots:acquire()
  if i % GROUP == 1 then
    task = ab.task.new { task_id = "wait-" .. i, description = ("Wait %d."):format(i), verifier = { type = "command", command = "true" } }
  end
  local traj = ab.rollout.run { task = task, model = model, sandbox = { backend = "none" },
    agent = { before_turn = function() permit:release() end } }
  error("ended: " .. traj.stop_reason)
end

ab.async.scope(function(scope)
  for i = 1, count do scope:spawn(rollout, i) end
  -- Reading would block the loop, so the server's report is a file.
  local path = ("/tmp/agentbox-silent-%d"):format(port)
  local deadline = ab.time.monotonic() + 120
  while not ab.fs.exists(path) do
    assert(ab.time.monotonic() < deadline, "the requests did not arrive")
    ab.async.sleep(0.05)
  end
  collectgarbage()
  print(("%.1f MB"):format(os_.memory_rss() / 1e6))
  io.stdout:flush()
  ab.fs.remove(path)
  os.exit(0)
end)
