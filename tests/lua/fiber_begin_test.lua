--- A child's first turn inside of its parent's: Fiber:begin.
local fiber = require "agentbox.sys.fiber"
local lu = require "luaunit"
local time = require "agentbox.time"

local M = {}

function M.test_a_child_that_does_not_wait_has_ended()
  local child = fiber.spawn(function(a, b) return a + b, fiber.current() end, 1, 2)
  lu.assertEquals(child:status(), "ready")
  lu.assertTrue(child:begin())
  lu.assertEquals(child:status(), "done")
  local ok, sum, who = child:join()
  lu.assertEquals({ ok, sum }, { true, 3 })
  lu.assertTrue(who == child and fiber.current() ~= child)
end

function M.test_a_child_that_waits_goes_on_later()
  local child = fiber.spawn(function() return (fiber.park()) end)
  lu.assertFalse(child:begin())
  lu.assertEquals(child:status(), "waiting")
  child:wake "woken"
  lu.assertEquals({ child:join() }, { true, "woken" })
end

function M.test_a_child_that_raises_fails_alone()
  local child = fiber.spawn(function() error "broken" end)
  child:begin()
  lu.assertEquals(child:status(), "failed")
  local ok, problem = child:join()
  lu.assertFalse(ok)
  lu.assertStrContains(problem.msg, "broken")
end

function M.test_one_begins_once_and_not_after_a_cancel()
  local runs = 0
  local child = fiber.spawn(function() runs = runs + 1; fiber.park() end)
  child:begin()
  child:begin()
  lu.assertEquals({ runs, child:status() }, { 1, "waiting" })
  child:cancel()
  child:join()
  local late = fiber.spawn(function() runs = runs + 1 end)
  late:cancel()
  late:begin()
  late:join()
  lu.assertEquals({ runs, late:status() }, { 1, "failed" })
end

function M.test_a_turn_that_has_lasted_begins_nothing_inside()
  fiber.yield()
  local began = time.monotonic()
  while time.monotonic() - began < 0.002 do end -- luacheck: ignore
  local child = fiber.spawn(function() end)
  child:begin()
  lu.assertEquals(child:status(), "ready")
  lu.assertTrue(child:join())
end

local function chain(depth)
  if depth == 0 then return 0 end
  local child = fiber.spawn(chain, depth - 1)
  child:begin()
  return 1 + select(2, child:join())
end

function M.test_turns_inside_of_turns_are_bounded()
  lu.assertEquals(chain(300), 300)
end

function M.test_a_child_without_end_is_sliced_and_pays_itself()
  local others, child = 0, fiber.spawn(load "while true do end")
  local other = fiber.spawn(function()
    while true do
      others = others + 1
      fiber.yield()
    end
  end)
  child:limit(nil, 0.1)
  child:begin()
  local ok, problem = child:join()
  lu.assertEquals({ ok, problem.code }, { false, "limit" })
  lu.assertTrue(others > 1)
  other:cancel()
  other:join()
end

function M.test_a_child_over_its_memory_fails_alone()
  local kept
  local child = fiber.spawn(function() kept = ("x"):rep(8 << 20) end)
  child:limit(1 << 20)
  child:begin()
  local ok, problem = child:join()
  lu.assertEquals({ ok, problem.code, kept }, { false, "nomem", nil })
  lu.assertEquals(#("x"):rep(8 << 20), 8 << 20) -- the parent has its own ceiling again
end

function M.test_a_parent_that_its_child_cancels_hears_of_it_where_it_waits()
  local went_on = false
  local parent = fiber.spawn(function()
    local me = fiber.current()
    local child = fiber.spawn(function() me:cancel() end)
    child:begin()
    went_on = child:status() == "done"
    fiber.park()
  end)
  local ok, problem = parent:join()
  lu.assertEquals({ ok, problem.code, went_on }, { false, "cancelled", true })
end

return M
