--- What control groups promise, whichever version the machine has: skipped where it gives none.
local ab = require "agentbox"
local lu = require "luaunit"
local sys = require "agentbox.sys.sandbox"
local time = require "agentbox.sys.time"

local M = {}

local has = sys.probe().cgroup

local function create(limits)
  return assert(ab.sandbox.create { limits = limits })
end

function M.test_memory_ends_the_hog_and_says_so()
  lu.skipIf(not has.memory, "no memory controller")
  local sb <close> = create { memory_mb = 64 }
  local out = assert(sb:exec({ "python3", "-c", "x = b'x' * (200 << 20)" }, { timeout_s = 60 }))
  lu.assertTrue(out.oom)
  lu.assertEquals(out.signal, "SIGKILL")
  lu.assertFalse(assert(sb:exec "true").oom)
  lu.assertTrue(assert(sb:usage()).memory_peak_bytes <= 64 << 20)
end

-- Files are memory that no kill frees: pid 1 would be the last to be killed for it.
function M.test_files_leave_room_for_pid_1()
  lu.skipIf(not has.memory, "no memory controller")
  local sb <close> = create { memory_mb = 64, disk_mb = 512 }
  for _ = 1, 3 do
    local out = assert(sb:exec("head -c 300M /dev/zero > /tmp/big; head -c 300M /dev/zero > /dev/shm/big", { timeout_s = 60 }))
    lu.assertStrContains(out.stderr, "No space left")
    lu.assertTrue(assert(sb:exec({ "python3", "-c", "x = b'x' * (200 << 20)" }, { timeout_s = 60 })).oom)
    lu.assertEquals(assert(sb:exec "echo alive").stdout, "alive\n")
  end
end

function M.test_processes_are_counted()
  lu.skipIf(not has.pids, "no pids controller")
  local sb <close> = create { pids_limit = 20 }
  local out = assert(sb:exec("for i in $(seq 100); do sleep 1000 & done; wait", { timeout_s = 60 }))
  lu.assertNotEquals(out.exit_code, 0)
  lu.assertTrue(assert(sb:usage()).pids <= 20)
  assert(sb:kill_all())
  lu.assertEquals(assert(sb:exec "echo alive").stdout, "alive\n")
end

function M.test_a_fork_bomb_ends_with_its_command()
  lu.skipIf(not has.pids, "no pids controller")
  local sb <close> = create { pids_limit = 64 }
  local out = assert(sb:exec("f() { f | f & }; f; sleep 100", { timeout_s = 1 }))
  lu.assertTrue(out.timed_out or out.exit_code ~= 0)
  assert(sb:kill_all())
  lu.assertEquals(assert(sb:exec "echo alive").stdout, "alive\n")
end

-- Half a processor: a second of work takes two. Only more time is asserted, never less.
function M.test_the_processor_is_shared()
  lu.skipIf(not has.cpu, "no cpu controller")
  local sb <close> = create { cpu_count = 0.5 }
  local began = time.monotonic()
  assert(sb:exec({ "python3", "-c", "import time\nwhile time.process_time() < 1: pass" }, { timeout_s = 60 }))
  lu.assertTrue(time.monotonic() - began > 1.5)
end

return M
