--- Turns per second of the engine alone: a scripted model, a sandbox that costs nothing.
---
---     agentbox script bench/turns.lua TOOL CONCURRENCY ROLLOUTS TURNS [record|none] [URL]
---
--- With the URL of a model server it asks that, and prints CPU microseconds a turn instead.
---
--- TOOL is `noop` (a tool of the script's that returns "ok") or `run_command` (the built-in one). With `record` each
--- trajectory goes into a run folder, synced before the next rollout of its fiber starts.
local ab = require "agentbox"

local tool_name, concurrency, count, turns = arg[1], tonumber(arg[2]), tonumber(arg[3]), tonumber(arg[4])
local url = arg[6]
local dir = arg[5] == "record" and assert(ab.fs.tmpdir "agentbox-turns-")

local noop = ab.tool.define {
  api = 1, name = "noop", description = "Does nothing.", parameters = { { "n", "integer" } },
  run = function() return "ok" end,
}

local script = { last = "done" }
for i = 1, turns do
  local arguments = tool_name == "noop" and { n = i } or { command = "step " .. i }
  script[i] = { tool_calls = { { name = tool_name, arguments = arguments } } }
end

local task = ab.task.new { task_id = "noop", description = "Do nothing.", verifier = { type = "command", command = "true" } }
local model = url and ab.model.open { model = "m", base_url = url } or ab.model.scripted(script)
local store = dir and assert(ab.store.open(dir, { run_id = "turns", agentbox_json = false }))

local function rollout(i)
  local traj = assert(ab.rollout.run {
    task = task, model = model, sandbox = { backend = "free" }, max_steps = turns + 1, run_id = "turns", id = "r" .. i,
    tools = tool_name == "noop" and "custom" or "shell", custom_tools = tool_name == "noop" and { noop } or nil,
    verifier = function(ev)
      local out = assert(ev.after:exec "true")
      return out.exit_code == 0 and 1 or 0
    end,
  })
  assert(traj.metrics.steps == turns and traj.reward == 1, traj.stop_reason)
  if store then assert(store:append(traj)) end
end

local jobs = {}
for i = 1, count do jobs[i] = i end
local began, cpu = ab.time.monotonic(), os.clock()
ab.async.each(jobs, rollout, { limit = concurrency })
local took = ab.time.monotonic() - began
print(("%.0f"):format(url and (os.clock() - cpu) / (count * turns) * 1e6 or count * turns / took))
if store then
  store:close()
  ab.fs.remove(dir, { recursive = true })
end
