--- What is stopped, killed, or cannot be: an error in time, and nothing left of it.
local ab = require "agentbox"
local fs = require "agentbox.sys.fs"
local lu = require "luaunit"
local os_sys = require "agentbox.sys.os"
local time = require "agentbox.sys.time"

local census = dofile((arg[0]:match "^(.*/)" or "./") .. "../support/census.lua")

local M = {}

local function host(command)
  local box <close> = assert(ab.sandbox.create { backend = "none" })
  return assert(box:exec(command, { timeout_s = 60 }))
end

-- Pids of our own children of that name.
local function children(name)
  local found, mine = {}, tostring(os_sys.pid())
  for _, entry in ipairs(assert(fs.list "/proc")) do
    local stat = entry.name:find "^%d+$" and fs.read("/proc/" .. entry.name .. "/stat", 4096)
    local comm, parent = (stat or ""):match "^%d+ %((.*)%) %a (%d+)"
    if parent == mine and comm == name then found[#found + 1] = entry.name end
  end
  return found
end

local function until_true(what, seconds, fn)
  local deadline = time.monotonic() + seconds
  while not fn() do
    lu.assertTrue(time.monotonic() < deadline, what)
    ab.async.sleep(0.005)
  end
end

local function is_alive(pid)
  local stat = fs.read("/proc/" .. pid .. "/stat", 4096)
  return stat ~= nil and not stat:find "%) [ZX] "
end

function M.test_a_zygote_that_is_stopped_is_an_error_in_time_and_the_next_one_works()
  local before <close> = assert(ab.sandbox.create {})
  local zygote = children("agentbox-zygote")
  lu.assertEquals(#zygote, 1)
  host("kill -STOP " .. zygote[1])
  local sb, problem = ab.sandbox.create { boot_timeout_s = 0.3 }
  lu.assertNil(sb)
  lu.assertEquals(problem.code, "sandbox")
  lu.assertStrContains(problem.msg, "zygote")
  lu.assertStrContains(problem.msg, "boot_timeout_s")
  lu.assertFalse(is_alive(zygote[1]))
  local after <close> = assert(ab.sandbox.create {})
  lu.assertEquals(assert(after:exec "echo after").stdout, "after\n")
  lu.assertEquals(assert(before:exec "echo before").stdout, "before\n")
end

-- Symptom: a process that it had just started for a user namespace lived on with all its descriptors, and whoever waited
-- for a sandbox of it was not told. In an engine of its own: what is half made ends as a child that nobody knows.
function M.test_a_zygote_that_is_killed_at_any_moment_is_seen()
  local binary, here = assert(fs.realpath "/proc/self/exe"), assert(fs.realpath(arg[0]:match "^(.*)/" or "."))
  local out = host(("'%s' script '%s/killed_zygote.lua'"):format(binary, here))
  lu.assertEquals(out.stdout, "each was told\n", out.stderr) -- warnings may be said
end

-- The zygote shares what the engine watches for a sandbox's end; while it lags behind, the loop must rest.
function M.test_the_loop_rests_while_the_zygote_lags()
  local sb = assert(ab.sandbox.create {})
  local zygote = children("agentbox-zygote")[1]
  host("kill -STOP " .. zygote)
  sb:close()
  local began = os.clock()
  ab.async.sleep(0.5)
  local used = os.clock() - began
  host("kill -CONT " .. zygote)
  lu.assertTrue(used < 0.03, ("%.2f s of CPU"):format(used))
  assert(ab.sandbox.create {}):close()
end

-- Five hundred directories to make, with a hundredth of a processor where that can be had: there is time to catch it.
local SLOW = { workspace = "/w" .. ("/a"):rep(500), limits = { cpu_count = 0.01 }, boot_timeout_s = 3 }

function M.test_a_pid_1_that_is_stopped_is_an_error_in_time()
  local caught
  for _ = 1, 200 do
    local old = {}
    for _, pid in ipairs(children "init") do old[pid] = true end
    local job = ab.async.spawn(function()
      return ab.sandbox.create(SLOW)
    end)
    while not caught and job:status() ~= "done" do
      for _, pid in ipairs(children "init") do
        if not old[pid] then
          caught = pid
          host("kill -STOP " .. pid)
        end
      end
      ab.async.sleep(0.001)
    end
    local _, sb, problem = job:join()
    if sb then
      sb:close()
      caught = nil
    elseif caught then
      lu.assertEquals(problem.code, "sandbox")
      lu.assertStrContains(problem.msg, "pid 1 is stopped")
      lu.assertStrContains(problem.msg, "boot_timeout_s")
      lu.assertFalse(is_alive(caught))
      return
    end
  end
  lu.fail "every sandbox was ready before it could be stopped"
end

function M.test_commands_of_backend_none_die_with_a_killed_engine()
  local binary = assert(fs.realpath "/proc/self/exe")
  local dir = assert(fs.tmpdir "agentbox-ends-")
  local script = dir .. "/s.lua"
  assert(fs.write(script, [[
local ab = require "agentbox"
local sb = assert(ab.sandbox.create { backend = "none" })
local over = assert(sb:spawn { "sh", "-c", "exit 0" })
over:wait()
local p = assert(sb:spawn("sleep 98765 & echo $$ $! > ]] .. dir .. [[/pids.new; mv ]] .. dir .. "/pids.new " .. dir .. [[/pids; wait"))
p:wait()
]], {}))
  local box <close> = assert(ab.sandbox.create { backend = "none" })
  local engine <close> = assert(box:spawn({ binary, "script", script }))
  until_true("the command started", 30, function() return fs.exists(dir .. "/pids") end)
  local shell, child = assert(fs.read(dir .. "/pids", 100)):match "(%d+) (%d+)"
  lu.assertTrue(is_alive(shell) and is_alive(child))
  local parent = fs.read("/proc/" .. shell .. "/stat", 4096):match "%) %a (%d+)"
  host("kill -9 " .. parent)
  engine:wait()
  until_true("its command ended", 20, function() return not is_alive(shell) and not is_alive(child) end)
  host("rm -rf " .. dir .. " " .. (os.getenv "TMPDIR" or "/tmp") .. "/agentbox-none-" .. parent .. "-*")
end

-- An engine with a full pool and a sandbox in use, and what it is told: nothing of it may be alive afterwards.
local POOL = [[
local ab = require "agentbox"
local pool <close> = ab.sandbox.pool { size = 3 }
assert(pool:fill {})
local sb <close> = assert(pool:claim {})
assert(sb:exec "sleep 98764 & echo started")
assert(pool:fill {})
io.stdout:write("ready\n")
io.stdout:flush()
sb:exec "sleep 300"
]]

local function below(pid)
  local sandboxes, processes = census.below(pid)
  return { sandboxes, processes }
end

local function groups_of(pid)
  return host(("ls -d /sys/fs/cgroup/agentbox-%s-* /sys/fs/cgroup/*/agentbox-%s-* 2>/dev/null | wc -l"):format(pid, pid)).stdout
end

local function ends_with_a_pool(signal)
  local dir = assert(fs.tmpdir "agentbox-ends-")
  assert(fs.write(dir .. "/s.lua", POOL))
  local box <close> = assert(ab.sandbox.create { backend = "none" })
  local engine <close> = assert(box:spawn(("echo $$; exec %s script %s/s.lua"):format(assert(fs.realpath "/proc/self/exe"), dir)))
  local pid = assert(engine:read { until_text = "\n", timeout_s = 10 }):match "%d+"
  lu.assertEquals(engine:read { until_text = "ready\n", timeout_s = 60 }, "ready\n")
  until_true("three ready ones and one in use", 20, function() return below(tonumber(pid))[1] == 4 end)
  local alive = {}
  for _, entry in ipairs(assert(fs.list "/proc")) do
    local status = entry.name:find "^%d+$" and fs.read("/proc/" .. entry.name .. "/status", 8192)
    if status and status:find("PPid:\t" .. pid .. "\n", 1, true) then alive[#alive + 1] = entry.name end
  end
  lu.assertTrue(#alive >= 5, "the zygote and four sandboxes")
  host("kill -" .. signal .. " " .. pid)
  assert(engine:wait(30))
  until_true("nothing is alive", 20, function()
    for _, one in ipairs(alive) do
      if is_alive(one) then return false end
    end
    return true
  end)
  until_true("no control group is left", 20, function() return groups_of(pid) == "0\n" end)
  host("rm -rf " .. dir)
end

function M.test_kill_9_with_a_pool() ends_with_a_pool "KILL" end

function M.test_an_interrupt_with_a_pool() ends_with_a_pool "INT" end

function M.test_an_end_with_a_pool() ends_with_a_pool "TERM" end

-- Root of a user namespace that holds nobody else can't give up being root.
function M.test_root_of_a_namespace_of_its_own_is_told_what_to_do()
  lu.skipIf(host("unshare -r true").exit_code ~= 0, "no unshare -r here")
  local dir = assert(fs.tmpdir "agentbox-ends-")
  assert(fs.write(dir .. "/s.lua", [[
local ab = require "agentbox"
local sb, problem = ab.sandbox.create {}
print(sb and "made" or problem.code .. ": " .. problem.msg)
]], {}))
  local out = host { "unshare", "-r", assert(fs.realpath "/proc/self/exe"), "script", dir .. "/s.lua" }
  lu.assertStrContains(out.stdout, "unsupported: agentbox is root of a user namespace")
  lu.assertStrContains(out.stdout, "start it outside")
  host("rm -rf " .. dir)
end

local TAKES_ALL = [[
local ab = require "agentbox"
local sb = assert(ab.sandbox.create {})
local p = assert(sb:spawn "(while :; do sleep 3000 & done) 2> /dev/null; echo full; read end")
print(p:read { timeout_s = 60 })
print(sb:close())
]]

-- The first thing that another thread does for this engine is to end a sandbox, at a time when no thread could be started.
function M.test_processes_of_the_user_that_the_agent_has_all_do_not_end_the_engine()
  lu.skipIf(fs.stat("/proc/self").uid ~= 0, "only root may be another user, who has no other processes")
  local dir = assert(fs.tmpdir "agentbox-ends")
  local _ <close> = setmetatable({}, { __close = function() assert(fs.remove(dir, true)) end })
  assert(fs.write(dir .. "/all.lua", TAKES_ALL, { mode = 420 }))
  local out = host(("chmod 755 %s; setpriv --reuid=54322 --regid=54322 --clear-groups env HOME=/tmp bash -c 'ulimit -u 60; exec %s script %s/all.lua'")
    :format(dir, assert(fs.realpath "/proc/self/exe"), dir))
  lu.assertEquals({ out.stdout, out.stderr, out.exit_code }, { "full\n\ntrue\n", "", 0 })
end

return M
