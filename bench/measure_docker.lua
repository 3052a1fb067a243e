--- Backend docker beside Docker's own commands, on the same daemon and image.
local ab = require "agentbox"
local peer = require "peer"
local report = require "report"

local LIMITS = { memory_mb = false, pids_limit = false, cpu_count = false, disk_mb = false } -- as `docker run` has none
local clock = ab.time.monotonic

local function create()
  return assert(ab.sandbox.create { backend = "docker", image = peer.IMAGE, network = "none", limits = LIMITS })
end

local function time_us(count, fn)
  local samples = {}
  for i = 1, count do
    local began = clock()
    fn(i)
    samples[i] = (clock() - began) * 1e6
  end
  return samples
end

local function add(into, samples) table.move(samples, 1, #samples, #into + 1, into) end

-- Until the first result is there; what follows is not in it on either side.
local function first_result(rounds)
  local ours, theirs = {}, {}
  create():close() -- the volume with the guest is filled once for a daemon
  for _ = 1, rounds do
    for _ = 1, 3 do
      local began = clock()
      local sb = create()
      assert(sb:exec({ "/bin/echo", "hi" }).stdout == "hi\n")
      ours[#ours + 1] = (clock() - began) * 1e6
      sb:close()
    end
    add(theirs, peer.time("first", 3, peer.docker_run("/bin/echo", "hi")))
  end
  report.at_most("Docker: create to first result", report.quantile(ours, 0.5), "docker run", report.quantile(theirs, 0.5), 1.1)
end

local function commands(rounds)
  local sb <close> = create()
  local ours, theirs = {}, {}
  for _ = 1, rounds do
    add(ours, time_us(100, function() assert(sb:exec { "/bin/true" }) end))
    add(theirs, peer.time("wait", 5, peer.docker_exec "/bin/true"))
  end
  report.faster("Docker: exec true", report.quantile(ours, 0.5), "docker exec", report.quantile(theirs, 0.5), 20)
end

local function files(rounds)
  local sb <close> = create()
  local bytes, path = ("x"):rep(10240), os.tmpname()
  assert(ab.fs.write(path, bytes))
  local into, out_of = peer.docker_cp(path)
  local write, read, cp_in, cp_out = {}, {}, {}, {}
  for _ = 1, rounds do
    add(write, time_us(50, function() assert(sb:write("file", bytes)) end))
    add(read, time_us(50, function() assert(#sb:read "file" == #bytes) end))
    add(cp_in, peer.time("wait", 5, into))
    add(cp_out, peer.time("wait", 5, out_of))
  end
  os.remove(path)
  os.remove(path .. ".back")
  report.faster("Docker: write 10 KB", report.quantile(write, 0.5), "docker cp", report.quantile(cp_in, 0.5))
  report.faster("Docker: read 10 KB", report.quantile(read, 0.5), "docker cp", report.quantile(cp_out, 0.5))
end

return function(rounds)
  if not peer.start_docker() then return end
  local ok, problem = xpcall(function()
    first_result(rounds)
    commands(rounds)
    files(rounds)
  end, debug.traceback)
  peer.stop_docker()
  assert(ok, problem)
end
