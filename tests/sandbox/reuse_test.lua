--- What a sandbox gets that another one had before: it must not be told from a new one.
local ab = require "agentbox"
local lu = require "luaunit"
local sys = require "agentbox.sys.sandbox"

local census = dofile((arg[0]:match "^(.*/)" or "./") .. "../support/census.lua")

local M = {}

local has = sys.probe().cgroup

local LIMITS = { memory_mb = 96, pids_limit = 64, cpu_count = 1 }

local function create()
  return assert(ab.sandbox.create { limits = LIMITS })
end

local function sh(sb, text)
  local out = assert(sb:exec(text, { timeout_s = 60 }))
  lu.assertEquals(out.exit_code, 0, out.stderr)
  return out.stdout
end

-- What a network's namespace tells about those who were in it.
local TRACES = [[cd /proc/net; cat dev snmp snmp6 netstat ip6_flowlabel tcp tcp6 udp udp6 unix route ipv6_route rt6_stats
  grep used sockstat]]

local USE = { "python3", "-c", [[
import socket
a = socket.socket()
a.bind(("127.0.0.1", 0))
a.listen()
b = socket.create_connection(a.getsockname())
c = a.accept()[0]
c.send(b"x" * 1000)
c.close()
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9))
try: socket.create_connection(("192.0.2.1", 9), 1)
except OSError: pass
]] }

-- No packet goes anywhere: the kernel keeps a route all the same.
local NEVER_SENT = { "python3", "-c", [[
import socket
try: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).connect(("::1", 9)); print("connected")
except OSError: pass
]] }

-- The kernel gives no two networks the same cookie (SO_NETNS_COOKIE).
local function cookie(sb)
  local out = assert(sb:exec({ "python3", "-c", "import socket; print(socket.socket().getsockopt(1, 71, 8).hex())" }, { timeout_s = 60 }))
  return out.exit_code == 0 and out.stdout
end

function M.test_a_network_that_was_used_is_not_given_again()
  local traces, seen = nil, {}
  for i = 1, 40 do
    local sb <close> = create()
    local found, id = sh(sb, TRACES), cookie(sb)
    traces = traces or found
    lu.assertEquals(found, traces)
    lu.assertFalse(id and seen[id] or false, "a used network came back")
    if i % 4 == 0 then -- the odd ones leave theirs alone
      if id then seen[id] = true end
      assert(sb:exec(USE, { timeout_s = 60 }))
    elseif i % 4 == 2 then
      local out = assert(sb:exec(NEVER_SENT, { timeout_s = 60 }))
      if id and out.stdout ~= "" then seen[id] = true end
    end
  end
end

function M.test_a_network_that_was_not_used_is()
  local count, seen = 0, {}
  for _ = 1, 60 do
    local sb <close> = create()
    local id = cookie(sb)
    lu.skipIf(not id, "a kernel without cookies")
    if not seen[id] then count, seen[id] = count + 1, true end
  end
  lu.assertTrue(count < 30, count .. " different networks")
end

function M.test_counters_begin_at_nothing()
  lu.skipIf(not has.memory, "no memory controller")
  for _ = 1, 6 do
    local sb <close> = create()
    local before = assert(sb:usage())
    lu.assertEquals(before.oom_kills, 0)
    lu.assertTrue(before.memory_peak_bytes < 24 << 20, ("%d bytes"):format(before.memory_peak_bytes))
    if before.cpu_s then lu.assertTrue(before.cpu_s < 0.4, before.cpu_s) end
    if before.pids then lu.assertEquals(before.pids, 1) end
    lu.assertFalse(assert(sb:exec "true").oom)
    lu.assertTrue(assert(sb:exec({ "python3", "-c", "x = b'x' * (200 << 20)" }, { timeout_s = 60 })).oom)
    assert(sb:exec({ "python3", "-c", "import time\nwhile time.process_time() < 0.5: pass" }, { timeout_s = 60 }))
    lu.assertTrue(assert(sb:usage()).oom_kills >= 1)
  end
end

-- A crowd that ends keeps its cgroups for the next one until few are left.
function M.test_kept_cgroups_are_as_few_as_those_alive_allow()
  local pid = require "agentbox.sys.os".pid()
  sys.forget()
  local before = census.cgroups(pid)
  create():close()
  local each = census.cgroups(pid) - before
  lu.skipIf(each == 0, "cgroups are new each time here")
  local crowd = {}
  for i = 1, 60 do crowd[i] = create() end
  for i = 1, 50 do crowd[i]:close() end
  lu.assertEquals(census.cgroups(pid), before + 60 * each)
  for i = 51, 60 do crowd[i]:close() end
  lu.assertEquals(census.cgroups(pid), before + 32 * each)
  sys.forget()
  lu.assertEquals(census.cgroups(pid), before)
end

local function kill_zygote()
  local pid = require "agentbox.sys.os".pid()
  for _, entry in ipairs(assert(ab.fs.list "/proc")) do
    local stat = entry.name:find "^%d+$" and ab.fs.read("/proc/" .. entry.name .. "/stat") or ""
    if stat:match "^%d+ %((.*)%) %a" == "agentbox-zygote" and tonumber(stat:match "^%d+ %b() %a (%d+)") == pid then
      os.execute("kill -9 " .. entry.name)
      return
    end
  end
  error "there is no zygote"
end

-- A sandbox that lives on keeps its range of user ids to itself.
function M.test_another_zygote_gives_other_user_ids()
  local before <close> = create()
  kill_zygote()
  -- What is asked for in the moment of its death is an error that says to try again.
  local after <close> = ab.sandbox.create { limits = LIMITS } or create()
  lu.skipIf(before._raw:user_count() ~= 65536 or before._raw:ids() < 0x70000000, "no ranges of user ids")
  lu.assertNotEquals(after._raw:ids(), (before._raw:ids()))
end

-- Limits are kept whatever the one before had.
function M.test_limits_are_those_that_were_asked_for()
  lu.skipIf(not (has.memory and has.pids), "no controllers")
  for _ = 1, 3 do
    for _, memory_mb in ipairs { 64, 256 } do
      local sb <close> = assert(ab.sandbox.create { limits = { memory_mb = memory_mb, pids_limit = memory_mb // 4 } })
      lu.assertEquals(assert(sb:exec({ "python3", "-c", "x = b'x' * (120 << 20)" }, { timeout_s = 60 })).oom, memory_mb == 64)
      assert(sb:exec("for i in $(seq 100); do sleep 1000 & done", { timeout_s = 60 }))
      lu.assertTrue(assert(sb:usage()).pids <= memory_mb // 4)
    end
  end
end

return M
