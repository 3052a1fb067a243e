--- The engine's own hands in a hostile sandbox: what its file functions refuse, and that they never wait.
local ab = require "agentbox"
local fs = require "agentbox.sys.fs"
local lu = require "luaunit"
local time = require "agentbox.sys.time"

local M = {}

local sb, host

function M.setUp()
  sb = assert(ab.sandbox.create { limits = { disk_mb = 256 } })
  host = assert(fs.tmpdir "agentbox-canary-")
  assert(fs.write(host .. "/host_canary", "CANARY\n", {}))
end

function M.tearDown()
  sb:close()
  fs.remove(host, true)
end

local function sh(text)
  local out = assert(sb:exec(text, { timeout_s = 30 }))
  lu.assertEquals(out.exit_code, 0, out.stderr)
  return out.stdout
end

local function refused(path, code)
  local began = time.monotonic()
  local bytes, problem = sb:read(path)
  lu.assertNil(bytes, path)
  if code then lu.assertEquals(problem.code, code, path .. ": " .. problem.msg) end
  lu.assertTrue(time.monotonic() - began < 5, path .. " made the engine wait")
  return problem
end

function M.test_e2_e3_proc_of_the_host_is_not_there()
  refused("/proc/sys/kernel/core_pattern", "denied")
  refused("/proc/kmsg", "denied")
  sh "ln -s /proc /tmp/through"
  refused("/tmp/through/kmsg", "notfound")
  local before = fs.read("/proc/sys/kernel/core_pattern", 256)
  sb:write("/proc/sys/kernel/core_pattern", "|/bin/false")
  lu.assertEquals(fs.read("/proc/sys/kernel/core_pattern", 256), before)
end

function M.test_e4_a_lease_does_not_stop_the_engine()
  sh "echo x > /tmp/leased"
  local p <close> = assert(sb:spawn { "python3", "-c", [[
import fcntl, os, signal, time
f = os.open("/tmp/leased", os.O_RDWR)
signal.signal(signal.SIGIO, lambda *a: None)
fcntl.fcntl(f, 1024, fcntl.F_WRLCK)
print("held", flush=True)
time.sleep(60)]] })
  assert(p:read { until_text = "held", timeout_s = 10 })
  refused "/tmp/leased"
end

function M.test_e10_to_e22_only_regular_files_are_read()
  sh [[
cd /tmp; mkfifo fifo; truncate -s 1T sparse; ln -s /dev/zero zero; ln -s /proc/1/root/etc/shadow magic
ln -s /proc/self/fd/1 fdlink; mkdir dir; ln -s l2 l1; ln -s l1 l2
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("/tmp/sock")']]
  refused("/tmp/fifo", "invalid")
  refused("/tmp/sparse", "toobig")
  refused "/tmp/zero"
  refused "/tmp/magic"
  refused "/tmp/fdlink"
  refused("/tmp/dir", "invalid")
  refused("/tmp/sock", "invalid")
  refused("/tmp/l1", "invalid")
  refused("/proc/1/root" .. host .. "/host_canary")
  refused("/" .. ("a"):rep(5000), "toobig")
  refused "/dev/full"
  lu.assertEquals(sb:read("/tmp/sparse", { max_bytes = 3, truncate = true }), "\0\0\0")
end

function M.test_e18_dots_and_links_stay_inside()
  local shadow = assert(sb:read "/../../../../etc/shadow")
  lu.assertStrContains(shadow, "root:*:19000:")
  sh("ln -s " .. host .. "/host_canary /tmp/l; ln -s / /tmp/root")
  refused("/tmp/l", "notfound")
  refused("/tmp/root" .. host .. "/host_canary", "notfound")
  refused("../../../.." .. host .. "/host_canary", "notfound")
end

function M.test_writing_through_links_stays_inside()
  sh("mkdir -p /tmp/d; ln -s " .. host .. " /tmp/d/out; ln -s " .. host .. "/new /tmp/d/dangling")
  sb:write("/tmp/d/out/planted", "x")
  sb:write("/tmp/d/dangling", "x")
  lu.assertEquals(#assert(fs.list(host)), 1)
  sb:remove("/tmp/d/out", { recursive = true })
  lu.assertEquals(fs.read(host .. "/host_canary", 64), "CANARY\n")
end

-- E1: the sandbox swaps a directory with a link to / while the engine opens what lies below it.
function M.test_e1_a_race_of_renames_opens_nothing_of_the_host()
  sh("mkdir -p /tmp/a" .. host .. "; echo inside > /tmp/a" .. host .. "/host_canary; ln -s / /tmp/b")
  local swapper <close> = assert(sb:spawn { "python3", "-c", [[
import ctypes
l = ctypes.CDLL(None)
print("on", flush=True)
while True: l.renameat2(-100, b"/tmp/a", -100, b"/tmp/b", 2)]] })
  assert(swapper:read { until_text = "on", timeout_s = 10 })
  local inside, host_bytes = 0, 0
  for i = 1, 20000 do
    local bytes = sb:read("/tmp/a" .. host .. "/host_canary", { max_bytes = 64 })
    if bytes == "inside\n" then inside = inside + 1 elseif bytes then host_bytes = host_bytes + 1 end
    if i % 500 == 0 then ab.async.sleep(0) end
  end
  lu.assertEquals(host_bytes, 0)
  lu.assertTrue(inside > 0, "the race never let the engine see the file")
end

function M.test_trees_that_were_made_to_hurt()
  sh [[python3 -c 'import os
os.makedirs("/tmp/deep"); os.chdir("/tmp/deep")
for i in range(1500): os.mkdir("d" * 20); os.chdir("d" * 20)
os.makedirs("/tmp/names")
for n in (b"a\nb", b"\xff\xfe", b"x" * 255, b"-rf", b"\x1b[31m"): open(b"/tmp/names/" + n, "w").close()
os.mkfifo("/tmp/names/fifo")']]
  local names = {}
  for _, entry in ipairs(assert(sb:list "/tmp/names")) do names[entry.name] = entry.type end
  lu.assertEquals(names, {
    ["a\nb"] = "file", ["\xff\xfe"] = "file", [("x"):rep(255)] = "file", ["-rf"] = "file", ["\x1b[31m"] = "file",
    fifo = "fifo",
  })
  local _, problem = sb:list("/tmp/deep", { recursive = true })
  lu.assertEquals(problem.code, "toobig")
  lu.assertStrContains(problem.msg, "more than 256 folders deep: dddd")
  local ok = sb:remove("/tmp/deep", { recursive = true })
  lu.assertNil(ok)
  local other <close> = assert(ab.sandbox.create {})
  local counts = assert(sb:copy_tree("/tmp/names", other, "/tmp/names"))
  lu.assertEquals({ counts.files, counts.skipped }, { 5, 1 })
  _, problem = sb:copy_tree("/tmp/names", other, "/tmp/few", { max_entries = 2 })
  lu.assertEquals(problem.code, "toobig")
end

-- As every caller of the engine: who is not root of the machine may not open what is closed inside.
function M.test_what_is_closed_is_seen_by_every_engine()
  local conform, verdict = require "agentbox.conform", nil
  for _, case in ipairs(conform.cases()) do
    if case.id == "tree.closed" then verdict = conform.judge(case, { backend = "native" }) end
  end
  lu.assertEquals(verdict.verdict, "ok", verdict.why)
  sh "mkdir -p /tmp/got/in; echo a > /tmp/got/in/f; chmod 0 /tmp/got/in"
  local dir = assert(ab.fs.tmpdir "agentbox-closed-")
  local _ <close> = setmetatable({}, { __close = function()
    os.execute(("chmod -R u+rwx '%s'"):format(dir))
    assert(ab.fs.remove(dir, true))
  end })
  local counts, problem = sb:get("/tmp/got", dir)
  if counts then return lu.assertEquals({ counts.files, counts.dirs, counts.skipped }, { 1, 1, 0 }) end
  -- Root that may not mount becomes somebody who may not write here.
  lu.assertEquals({ problem.code, problem.msg:match "copy (%S+)" }, { "denied", "/tmp/got/in" })
end

function M.test_e5_e6_a_tree_that_resists_is_dead_at_the_timeout()
  local out = assert(sb:exec([[python3 -c 'import os, signal, time
for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(s, signal.SIG_IGN)
for i in range(60):
  if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
      print("up", flush=True)
      time.sleep(1000)
    os._exit(0)
time.sleep(1000)']], { timeout_s = 3 }))
  lu.assertTrue(out.timed_out)
  lu.assertEquals(select(2, out.stdout:gsub("up", "")), 60)
  lu.assertEquals(sh "pgrep -c python3 || true", "0\n")
end

function M.test_a_daemon_of_an_earlier_command_survives_a_later_timeout()
  sh "(setsid sleep 1000 >/dev/null 2>&1 &); until pgrep -x sleep >/dev/null; do :; done"
  lu.assertTrue(assert(sb:exec("sleep 1000", { timeout_s = 0.3 })).timed_out)
  lu.assertEquals(sh "pgrep -c sleep", "1\n")
end

function M.test_a_fork_storm_is_dead_at_the_timeout()
  local out = assert(sb:exec([[python3 -c 'import os
while True:
  try: os.fork()
  except OSError: pass']], { timeout_s = 1 }))
  lu.assertTrue(out.timed_out)
  lu.assertEquals(sh "pgrep -c python3 || true", "0\n")
end

function M.test_commands_find_signals_as_at_a_login()
  local status = sh "cat /proc/self/status"
  for _, set in ipairs { "SigBlk", "SigIgn", "SigCgt" } do lu.assertStrContains(status, set .. ":\t0000000000000000") end
end

function M.test_no_capability_can_come_back()
  local status = sh "cat /proc/self/status"
  for _, set in ipairs { "CapPrm", "CapEff", "CapBnd" } do lu.assertStrContains(status, set .. ":\t00000000800405fb") end
  lu.assertStrContains(status, "NoNewPrivs:\t1")
end

function M.test_outer_and_inner_mode_are_exact()
  assert(sb:write("/tmp/s", "x", { mode = 1517 })) -- 02755 octal
  lu.assertEquals(sh "stat -c '%a %u' /tmp/s", "2755 0\n")
  assert(sb:write("/tmp/s", "y"))
  lu.assertEquals(assert(sb:stat "/tmp/s").size, 1)
end

return M
