--- Runs every text of attacks.lua in a sandbox that has all limits, and looks at the host afterwards.
local ab = require "agentbox"
local attacks = dofile((arg[0]:match "^(.*/)" or "") .. "attacks.lua")
local baits = dofile((arg[0]:match "^(.*/)" or "./") .. "../support/bait.lua")
local lu = require "luaunit"
local sys = require "agentbox.sys.sandbox"

local M = {}

local LIMITS = { memory_mb = 512, pids_limit = 256, cpu_count = 1, disk_mb = 256, inodes = 65536 }

local host

local function open_host(attack)
  host = baits.open()
  if not attack.run:find "@PORT@" and not attack.run:find "@SOCKET@" then return end
  host.box = assert(ab.sandbox.create { backend = "none" })
  baits.serve(host, host.box)
end

local function check(attack, out)
  local where = ("%d %s: exit %d\n%s%s"):format(attack.n, attack.title, out.exit_code, out.stdout:sub(1, 500),
    out.stderr:sub(1, 500))
  local said = out.stdout .. out.stderr
  if attack.want then lu.assertTrue(said:find(attack.want) ~= nil, where) end
  if attack.never then lu.assertNil(said:find(baits.fill(host, attack.never)), where) end
  lu.assertNil(said:find("CANARY", 1, true), where)
  lu.assertEquals(out.timed_out, attack.timed_out or false, where)
  if attack.truncated then lu.assertTrue(out.truncated, where) end
  if attack.oom and sys.probe().cgroup.memory then lu.assertTrue(out.oom, where) end
end

local function run(attack)
  if attack.unlimited and not sys.probe().cgroup.memory then return end
  local sb <close> = assert(ab.sandbox.create { limits = LIMITS })
  if attack.users and sb._raw:user_count() == 1 then return end
  local out, problem = sb:exec(baits.text(host, attack), { timeout_s = attack.timeout_s or 60 })
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
  if host then
    baits.close(host)
    if host.box then host.box:close() end
  end
  host = nil
end

for _, attack in ipairs(attacks) do
  M[("test_%03d_%s"):format(attack.n, attack.title:gsub("[^%w]+", "_"))] = function()
    if attack.slow and os.getenv "AGENTBOX_TEST_SHORT" then return end
    open_host(attack)
    run(attack)
    lu.assertEquals(baits.look(host), host.before)
  end
end

return M
