-- Sandboxes by the hundred (20,000 with AGENTBOX_SOAK): after them the machine is as before.
local ab = require "agentbox"
local lu = require "luaunit"

local COUNT = os.getenv "AGENTBOX_SOAK" and 20000 or 300
local AT_ONCE = 8

local M = {}

local function numbers(count)
  local list = {}
  for i = 1, count do list[i] = i end
  return list
end

-- What could pile up, as counts. Ours only: other engines may be at work.
local function census()
  local children, fds = 0, #assert(ab.fs.list "/proc/self/fd")
  local pid = require "agentbox.sys.os".pid()
  for _, entry in ipairs(assert(ab.fs.list "/proc")) do
    local stat = entry.name:find "^%d+$" and ab.fs.read("/proc/" .. entry.name .. "/stat")
    if stat and tonumber(stat:match "^%d+ %b() %a (%d+)") == pid then children = children + 1 end
  end
  local mounts = 0
  for line in assert(ab.fs.read "/proc/self/mountinfo"):gmatch "[^\n]+" do
    if line:find("agentbox", 1, true) then mounts = mounts + 1 end
  end
  return { children = children, descriptors = fds, mounts = mounts }
end

local function use(i)
  local sb <close> = assert(ab.sandbox.create { image = "host", network = "none", limits = { memory_mb = 128, pids_limit = 32 } })
  assert(sb:write("n", tostring(i)))
  local out = assert(sb:exec("cat n; sleep 600 & exit 3", { timeout_s = 60 }))
  lu.assertEquals(out.stdout, tostring(i))
  lu.assertEquals(out.exit_code, 3)
end

function M.test_nothing_piles_up()
  ab.async.each(numbers(20), use, { limit = AT_ONCE }) -- what is made once is made by now
  collectgarbage()
  local before = census()
  ab.async.each(numbers(COUNT), use, { limit = AT_ONCE })
  collectgarbage()
  local deadline, after = ab.time.monotonic() + 20, census()
  while after.children > before.children and ab.time.monotonic() < deadline do
    ab.async.sleep(0.05)
    after = census()
  end
  lu.assertEquals(after, before)
end

function M.test_memory_is_flat()
  local os_ = require "agentbox.sys.os"
  ab.async.each(numbers(100), use, { limit = AT_ONCE })
  collectgarbage()
  local before = os_.memory_rss()
  ab.async.each(numbers(COUNT), use, { limit = AT_ONCE })
  collectgarbage()
  -- A page table or an allocator's slack may grow a little; a leak of one kilobyte for each would not pass.
  lu.assertTrue(os_.memory_rss() - before < 4e6 + COUNT * 200, ("%.1f MB more"):format((os_.memory_rss() - before) / 1e6))
end

return M
