local async = require "agentbox.async"
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local lu = require "luaunit"

local M = {}

-- A value whose <close> handler notes that it ran, after a wait.
local function closer(log, name)
  return setmetatable({}, { __close = function()
    async.yield()
    log[#log + 1] = name
  end })
end

function M.test_all_keeps_order_and_runs_together()
  local started = 0
  local function wait_for_both(value)
    return function()
      started = started + 1
      while started < 2 do async.yield() end
      return value
    end
  end
  lu.assertEquals(async.all { wait_for_both "a", wait_for_both "b" }, { "a", "b" })
  lu.assertEquals(async.all {}, {})
end

function M.test_each_limits()
  local now, most = 0, 0
  local out = async.each({ 1, 2, 3, 4, 5, 6, 7 }, function(x, i)
    now = now + 1
    most = math.max(most, now)
    async.yield()
    now = now - 1
    return x * i
  end, { limit = 3 })
  lu.assertEquals(out, { 1, 4, 9, 16, 25, 36, 49 })
  lu.assertEquals(most, 3)
  lu.assertErrorMsgContains("unknown option 'limits'", async.each, {}, print, { limits = 1 })
  lu.assertErrorMsgContains("at least 1", async.each, {}, print, { limit = 0 })
end

function M.test_first_error_cancels_joins_and_is_raised_again()
  local log = {}
  local ok, e = pcall(async.scope, function(s)
    s:spawn(function()
      local guard <close> = closer(log, "kid") -- luacheck: ignore guard
      async.sleep(1000)
    end)
    s:spawn(function()
      async.yield()
      error "boom"
    end)
    local guard <close> = closer(log, "body") -- luacheck: ignore guard
    async.sleep(1000)
  end)
  lu.assertFalse(ok)
  lu.assertStrContains(tostring(e), "boom")
  lu.assertEquals(e.code, "defect")
  lu.assertStrContains(e.traceback, "async_test.lua")
  table.sort(log)
  lu.assertEquals(log, { "body", "kid" })
end

function M.test_error_values_cross_fibers_unchanged()
  local ok, e = pcall(async.all, { function() error(err.new("network", "refused", { host_name = "x" })) end })
  lu.assertFalse(ok)
  lu.assertTrue(err.is(e))
  lu.assertEquals({ e.code, e.msg, e.host_name }, { "network", "refused", "x" })
end

function M.test_scope_waits_for_what_it_started()
  local done = false
  local result = async.scope(function(s)
    s:spawn(function()
      async.yield()
      async.spawn(function() -- in the same scope, started late
        async.yield()
        done = true
      end)
    end)
    return "result"
  end)
  lu.assertEquals(result, "result")
  lu.assertTrue(done)
end

function M.test_cancel_of_the_owner_reaches_the_scope()
  local log = {}
  local owner = fiber.spawn(function()
    async.scope(function(s)
      s:spawn(function()
        local guard <close> = closer(log, "kid") -- luacheck: ignore guard
        async.sleep(1000)
      end)
      async.sleep(1000)
    end)
  end)
  for _ = 1, 5 do async.yield() end
  owner:cancel()
  local ok, e = owner:join()
  lu.assertFalse(ok)
  lu.assertEquals(e.code, "cancelled")
  lu.assertNil(e.cancel)
  lu.assertEquals(log, { "kid" })
end

function M.test_cancel_passes_pcall_once()
  local caught, after = nil, nil
  local f = fiber.spawn(function()
    local guard <close> = setmetatable({}, { __close = function() -- luacheck: ignore guard
      async.sleep(0) -- nothing is sticky: a handler may wait
      after = true
    end })
    caught = { pcall(async.sleep, 1000) }
  end)
  async.yield()
  lu.assertTrue(f:cancel(err.new("cancelled", "because")))
  lu.assertFalse(f:cancel())
  local ok, e = f:join()
  lu.assertFalse(ok)
  lu.assertEquals(e.msg, "because")
  lu.assertNil(caught)
  lu.assertTrue(after)
end

function M.test_cancel_passes_xpcall_coroutines_and_handlers()
  local seen = false
  local f = fiber.spawn(function()
    xpcall(function() async.sleep(1000) end, function(e)
      seen = true
      return e
    end)
    seen = true
  end)
  async.yield()
  f:cancel()
  lu.assertFalse(f:join())
  lu.assertFalse(seen)
end

function M.test_cancel_before_the_first_step_never_runs_the_body()
  local ran = false
  local f = fiber.spawn(function() ran = true end)
  f:cancel()
  local ok, e = f:join()
  lu.assertFalse(ok)
  lu.assertEquals(e.code, "cancelled")
  lu.assertFalse(ran)
end

function M.test_timeout()
  local log = {}
  local value, e = async.timeout(0.01, function()
    local guard <close> = closer(log, "closed") -- luacheck: ignore guard
    async.sleep(1000)
  end)
  lu.assertNil(value)
  lu.assertEquals(e.code, "timeout")
  lu.assertEquals(log, { "closed" })
  lu.assertEquals({ async.timeout(1000, function(a) return a, nil, 3 end, 1) }, { 1, nil, 3 })
  lu.assertErrorMsgContains("inner", async.timeout, 1000, function() error "inner" end)
end

function M.test_deadline_of_a_fiber()
  local f = fiber.spawn(async.sleep, 1000)
  f:set_deadline(0)
  local ok, e = f:join()
  lu.assertFalse(ok)
  lu.assertEquals(e.code, "timeout")
  lu.assertTrue(f:expired())
end

function M.test_race()
  local log = {}
  local a, b = async.race {
    function()
      local guard <close> = closer(log, "slow") -- luacheck: ignore guard
      async.sleep(1000)
    end,
    function()
      async.yield()
      return 1, 2
    end,
  }
  lu.assertEquals({ a, b, log[1] }, { 1, 2, "slow" })
  lu.assertErrorMsgContains("first", async.race, { function() error "first" end, function() async.sleep(1000) end })
end

function M.test_semaphore_is_fair_and_survives_cancel()
  local sem, order = async.semaphore(1), {}
  local first = sem:acquire()
  local function taker(name)
    return function()
      local permit <close> = sem:acquire() -- luacheck: ignore permit
      order[#order + 1] = name
    end
  end
  local a, b, c = fiber.spawn(taker "a"), fiber.spawn(taker "b"), fiber.spawn(taker "c")
  async.yield()
  b:cancel() -- it waits: its place is skipped
  first:release()
  first:release() -- twice is once
  a:join()
  b:join()
  c:join()
  lu.assertEquals(order, { "a", "c" })
  lu.assertEquals(sem:free(), 1)
end

function M.test_a_permit_handed_to_a_cancelled_fiber_is_not_lost()
  local sem = async.semaphore(1)
  local held = sem:acquire()
  local f = fiber.spawn(function()
    local permit <close> = sem:acquire() -- luacheck: ignore permit
    async.sleep(1000)
  end)
  async.yield()
  held:release() -- f is woken with the permit
  f:cancel()     -- and cancelled before its turn
  lu.assertFalse(f:join())
  lu.assertEquals(sem:free(), 1)
end

function M.test_semaphore_timeout_leaves_the_queue()
  local sem = async.semaphore(1)
  local held = sem:acquire()
  local permit, e = sem:acquire(0)
  lu.assertNil(permit)
  lu.assertEquals(e.code, "timeout")
  held:release()
  lu.assertEquals(sem:free(), 1)
end

function M.test_channel()
  local ch, got = async.channel(2), {}
  async.scope(function(s)
    s:spawn(function()
      for i = 1, 20 do assert(ch:send(i)) end
      ch:close()
    end)
    for value in ch:each() do got[#got + 1] = value end
  end)
  lu.assertEquals(#got, 20)
  lu.assertEquals({ got[1], got[20] }, { 1, 20 })
  local ok, e = ch:send(1)
  lu.assertNil(ok)
  lu.assertEquals(e.code, "cancelled")
  lu.assertNil((async.channel():receive(0)))
end

function M.test_locals_are_inherited_and_not_shared_back()
  local mine = fiber.current():locals()
  mine.colour = "red"
  local seen = {}
  fiber.spawn(function()
    local kid = fiber.current():locals()
    seen.before = kid.colour
    kid.colour = "blue"
    fiber.spawn(function() seen.grandchild = fiber.current():locals().colour end):join()
  end):join()
  lu.assertEquals(seen, { before = "red", grandchild = "blue" })
  lu.assertEquals(mine.colour, "red")
end

function M.test_where_waiting_is_refused()
  local function why(fn, ...) return tostring(select(2, pcall(fn, ...))) end
  lu.assertStrContains(why(coroutine.wrap(function() async.sleep(0) end)), "coroutine.wrap")
  lu.assertStrContains(why(table.sort, { 1, 2 }, function() async.sleep(0) end), "cannot wait here")
  local shown = setmetatable({}, { __tostring = function() async.sleep(0) end })
  lu.assertStrContains(why(tostring, shown), "cannot wait here")
  lu.assertStrContains(why(coroutine.yield), "outside a coroutine")
  lu.assertFalse(coroutine.isyieldable())
  local other = fiber.spawn(function() return coroutine.running() end)
  local _, co = other:join()
  lu.assertStrContains(why(coroutine.resume, co), "this coroutine is a fiber")
  lu.assertStrContains(why(coroutine.close, co), "this coroutine is a fiber")
  lu.assertEquals(coroutine.status(co), "dead")
  local waiting
  other = fiber.spawn(function()
    waiting = coroutine.running()
    async.sleep(0)
  end)
  async.yield()
  lu.assertStrContains(why(coroutine.resume, waiting), "this coroutine is a fiber")
  other:join()
end

function M.test_where_waiting_is_allowed()
  local t = setmetatable({}, { __index = function(_, k)
    async.yield()
    return k
  end })
  lu.assertEquals(t.x, "x")
  local n = 0
  for i in function(_, i)
    async.yield()
    i = (i or 0) + 1
    return i < 4 and i or nil
  end do n = n + i end
  lu.assertEquals(n, 6)
  lu.assertTrue((xpcall(async.yield, print)))
end

function M.test_coroutines_stay_plain_lua()
  local gen = coroutine.wrap(function(a)
    local b = coroutine.yield(a + 1)
    error("end " .. b)
  end)
  lu.assertEquals(gen(1), 2)
  lu.assertErrorMsgContains("end 5", gen, 5)
  local co = coroutine.create(function() error { "value" } end)
  local ok, e = coroutine.resume(co)
  lu.assertFalse(ok)
  lu.assertEquals(e, { "value" })
  lu.assertEquals({ coroutine.close(co) }, { false, e })
  lu.assertEquals({ coroutine.resume(co) }, { false, "cannot resume dead coroutine" })
  local closed
  local suspended = coroutine.create(function()
    local guard <close> = setmetatable({}, { __close = function() closed = true end }) -- luacheck: ignore guard
    coroutine.yield()
  end)
  coroutine.resume(suspended)
  lu.assertTrue(coroutine.close(suspended))
  lu.assertTrue(closed)
end


function M.test_join_and_park_time_out()
  lu.assertEquals({ fiber.spawn(fiber.park, 0):join() }, { true })
  local sleeper <close> = setmetatable({ fiber.spawn(async.sleep, 1000) }, { __close = function(self)
    self[1]:cancel()
    self[1]:join()
  end })
  lu.assertEquals({ sleeper[1]:join(0) }, {})
  lu.assertEquals(sleeper[1]:status(), "waiting")
end

function M.test_wake_reaches_only_who_is_parked()
  local f = fiber.spawn(function() return fiber.park() end)
  lu.assertFalse(f:wake "too early")
  async.yield()
  lu.assertTrue(f:wake("x", nil, "z"))
  lu.assertFalse(f:wake "too late")
  lu.assertEquals({ f:join() }, { true, "x", nil, "z" })
end

return M
