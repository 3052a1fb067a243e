--- Sandboxes beside a bare spawn, bwrap and docker.
local ab = require "agentbox"
local peer = require "peer"
local report = require "report"

local LIMITS = { memory_mb = 512, pids_limit = 256, cpu_count = 1 }
local NO_LIMITS = { memory_mb = false, pids_limit = false, cpu_count = false }
local clock = ab.time.monotonic

local function time_us(count, fn)
  local samples = {}
  for i = 1, count do
    local began = clock()
    fn(i)
    samples[i] = (clock() - began) * 1e6
  end
  return samples
end

---@param unlimited? boolean
local function create(unlimited)
  return assert(ab.sandbox.create { image = "host", network = "none", limits = unlimited and NO_LIMITS or LIMITS })
end

local function create_true_destroy(unlimited)
  local sb = create(unlimited)
  assert(sb:exec { "true" }.exit_code == 0)
  sb:close()
end

-- Alternates blocks of samples: contenders is a list of { name, fn → samples }.
local function interleave(rounds, contenders)
  local all = {}
  for _, one in ipairs(contenders) do all[one[1]] = {} end
  for _ = 1, rounds do
    for _, one in ipairs(contenders) do
      for _, us in ipairs(one[2]()) do table.insert(all[one[1]], us) end
    end
  end
  local medians = {}
  for name, samples in pairs(all) do medians[name] = report.quantile(samples, 0.5) end
  return medians
end

local function cold(rounds, has)
  local contenders = {
    { "ours", function() return time_us(40, function() create_true_destroy() end) end },
    { "unlimited", function() return time_us(40, function() create_true_destroy(true) end) end },
  }
  if peer.floor_us(1) then contenders[#contenders + 1] = { "floor", function() return peer.floor_us(40) end } end
  if has.bwrap then contenders[#contenders + 1] = { "bwrap", function() return peer.time("wait", 40, peer.BWRAP) end } end
  if has.docker then contenders[#contenders + 1] = { "docker run", function() return peer.time("wait", 3, peer.DOCKER_RUN) end } end
  local m = interleave(rounds, contenders)
  if m["docker run"] then report.faster("create + true + destroy (T1)", m.ours, "docker run", m["docker run"], 60, 100) end
  if m.bwrap then
    report.faster("create + true + destroy (T2)", m.ours, "bwrap", m.bwrap, 1.4, 2.2)
    report.faster("the same without limits, as bwrap has none", m.unlimited, "bwrap", m.bwrap)
  end
  if m.floor then report.at_most("the same", m.ours, "the kernel's part alone", m.floor) end
end

-- Until it would take a command. Docker's is the engine's own work, asked for over its socket.
local function boot(rounds, has)
  if not has.docker then return end
  local api = assert(require "agentbox.docker.api".new "docker")
  local function container()
    local made = assert(api:call("POST", "/containers/create", { json = {
      Image = peer.IMAGE, Cmd = { "/bin/sleep", "3600" }, HostConfig = { NetworkMode = "none" },
    } }))
    assert(api:call("POST", "/containers/" .. made.Id .. "/start"))
    return made.Id
  end
  local ours, theirs = {}, {}
  for _ = 1, rounds do
    for _ = 1, 20 do
      local began = clock()
      local sb = create()
      ours[#ours + 1] = (clock() - began) * 1e6
      sb:close()
    end
    for _ = 1, 3 do
      local began = clock()
      local id = container()
      theirs[#theirs + 1] = (clock() - began) * 1e6
      assert(api:call("DELETE", "/containers/" .. id, { query = { force = "true" } }))
    end
  end
  report.faster("create to ready (T4)", report.quantile(ours, 0.5), "Docker's API, create + start", report.quantile(theirs, 0.5), 90, 130)
end

local function claims(rounds, has)
  local pool <close> = ab.sandbox.pool { size = 40 }
  local spec = { image = "host", network = "none", limits = LIMITS }
  local contenders = {
    { "ours", function()
      local claimed = {}
      assert(pool:fill(spec))
      local samples = time_us(40, function(i)
        claimed[i] = assert(pool:claim(spec))
        assert(claimed[i]:exec { "true" }.exit_code == 0)
      end)
      for _, sb in ipairs(claimed) do sb:close() end
      return samples
    end },
  }
  if has.bwrap then contenders[#contenders + 1] = { "bwrap", function() return peer.time("wait", 40, peer.BWRAP) end } end
  if has.docker then contenders[#contenders + 1] = { "docker run", function() return peer.time("wait", 3, peer.DOCKER_RUN) end } end
  local m = interleave(rounds, contenders)
  if m["docker run"] then report.faster("claim from a pool + true (T3)", m.ours, "docker run", m["docker run"], 180, 230) end
  if m.bwrap then report.faster("claim from a pool + true (T3)", m.ours, "bwrap", m.bwrap, 4, 5) end
end

local function commands(rounds, has)
  local sb <close> = create()
  local cases = {
    { "exec true (T5)", "wait", { "true" }, { "/bin/true" }, 45, 55 },
    { "exec sh -c 'echo hi', captured (T6)", "read", { "sh", "-c", "echo hi" }, { "/bin/sh", "-c", "echo hi" }, 38, 45 },
  }
  for _, case in ipairs(cases) do
    local what, mode, argv, in_docker, must, stretch = table.unpack(case)
    local contenders = {
      { "ours", function() return time_us(100, function() assert(sb:exec(argv)) end) end },
      { "spawn", function() return peer.time(mode, 100, argv) end },
    }
    if has.docker then
      contenders[#contenders + 1] = { "docker", function() return peer.time(mode, 5, peer.docker_exec(table.unpack(in_docker))) end }
    end
    local m = interleave(rounds, contenders)
    report.at_most(what, m.ours, "bare spawn", m.spawn, 1.25, 1.1)
    if m.docker then report.faster(what, m.ours, "docker exec", m.docker, must, stretch) end
  end
end

-- A shell that stays beside starting a program for each command.
local function kept_shell(rounds)
  local sb <close> = create()
  local sh <close> = assert(sb:shell())
  local long = "cat >/dev/null <<'X'\n" .. ("line\n"):rep(400) .. "X"
  local m = interleave(rounds, {
    { "short", function() return time_us(200, function() assert(sh:run "echo hi") end) end },
    { "long", function() return time_us(50, function() assert(sh:run(long)) end) end },
    { "spawn", function() return peer.time("read", 50, { "sh", "-c", "echo hi" }) end },
  })
  report.row { what = "echo hi in a shell that stays (T7)", ours = report.us(m.short), peer = "bare sh -c " .. report.us(m.spawn),
    value = m.short, unit = "us", must = 60, stretch = 30, better = "less" }
  report.row { what = "a heredoc of 2 kB for cat there", ours = report.us(m.long), unit = "" }
end

local function files(rounds, has)
  local sb <close> = create()
  local bytes, path = ("x"):rep(10240), os.tmpname()
  assert(ab.fs.write(path, bytes))
  local contenders = {
    { "write", function() return time_us(200, function() assert(sb:write("file", bytes)) end) end },
    { "read", function() return time_us(200, function() assert(#sb:read "file" == #bytes) end) end },
  }
  if has.docker then
    local into, out_of = peer.docker_cp(path)
    contenders[#contenders + 1] = { "cp in", function() return peer.time("wait", 5, into) end }
    contenders[#contenders + 1] = { "cp out", function() return peer.time("wait", 5, out_of) end }
  end
  local m = interleave(rounds, contenders)
  os.remove(path)
  os.remove(path .. ".back")
  if has.docker then
    report.faster("write 10 KB (T8)", m.write, "docker cp", m["cp in"], 400, 1500)
    report.faster("read 10 KB (T8)", m.read, "docker cp", m["cp out"], 500, 2000)
  else
    report.row { what = "write 10 KB", ours = report.us(m.write), unit = "" }
    report.row { what = "read 10 KB", ours = report.us(m.read), unit = "" }
  end
end

local function changed(count)
  local sb = create()
  assert(sb:exec(("mkdir d; cd d; for i in $(seq %d); do echo $i > f$i; done"):format(count)).exit_code == 0)
  return sb
end

-- A fork of a sandbox in which something was changed again, so that every one is taken anew.
local function fork_us(sb, i)
  assert(sb:write("again", tostring(i)))
  local began = clock()
  local kids <close> = assert(sb:fork(1))
  assert(kids[1]:exec { "true" }.exit_code == 0)
  return (clock() - began) * 1e6
end

local function mean(samples)
  local sum = 0
  for _, us in ipairs(samples) do sum = sum + us end
  return sum / #samples
end

-- One after another, so that no stretch of time is one's own; and the mean too, for now and then layers are made one.
local function forks(rounds, has)
  local few <close> = changed(10)
  local some <close> = changed(1000)
  local many_files <close> = changed(10000)
  local docker = has.docker and peer.docker_change(1000)
  local ten, thousand, ten_thousand, theirs = {}, {}, {}, {}
  for round = 1, rounds do
    for i = 1, 20 do
      ten[#ten + 1], thousand[#thousand + 1] = fork_us(few, i), fork_us(some, i)
      ten_thousand[#ten_thousand + 1] = fork_us(many_files, round * i)
    end
    for _, us in ipairs(docker and peer.time("wait", 2, peer.docker_fork()) or {}) do theirs[#theirs + 1] = us end
  end
  local ten_mean, ten_thousand_mean = mean(ten), mean(ten_thousand)
  if docker then
    report.faster("fork, 1,000 files changed, + true (T9)", report.quantile(thousand, 0.5), "docker commit + run",
      report.quantile(theirs, 0.5), 150, 350)
  end
  report.at_most("the same with 10,000 files changed", report.quantile(ten_thousand, 0.5), "with 10", report.quantile(ten, 0.5), 1.1)
  report.at_most("the same, the mean", ten_thousand_mean, "with 10", ten_mean, 1.1)
end

local function each(count, limit, fn)
  local jobs = {}
  for i = 1, count do jobs[i] = i end
  local began = clock()
  ab.async.each(jobs, fn, { limit = limit })
  return count / (clock() - began)
end

local function throughput(rounds, has)
  local ours, bwrap, docker = {}, {}, {}
  for _ = 1, rounds do
    ours[#ours + 1] = each(400, 16, function() create_true_destroy() end)
    if has.bwrap then bwrap[#bwrap + 1] = peer.rate(peer.BWRAP, 4, 400, clock) end
    if has.docker then docker[#docker + 1] = peer.rate(peer.DOCKER_RUN, 4, 16, clock) end
  end
  local rate = report.quantile(ours, 0.5)
  report.row { what = "create + true + destroy, per second (T10)", ours = ("%.0f/s"):format(rate), value = rate, unit = "/s",
    must = 700, stretch = 1000, better = "more" }
  local function beside(name, samples, must, stretch)
    if #samples == 0 then return end
    local theirs = report.quantile(samples, 0.5)
    report.row { what = "the same", ours = ("%.0f/s"):format(rate), peer = ("%s %.1f/s"):format(name, theirs), value = rate / theirs,
      unit = "x", must = must, stretch = stretch, better = "more" }
  end
  beside("docker run", docker, 70, 100)
  beside("bwrap", bwrap, 1.75, 2.5)
end

local function meminfo_available()
  local kb
  for line in io.lines "/proc/meminfo" do kb = kb or line:match "^MemAvailable:%s+(%d+)" end
  return tonumber(kb) * 1024
end

local function many(rounds)
  local count, boxes = 2000, {}
  local first <close> = create()
  local function exec_us() return time_us(100, function() assert(first:exec { "true" }) end) end
  local alone, crowded = {}, {}
  for _ = 1, rounds do table.move(exec_us(), 1, 100, #alone + 1, alone) end
  collectgarbage()
  local before = meminfo_available()
  each(count, 16, function(i) boxes[i] = create() end)
  local used = (before - meminfo_available()) / count
  for _ = 1, rounds do table.move(exec_us(), 1, 100, #crowded + 1, crowded) end
  local sample = table.move(boxes, 1, 64, 1, {})
  local rates, spawns = {}, {}
  for _ = 1, rounds do
    rates[#rates + 1] = 25 * each(#sample, #sample, function(i)
      for _ = 1, 25 do assert(sample[i]:exec { "true" }) end -- one after another in each: what overlaps has a cgroup too
    end)
    spawns[#spawns + 1] = peer.rate({ "true" }, 8, 1600, clock)
  end
  local rate, spawned = report.quantile(rates, 0.5), report.quantile(spawns, 0.5)
  each(count, 16, function(i) boxes[i]:close() end)
  report.row { what = "idle sandbox, memory (T12)", ours = ("%.2f MB"):format(used / 1e6), value = used / 1e6, unit = "MB",
    must = 0.5, stretch = 0.3, better = "less" }
  local floor = peer.floor_bytes(count)
  if floor then
    report.row { what = "the same", ours = ("%.2f MB"):format(used / 1e6), peer = ("the kernel's part alone %.2f MB"):format(floor / 1e6),
      value = used / floor, unit = "of it", better = "less" }
  end
  local a, c = report.quantile(alone, 0.5), report.quantile(crowded, 0.5)
  report.row { what = "exec true with 2,000 sandboxes alive (T12)", ours = report.us(c), peer = "alone " .. report.us(a),
    value = (c / a - 1) * 100, unit = "% slower", must = 10, stretch = 5, better = "less" }
  report.row { what = "exec true in 64 sandboxes at once, per second (T11)", ours = ("%.0f/s"):format(rate), value = rate,
    unit = "/s", must = 2700, stretch = 3300, better = "more" }
  report.row { what = "the same", ours = ("%.0f/s"):format(rate), peer = ("bare spawns at once %.0f/s"):format(spawned),
    value = rate / spawned, unit = "x", better = "more" }
end

return function(rounds)
  local has = { bwrap = peer.has_bwrap(), docker = peer.start_docker() }
  local ok, problem = xpcall(function()
    cold(rounds, has)
    boot(rounds, has)
    claims(rounds, has)
    commands(rounds, has)
    kept_shell(rounds)
    files(rounds, has)
    forks(rounds, has)
    throughput(rounds, has)
    many(rounds)
  end, debug.traceback)
  if has.docker then peer.stop_docker() end
  assert(ok, problem)
end
