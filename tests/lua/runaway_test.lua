-- What a script that does not end, or does not fit, can do to the others: nothing.
local async = require "agentbox.async"
local fiber = require "agentbox.sys.fiber"
local fs = require "agentbox.fs"
local hash = require "agentbox.sys.hash"
local lu = require "luaunit"

local M = {}

function M:setUp() -- luacheck: ignore self
  if fs.read "/proc/self/maps":find "libtsan" then
    require "agentbox.test".skip "ThreadSanitizer delivers signals in calls of libc only"
  end
end

-- Runs fn in a fiber with a CPU budget while a hundred others do their work; gives fn's error.
local function beside_others(fn, limits)
  local finished = 0
  limits = limits or { cpu_s = 0.1 }
  local bad = fiber.spawn(function()
    fiber.current():limit(limits.memory_bytes, limits.cpu_s)
    fn()
  end)
  async.scope(function(s)
    for _ = 1, 100 do
      s:spawn(function()
        for _ = 1, 3 do async.sleep(0.001) end
        finished = finished + 1
      end)
    end
  end)
  local ok, e = bad:join()
  lu.assertEquals(finished, 100)
  lu.assertFalse(ok)
  return e
end

function M.test_endless_loops_are_sliced_and_end_at_their_budget()
  local loops = {
    function() while true do end end,
    function() while true do pcall(function() while true do end end) end end,
    function() for _ in coroutine.wrap(function() while true do end end) do end end,
    function() while true do pcall(coroutine.wrap(function() while true do end end)) end end,
    function() while true do coroutine.wrap(function() coroutine.yield() end)() end end,
    function() while true do async.yield() end end,
    function() while true do pcall(error, "x") end end,
  }
  for i, loop in ipairs(loops) do
    local e = beside_others(loop)
    lu.assertEquals({ i, e.code }, { i, "limit" })
  end
end

function M.test_budget_covers_children()
  local e = beside_others(function() async.scope(function() while true do end end) end)
  lu.assertEquals(e.code, "limit")
end

function M.test_what_cannot_be_sliced_is_ended()
  local e = beside_others(function()
    while true do pcall(table.sort, { 1, 2, 3 }, function() while true do end end) end
  end, { cpu_s = 1000 })
  lu.assertEquals(e.code, "limit")
  lu.assertStrContains(e.msg, "cannot be interrupted")
end

function M.test_memory_hog_fails_alone()
  local e = beside_others(function()
    local hoard = {}
    while true do hoard[#hoard + 1] = ("x"):rep(10000) .. #hoard end
  end, { memory_bytes = 32 << 20 })
  lu.assertEquals(e.code, "nomem")
  e = beside_others(function() return ("x"):rep(1 << 30) end, { memory_bytes = 32 << 20 })
  lu.assertEquals(e.code, "nomem")
end

-- A million frames: neither the slices nor the traceback may take more than their share.
function M.test_recursion_without_end_fails_alone()
  local function deep() return 1 + deep() end
  local e = beside_others(function()
    local ok, text = xpcall(deep, debug.traceback)
    lu.assertFalse(ok)
    lu.assertTrue(#text < 4000)
    deep()
  end, { cpu_s = 60 })
  lu.assertStrContains(e.msg, "stack overflow")
  lu.assertStrContains(e.traceback, "more than 2000 levels")
end

-- Lua tables have no finalizers; those of the engine's own objects can be watched.
local function watch_finalizers(fn)
  local mt = getmetatable(hash.hasher())
  local was = mt.__gc
  mt.__gc = function(object)
    was(object)
    fn()
  end
  return setmetatable({}, { __close = function() mt.__gc = was end })
end

-- On a stack that is full every finalizer fails, after the whole stack was copied twice for it.
function M.test_finalizers_do_not_run_on_a_full_stack()
  collectgarbage()
  local made, ran, inside = 0, 0, 0
  local watched <close> = watch_finalizers(function() -- luacheck: ignore
    ran = ran + 1
    if fiber.current() then inside = inside + 1 end
  end)
  local function deep() return 1 + deep() end
  beside_others(function()
    for _ = 1, 2000 do
      made = made + 1
      hash.hasher()
    end
    deep()
  end, { cpu_s = 60 })
  collectgarbage()
  lu.assertTrue(ran >= made) -- and the one that the metatable was read from
  lu.assertEquals({ made, inside }, { 2000, 0 })
end

-- Hooks are off in a finalizer: one that loops could not be stopped.
function M.test_a_table_takes_no_finalizer()
  local loop = { __gc = function() while true do end end }
  lu.assertErrorMsgContains("<close>", setmetatable, {}, loop)
  lu.assertErrorMsgContains("<close>", debug.setmetatable, {}, loop)
  lu.assertEquals(getmetatable(setmetatable({}, { __index = loop })).__index, loop)
  lu.assertErrorMsgContains("protected", setmetatable, setmetatable({}, { __metatable = 1 }), {})
end

-- At the end of a state everything is finalized, in an order that a finalizer cannot know.
function M.test_what_is_finalized_says_so()
  local hasher = hash.hasher()
  getmetatable(hasher).__gc(hasher)
  lu.assertErrorMsgContains("closed", hasher.update, hasher, "x")
  lu.assertErrorMsgContains("closed", hasher.hex, hasher)
  local sieve = require "agentbox.sys.sieve".new(10)
  getmetatable(sieve).__gc(sieve)
  lu.assertErrorMsgContains("closed", sieve.add, sieve, "x")
  lu.assertErrorMsgContains("closed", sieve.has, sieve, "x")
end

function M.test_collectgarbage_is_that_of_lua()
  local dropped = setmetatable({ {} }, { __mode = "v" })
  collectgarbage()
  lu.assertNil(dropped[1])
  lu.assertEquals(collectgarbage "isrunning", true)
  lu.assertEquals(collectgarbage "stop", 0)
  lu.assertEquals(collectgarbage "isrunning", false)
  async.yield()
  lu.assertEquals(collectgarbage "isrunning", false)
  lu.assertEquals(collectgarbage "restart", 0)
  local steps = 0
  repeat steps = steps + 1 until collectgarbage("step", 1000) or steps == 100000
  lu.assertTrue(steps < 100000)
  lu.assertTrue(collectgarbage "count" > 100)
  lu.assertErrorMsgContains("invalid option", collectgarbage, "all")
  local inner
  local watched <close> = watch_finalizers(function() -- luacheck: ignore
    inner = { collectgarbage "step", collectgarbage() }
  end)
  hash.hasher()
  collectgarbage()
  lu.assertNotNil(inner)
end

function M.test_insert_and_remove_are_those_of_lua()
  local t = { "b", "d" }
  table.insert(t, "e")
  table.insert(t, 1, "a")
  table.insert(t, 3, "c")
  lu.assertEquals(t, { "a", "b", "c", "d", "e" })
  lu.assertEquals({ table.remove(t), table.remove(t, 1), table.remove(t, 2), table.remove(t, 3) }, { "e", "a", "c" })
  lu.assertEquals(t, { "b", "d" })
  lu.assertEquals(select("#", table.remove {}), 1)
  lu.assertNil(table.remove({}, 0))
  lu.assertErrorMsgContains("out of bounds", table.insert, t, 4, "x")
  lu.assertErrorMsgContains("out of bounds", table.remove, t, 4)
  lu.assertErrorMsgContains("wrong number", table.insert, t)
  lu.assertErrorMsgContains("table expected", table.insert, 1, 2)
  local seen = {}
  local proxy = setmetatable({}, { __len = function() return 2 end, __index = t, __newindex = function(_, k, v) seen[k] = v end })
  table.insert(proxy, 1, "a")
  lu.assertEquals(seen, { "a", "b", "d" })
end

-- What a fiber left behind is collected although nothing is collected while it runs.
function M.test_garbage_does_not_pile_up()
  local before = collectgarbage "count"
  for _ = 1, 200 do
    local f = fiber.spawn(function() return #("x"):rep(1 << 20) end)
    f:join()
  end
  lu.assertTrue(collectgarbage "count" - before < 100 << 10)
end

function M.test_tracebacks_are_those_of_lua()
  local co = coroutine.create(function() coroutine.yield() end)
  coroutine.resume(co)
  lu.assertStrContains(debug.traceback(co), "in function 'coroutine.yield'")
  lu.assertStrContains(debug.traceback(co, "said"), "said\nstack traceback:\n\t")
  lu.assertStrContains(debug.traceback("said", 1), "runaway_test.lua:")
  lu.assertEquals(debug.traceback({}) ~= nil, true)
  lu.assertStrContains(debug.traceback(), "stack traceback:")
end

function M.test_memory_comes_back()
  local f = fiber.spawn(function()
    fiber.current():limit(32 << 20)
    for _ = 1, 20 do
      local ok, msg = pcall(string.rep, "x", 64 << 20)
      assert(not ok and msg == "not enough memory")
    end
    local fine = ("x"):rep(8 << 20)
    return #fine
  end)
  lu.assertEquals({ f:join() }, { true, 8 << 20 })
end

function M.test_a_busy_fiber_can_be_cancelled()
  local closed = false
  local f = fiber.spawn(function()
    local guard <close> = setmetatable({}, { __close = function() closed = true end }) -- luacheck: ignore guard
    while true do end
  end)
  for _ = 1, 3 do async.yield() end
  f:cancel()
  local ok, e = f:join()
  lu.assertFalse(ok)
  lu.assertEquals(e.code, "cancelled")
  lu.assertTrue(closed)
end

function M.test_sethook_is_refused()
  lu.assertErrorMsgContains("not available", debug.sethook, print, "c")
end

-- ---- whole processes ----

-- Runs a script in an engine of its own; gives its exit status and what it printed.
local function run(text, signals)
  local dir <close> = setmetatable({ assert(fs.tmpdir "agentbox-run-") }, { __close = function(self)
    fs.remove(self[1], true)
  end })
  local base = dir[1]
  assert(fs.write(base .. "/s.lua", text))
  assert(os.execute(("(cd %s; %s script s.lua >out 2>&1 & echo $! >pid; wait $!; echo $? >rc) &")
    :format(base, assert(fs.readlink "/proc/self/exe"))))
  for _, signal in ipairs(signals or {}) do
    while not (fs.read(base .. "/out") or ""):find(signal.after, 1, true) do async.sleep(0.005) end
    os.execute(("kill -%s $(cat %s/pid)"):format(signal.name, base))
  end
  while (fs.read(base .. "/rc") or "") == "" do async.sleep(0.005) end
  return tonumber(fs.read(base .. "/rc")), fs.read(base .. "/out")
end

local unwinding = [[
local async = require "agentbox".async
local guard <close> = setmetatable({}, { __close = function() async.sleep(0.001) print "unwound" end })
]]

function M.test_os_exit_unwinds_from_any_fiber()
  local rc, out = run(unwinding .. "async.scope(function(s) s:spawn(function() os.exit(5) end) async.sleep(1000) end)")
  lu.assertEquals({ rc, out }, { 5, "unwound\n" })
end

function M.test_interrupt_unwinds_with_130()
  for _, name in ipairs { "INT", "TERM" } do
    local rc, out = run(unwinding .. "print 'ready' async.sleep(1000)", { { after = "ready", name = name } })
    lu.assertEquals(rc, 130)
    lu.assertStrContains(out, "unwound")
  end
end

function M.test_second_interrupt_ends_at_once()
  local rc, out = run([[
local async = require "agentbox".async
local guard <close> = setmetatable({}, { __close = function() print "closing" async.sleep(1000) print "no" end })
print "ready"
async.sleep(1000)]], { { after = "ready", name = "INT" }, { after = "closing", name = "INT" } })
  lu.assertEquals({ rc, out }, { 130, "ready\nclosing\n" })
end

function M.test_deadlock_is_an_error_not_a_hang()
  local rc, out = run 'require "agentbox.sys.fiber".park()'
  lu.assertEquals(rc, 1)
  lu.assertStrContains(out, "deadlock")
end

function M.test_a_c_call_that_lasts_is_named_and_ends_the_engine()
  local rc, out = run "local mt = {} local t = setmetatable({}, mt) mt.__call = t\nt()"
  lu.assertEquals(rc, 70)
  lu.assertStrContains(out, "s.lua:2:")
end

function M.test_a_call_that_sleeps_is_named_and_goes_on()
  -- However late the watchdog has its turn: the call lasts until it has spoken.
  local rc, out = run "os.execute 'for i in $(seq 600); do grep -q nothing out && break; sleep 0.1; done'\nprint 'after'"
  lu.assertEquals(rc, 0)
  lu.assertStrContains(out, "s.lua:1: nothing else has run")
  lu.assertStrContains(out, "after")
end

-- A busy machine or a slow disk makes any call last: what the library does between two waits is atomic all the same.
function M.test_the_library_is_sliced_by_what_it_computes_not_by_the_clock()
  local order = {}
  local library = assert(load([[
    local order = ...
    os.execute "sleep 0.3"
    for i = 1, 20000 do order[i] = "library" end]], "@agentbox/a_test.lua"))
  local one, other = fiber.spawn(library, order), fiber.spawn(function() order[#order + 1] = "other" end)
  lu.assertTrue(one:join())
  lu.assertTrue(other:join())
  lu.assertEquals({ #order, order[20000], order[20001] }, { 20001, "library", "other" })
end

return M
