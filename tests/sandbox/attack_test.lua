--- Runs every text of attacks.lua in a sandbox that has all limits, and looks at the host afterwards.
local ab = require "agentbox"
local attacks = dofile((arg[0]:match "^(.*/)" or "") .. "attacks.lua")
local fs = require "agentbox.sys.fs"
local lu = require "luaunit"
local sys = require "agentbox.sys.sandbox"

local M = {}

local LIMITS = { memory_mb = 512, pids_limit = 256, cpu_count = 1, disk_mb = 256, inodes = 65536 }

-- A raw system call by number: some attacks have no program for what they try.
local SC = [==[
sc(){ python3 -c 'import ctypes as c,sys,os
l=c.CDLL(None,use_errno=True)
r=l.syscall(*[int(a,0) for a in sys.argv[1:]])
print("rc=%d %s"%(r,os.strerror(c.get_errno()) if r<0 else "ALLOWED"))' "$@"; }
]==]

-- Things of the host that nothing inside may reach: a file, a port, an abstract socket.
local SERVER = [==[
import socket, sys
a = socket.socket(); a.bind(("127.0.0.1", 0)); a.listen()
b = socket.socket(socket.AF_UNIX); b.bind("\0" + sys.argv[1]); b.listen()
print(a.getsockname()[1], flush=True)
sys.stdin.read()
]==]

local host

local function hash_of(path)
  return require "agentbox.sys.hash".sha256(assert(fs.read(path, 1 << 24)))
end

local function look_at_host()
  return {
    hostname = fs.read("/proc/sys/kernel/hostname", 256), core = fs.read("/proc/sys/kernel/core_pattern", 256),
    version = hash_of "/etc/debian_version", sh = hash_of "/bin/sh", canary = fs.read(host.dir .. "/host_canary", 256),
  }
end

local function open_host(attack)
  host = { dir = assert(fs.tmpdir "agentbox-canary-"), port = "0" }
  assert(fs.write(host.dir .. "/host_canary", "CANARY\n", {}))
  host.socket = host.dir:match "[^/]+$"
  host.before = look_at_host()
  if not attack.run:find "@PORT@" and not attack.run:find "@SOCKET@" then return end
  host.box = assert(ab.sandbox.create { backend = "none" })
  host.server = assert(host.box:spawn { "python3", "-c", SERVER, host.socket })
  host.port = assert(host.server:read { until_text = "\n", timeout_s = 10 }):match "%d+"
end

local function close_host()
  -- An attack that succeeds must not outlive its test.
  local core = fs.read("/proc/sys/kernel/core_pattern", 256)
  if core ~= host.before.core then
    local file = io.open("/proc/sys/kernel/core_pattern", "w")
    if file then file:write(host.before.core):close() end
  end
  if host.server then
    host.server:kill()
    host.server:wait(10)
    host.box:close()
  end
  fs.remove(host.dir, true)
end

local function fill(text)
  return (text:gsub("@CANARY@", host.dir):gsub("@SOCKET@", host.socket):gsub("@PORT@", host.port))
end

local function check(attack, out)
  local where = ("%d %s: exit %d\n%s%s"):format(attack.n, attack.title, out.exit_code, out.stdout:sub(1, 500),
    out.stderr:sub(1, 500))
  local said = out.stdout .. out.stderr
  if attack.want then lu.assertTrue(said:find(attack.want) ~= nil, where) end
  if attack.never then lu.assertNil(said:find(fill(attack.never)), where) end
  lu.assertNil(said:find("CANARY", 1, true), where)
  lu.assertEquals(out.timed_out, attack.timed_out or false, where)
  if attack.truncated then lu.assertTrue(out.truncated, where) end
  if attack.oom and sys.probe().cgroup.memory then lu.assertTrue(out.oom, where) end
end

local function run(attack)
  if attack.unlimited and not sys.probe().cgroup.memory then return end
  local sb <close> = assert(ab.sandbox.create { limits = LIMITS })
  if attack.users and sb._raw:user_count() == 1 then return end
  local text = fill(attack.run)
  if text:find "%f[%w]sc %d" then text = SC .. text end
  local out, problem = sb:exec(text, { timeout_s = attack.timeout_s or 60 })
  lu.assertNotNil(out, ("%d %s: %s"):format(attack.n, attack.title, tostring(problem)))
  check(attack, out)
  assert(sb:kill_all())
  local after = assert(sb:exec({ "/bin/echo", "still" }, { timeout_s = 10 }))
  if attack.n == 88 then
    lu.assertTrue(after.exit_code == 0 or after.exit_code == 127, after.stderr)
  else
    lu.assertEquals(after.stdout, "still\n", attack.title .. after.stderr)
  end
end

function M.tearDown()
  if host then close_host() end
  host = nil
end

for _, attack in ipairs(attacks) do
  M[("test_%03d_%s"):format(attack.n, attack.title:gsub("[^%w]+", "_"))] = function()
    if attack.slow and os.getenv "AGENTBOX_TEST_SHORT" then return end
    open_host(attack)
    run(attack)
    lu.assertEquals(look_at_host(), host.before)
  end
end

return M
