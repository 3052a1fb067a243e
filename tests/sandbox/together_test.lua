--- Several commands in one sandbox at once: each is killed with what it started, and with nothing else.
local ab = require "agentbox"
local lu = require "luaunit"
local sys = require "agentbox.sys.sandbox"

local M = {}

local level = sys.probe().cgroup.level

local sb

function M.setUp()
  sb = assert(ab.sandbox.create {})
end

function M.tearDown()
  sb:close()
end

local function sh(text)
  local out = assert(sb:exec(text, { timeout_s = 30 }))
  lu.assertEquals(out.exit_code, 0, out.stderr)
  return out.stdout
end

-- A daemon that has left its parent and its session, and writes its number into a file.
local function daemon(file)
  return ("setsid sh -c 'setsid sleep 3000 & echo $! > /tmp/%s.new; mv /tmp/%s.new /tmp/%s' >/dev/null 2>&1"):format(file, file, file)
end

local function wait_for(file)
  sh(("while ! [ -e /tmp/%s ]; do sleep 0.01; done"):format(file))
end

-- What pid 1 has not waited for yet is dead all the same, and kill -0 would find it.
local function lives(file)
  return sb:exec(("grep '^State:' /proc/$(cat /tmp/%s)/status | grep -v Z"):format(file)).exit_code == 0
end

function M.test_a_daemon_of_the_second_dies_with_it_and_not_with_the_first()
  lu.skipIf(level == "none", "no cgroup to tell them apart")
  local first <close> = assert(sb:spawn "sleep 3000")
  local second <close> = assert(sb:spawn(daemon "b" .. "; sleep 3000"))
  wait_for "b"
  first:kill()
  first:wait()
  lu.assertTrue(lives "b", "the first one's end took the second one's daemon")
  second:kill()
  second:wait()
  lu.assertFalse(lives "b", "a daemon escaped")
end

function M.test_a_daemon_of_the_first_dies_with_it_and_not_with_the_second()
  lu.skipIf(level == "none", "no cgroup to tell them apart")
  local first <close> = assert(sb:spawn("while ! [ -e /tmp/go ]; do sleep 0.01; done; " .. daemon "a" .. "; sleep 3000"))
  local second <close> = assert(sb:spawn "sleep 3000")
  sh "touch /tmp/go"
  wait_for "a"
  second:kill()
  second:wait()
  lu.assertTrue(lives "a", "the second one's end took the first one's daemon")
  first:kill()
  first:wait()
  lu.assertFalse(lives "a", "a daemon escaped")
end

function M.test_what_a_command_left_outlives_those_after_it()
  lu.skipIf(level == "none", "no cgroup to tell them apart")
  local first <close> = assert(sb:spawn "sleep 3000")
  sh(daemon "left")
  wait_for "left"
  lu.assertTrue(assert(sb:exec("sleep 3000", { timeout_s = 0.2 })).timed_out)
  first:kill()
  first:wait()
  lu.assertTrue(lives "left")
  assert(sb:kill_all())
  lu.assertFalse(lives "left")
end

-- More commands with something left than there is room for cgroups: none fails, and the sandbox ends.
function M.test_many_with_daemons()
  local first <close> = assert(sb:spawn "sleep 3000")
  for i = 1, 40 do lu.assertEquals(sh(daemon("m" .. i) .. "; echo " .. i), i .. "\n") end
  first:kill()
  first:wait()
  assert(sb:kill_all())
  for i = 1, 40 do lu.assertEquals(sh("echo " .. i), i .. "\n") end
end

function M.test_a_cgroup_is_used_again_when_nobody_is_left_in_it()
  lu.skipIf(level == "none", "no cgroup to tell them apart")
  local first <close> = assert(sb:spawn "sleep 3000")
  local leaf = "grep -o ':/c[0-9]*' /proc/self/cgroup"
  local one = sh(leaf)
  lu.assertEquals(sh(leaf), one)
  lu.assertEquals(sh(daemon "held" .. "; " .. leaf), one)
  wait_for "held"
  local other = sh(leaf)
  lu.assertNotEquals(other, one, "somebody was in it")
  sh "kill -9 $(cat /tmp/held); while kill -0 $(cat /tmp/held); do :; done 2>/dev/null"
  lu.assertEquals(sh(leaf), one)
  first:kill()
  first:wait()
end

-- Runs what closes a command before pid 1 has had a turn to start it.
local function before_pid1(act)
  local pid1 = sb._raw:pid()
  assert(os.execute("kill -STOP " .. pid1))
  local _ <close> = setmetatable({}, { __close = function() os.execute("kill -CONT " .. pid1) end })
  return act()
end

local LEAF = "grep -o ':/c[0-9]*' /proc/self/cgroup"

-- In a cgroup nobody is left, or nobody yet: whoever gets it then dies with the one that was given up.
function M.test_the_cgroup_of_one_that_was_given_up_is_nobodys()
  lu.skipIf(level == "none", "no cgroup to tell them apart")
  local first <close> = assert(sb:spawn "sleep 3000")
  for _ = 1, 40 do
    local third <close> = before_pid1(function()
      assert(sb:spawn "sleep 3000"):close()
      return assert(sb:spawn(LEAF .. "; sleep 0.05; echo alive"))
    end)
    local out = assert(third:wait(60))
    lu.assertEquals(out.exit_code, 0, out.signal)
    lu.assertStrMatches(out.stdout, ":/c%d+\nalive\n")
  end
  first:kill()
  first:wait()
  sh "while pgrep sleep; do :; done"
end

function M.test_who_comes_after_one_that_was_given_up_is_told_from_it()
  lu.skipIf(level == "none", "no cgroup to tell them apart")
  local second <close> = before_pid1(function()
    assert(sb:spawn "sleep 3000"):close()
    return assert(sb:spawn(LEAF))
  end)
  lu.assertStrMatches(assert(second:wait(60)).stdout, ":/c%d+\n")
end

function M.test_inside_its_cgroup_is_the_root_of_all()
  local _ <close> = assert(sb:spawn "sleep 3000")
  lu.assertEquals(sh "ls /sys/fs/cgroup 2>/dev/null | wc -l", "0\n")
  lu.assertNotStrContains(sh "cat /proc/self/cgroup", "agentbox")
end

return M
