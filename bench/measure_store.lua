--- The record: what keeping a rollout costs, how fast a run is checked, summed up and taken up again.
local ab = require "agentbox"
local fs = require "agentbox.sys.fs"
local report = require "report"

local binary = assert(fs.realpath "/proc/self/exe")
local MEGABYTES = 200

--- User and system seconds of a command.
local function cost_of(command)
  local pipe = assert(io.popen(("%s >/dev/null && times"):format(command)))
  local seconds = 0
  local _, children = pipe:read("l", "l")
  pipe:close()
  for minutes, rest in assert(children, command .. " failed"):gmatch "(%d+)m([%d.]+)s" do
    seconds = seconds + 60 * tonumber(minutes) + tonumber(rest)
  end
  return seconds
end

local function here()
  return debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "bench"
end

local function size_of(dir)
  local bytes = 0
  for _, entry in ipairs(assert(fs.list(dir .. "/r"))) do
    if entry.name:find "^trajectories" then bytes = bytes + assert(fs.stat(dir .. "/r/" .. entry.name)).size end
  end
  return bytes
end

local function speed_of(command, dir, rounds)
  local seconds = {}
  for i = 1, rounds do seconds[i] = cost_of(("%s traj %s %s/r"):format(binary, command, dir)) end
  local speed = size_of(dir) / 1e6 / report.quantile(seconds, 0.5)
  report.row { what = ("traj %s of %d MB, for a second of CPU"):format(command, size_of(dir) // 1000000),
    ours = ("%.0f MB"):format(speed), value = speed, unit = "MB/s", must = command == "check" and 100 or nil, better = "more" }
end

--- Pairs of runs, one kept and one let go; the median of what keeping takes of a pair.
local function writing(rounds)
  local program = here() .. "/../build/release/bench/bench-slow-llm"
  if not fs.exists(program) then return end
  local without, with = require "write_cost"(200, rounds, program)
  local shares, us = {}, {}
  for i = 1, rounds do
    shares[i], us[i] = 100 * (with[i] - without[i]) / with[i], (with[i] - without[i]) / 200 * 1e6
  end
  report.row { what = "durable writing, of the engine's CPU (10 turns, 64 at once)",
    ours = ("%s a rollout"):format(report.us(report.quantile(us, 0.5))), value = report.quantile(shares, 0.5), unit = "%",
    must = 5, better = "less" }
end

return function(rounds)
  writing(math.max(rounds, 9))
  local dir = assert(fs.tmpdir "agentbox-bench-store")
  local _ <close> = setmetatable({}, { __close = function() fs.remove(dir, true) end })
  cost_of(("%s script %s/make_run.lua %s r %d"):format(binary, here(), dir, MEGABYTES))
  speed_of("check", dir, rounds)
  speed_of("stats", dir, rounds)
  local resumed = {}
  for i = 1, rounds do
    local began = ab.time.monotonic()
    local s <close> = assert(ab.store.open(dir, { run_id = "r", resume = true }))
    s:finished()
    resumed[i] = (ab.time.monotonic() - began) * 1e6
  end
  report.row { what = "taking up a run of 500 rollouts, every line verified", ours = report.us(report.quantile(resumed, 0.5)), better = "less" }
end
