--- Whose turn is next: src/lua/fiber.c.
local fiber = require "agentbox.sys.fiber"
local lu = require "luaunit"
local sandbox = require "agentbox.sandbox"
local time = require "agentbox.time"

local M = {}

local function join(list)
  for _, one in ipairs(list) do assert(one:join()) end
end

function M.test_one_who_was_woken_goes_before_those_who_were_ready()
  local trace = {}
  local function note(name) trace[#trace + 1] = name end
  local sleeper = fiber.spawn(function()
    fiber.park()
    note "woken"
  end)
  fiber.yield()
  join { sleeper, table.unpack {
    fiber.spawn(function() note "a"; sleeper:wake() end),
    fiber.spawn(function() note "b" end),
    fiber.spawn(function() note "c" end),
  } }
  lu.assertEquals(trace, { "a", "woken", "b", "c" })
end

function M.test_two_who_wake_each_other_do_not_starve_a_third()
  local rounds, seen = 0, nil
  local ping, pong
  local function play(other)
    while rounds < 10000 and not seen do
      rounds = rounds + 1
      other():wake()
      fiber.park()
    end
    other():wake()
  end
  ping = fiber.spawn(play, function() return pong end)
  pong = fiber.spawn(play, function() return ping end)
  fiber.yield()
  local third = fiber.spawn(function() seen = rounds end)
  join { third, ping, pong }
  lu.assertTrue(seen < 10000)
end

-- How many of 4,000 who would each be busy for a while were, until fn had come to its end.
local function busy_until(fn)
  local over, busy = false, 0
  local list = { fiber.spawn(function()
    fn()
    over = true
  end) }
  fiber.yield()
  for i = 1, 4000 do
    list[i + 1] = fiber.spawn(function()
      if over then return end
      busy = busy + 1
      local stop = time.monotonic() + 0.003
      while time.monotonic() < stop do end
    end)
  end
  join(list)
  return busy
end

function M.test_a_command_ends_while_many_are_ready()
  local box <close> = assert(sandbox.create { backend = "none" })
  lu.assertTrue(busy_until(function() assert(box:exec "true") end) < 4000)
end

-- Who sleeps for so long is not late by the turns of all who are ready.
function M.test_a_time_comes_while_many_are_ready()
  local busy = busy_until(function() fiber.sleep(0.001) end)
  lu.assertTrue(busy < 100, busy)
end

return M
