-- Sandboxes by the hundred (20,000 with AGENTBOX_SOAK): after them the machine is as before.
local ab = require "agentbox"
local lu = require "luaunit"

local census = dofile((arg[0]:gsub("soak/[^/]*$", "support/census.lua")))

local SOAK = os.getenv "AGENTBOX_SOAK"
local COUNT = SOAK and 20000 or 300
local IDLE = SOAK and 2000 or 100
local AT_ONCE = 8

--- What slab may have grown by in the end, which is not ours alone: a kilobyte for each of 20,000 and the allocator's slack.
local SLAB_BYTES = 48 << 20

local M = {}

local function numbers(count)
  local list = {}
  for i = 1, count do list[i] = i end
  return list
end

-- Kernel memory that nothing can reclaim.
local function slab_bytes()
  return tonumber(assert(ab.fs.read "/proc/meminfo"):match "SUnreclaim:%s+(%d+)") * 1024
end

-- Networks and cgroups are let go by the kernel after a while, and a few are kept for the next ones.
local function settled(fn, fine, patience_s)
  local deadline = ab.time.monotonic() + patience_s
  collectgarbage()
  while true do
    require "agentbox.sys.sandbox".forget() -- also what was put aside for reuse meanwhile
    local value = fn()
    if fine(value) or ab.time.monotonic() >= deadline then return value end
    ab.async.sleep(0.05)
  end
end

local function use(i)
  local sb <close> = assert(ab.sandbox.create { image = "host", network = "none", limits = { memory_mb = 128, pids_limit = 32 } })
  assert(sb:write("n", tostring(i)))
  local out = assert(sb:exec("cat n; sleep 600 & exit 3", { timeout_s = 60 }))
  lu.assertEquals(out.stdout, tostring(i))
  lu.assertEquals(out.exit_code, 3)
end

-- Whatever was still closing when the first count was taken may be gone by now; nothing may have come.
local function no_more(before)
  local function fine(now)
    for what, count in pairs(before) do
      if now[what] > count then return false end
    end
    return true
  end
  local now = settled(census.own, fine, 20)
  if not fine(now) then lu.assertEquals(now, before) end
end

function M.test_nothing_piles_up()
  ab.async.each(numbers(20), use, { limit = AT_ONCE }) -- what is made once is made by now
  local before, slab = settled(census.own, function() return true end, 0), slab_bytes()
  ab.async.each(numbers(COUNT), use, { limit = AT_ONCE })
  no_more(before)
  if not SOAK then return end
  local now = settled(slab_bytes, function(bytes) return bytes - slab < SLAB_BYTES end, 60)
  print(("slab after %d sandboxes: %+.1f MB"):format(COUNT, (now - slab) / 1e6))
  lu.assertTrue(now - slab < SLAB_BYTES, ("%.1f MB more slab"):format((now - slab) / 1e6))
end

-- Forks and snapshots as well: each leaves what it found.
function M.test_forks_pile_up_nothing()
  local function fork(i)
    local sb <close> = assert(ab.sandbox.create { limits = { memory_mb = 128, pids_limit = 32 } })
    assert(sb:write("n", tostring(i)))
    local kids <close> = assert(sb:fork(2))
    lu.assertEquals(assert(kids[2]:exec("cat n", { timeout_s = 60 })).stdout, tostring(i))
    lu.assertEquals(#assert(kids[1]:diff "image"), 1)
  end
  ab.async.each(numbers(20), fork, { limit = AT_ONCE })
  local before = settled(census.own, function() return true end, 0)
  ab.async.each(numbers(COUNT // 10), fork, { limit = AT_ONCE })
  no_more(before)
end

-- What is kept ready is claimed, thrown away and made again, and in the end nothing is left of the pool.
function M.test_a_pool_piles_up_nothing()
  local spec = { limits = { memory_mb = 128, pids_limit = 32 } }
  local function round(count)
    local pool <close> = ab.sandbox.pool { size = 16 }
    assert(pool:fill(spec))
    ab.async.each(numbers(count), function(i)
      local sb <close> = assert(pool:claim(spec))
      lu.assertEquals(assert(sb:exec("echo " .. i, { timeout_s = 60 })).stdout, i .. "\n")
    end, { limit = AT_ONCE })
  end
  round(20)
  local alone = settled(census.own, function(now) return now.sandboxes == 0 and now.cgroups == 0 end, 20)
  local slab = slab_bytes()
  round(COUNT)
  no_more(alone)
  if not SOAK then return end
  local now = settled(slab_bytes, function(bytes) return bytes - slab < SLAB_BYTES end, 60)
  print(("slab after %d from a pool: %+.1f MB"):format(COUNT, (now - slab) / 1e6))
  lu.assertTrue(now - slab < SLAB_BYTES, ("%.1f MB more slab"):format((now - slab) / 1e6))
end

-- Many that do nothing, all at once. The kernel keeps some of the slab that a crowd took, for the next one: so what
-- counts is that a second crowd needs no more.
local function crowd()
  local boxes = {}
  ab.async.each(numbers(IDLE), function(i)
    boxes[i] = assert(ab.sandbox.create { limits = { memory_mb = 128, pids_limit = 32 } })
  end, { limit = AT_ONCE })
  for i = 1, IDLE, IDLE // 20 do
    lu.assertEquals(assert(boxes[i]:exec("echo " .. i, { timeout_s = 60 })).stdout, i .. "\n")
  end
  ab.async.each(boxes, function(sb) sb:close() end, { limit = AT_ONCE })
end

function M.test_many_idle_ones()
  crowd()
  local before = settled(census.own, function() return true end, 0)
  local slab = SOAK and settled(slab_bytes, function() return false end, 10)
  crowd()
  no_more(before)
  if not SOAK then return end
  local now = settled(slab_bytes, function(bytes) return bytes - slab < SLAB_BYTES end, 60)
  print(("slab after %d idle ones, once more: %+.1f MB"):format(IDLE, (now - slab) / 1e6))
  lu.assertTrue(now - slab < SLAB_BYTES, ("%.1f MB more slab"):format((now - slab) / 1e6))
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
