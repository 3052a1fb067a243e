--- The servers of a model: how many calls each gets, who goes where, what happens when one is down.
local async = require "agentbox.async"
local budget = require "agentbox.budget"
local fiber = require "agentbox.sys.fiber"
local lu = require "luaunit"
local places = require "agentbox.models.places"
local rate = require "agentbox.models.rate"
local time = require "agentbox.time"

local M = {}

local fakellm = dofile((debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or ".") .. "/../support/fakellm.lua")

local function open(opts)
  local all = { model = "m", retry_base_s = 0.005, retry_cap_s = 0.05, max_tries = 20 }
  for key, value in pairs(opts) do all[key] = value end
  return require "agentbox.model".open(all)
end

local function ask(m, session) return m:complete { messages = { { role = "user", content = "hi" } }, session = session } end

local function many(n, fn)
  local list = {}
  for i = 1, n do list[i] = i end
  return async.each(list, fn)
end

-- ---------------------------------------------------------------- how many

function M.test_B82_too_many_requests_narrow_the_gate_and_it_grows_again()
  local inside, peak, width = 0, 0, 6
  local ps = places.new({ "http://a" }, { limit = 64 })
  local refused, full = 0, false
  local function call()
    while true do
      local turn <close> = assert(ps:enter { session = "s" })
      inside = inside + 1
      local too_many = inside > width
      peak = math.max(peak, inside)
      full = full or inside == 64
      while not full do async.yield() end -- before any is answered the gate lets in as many as it may
      async.sleep(too_many and 0.001 or 0.02)
      inside = inside - 1
      if not too_many then return turn:done "ok" end
      refused = refused + 1
      turn:done "busy"
    end
  end
  many(300, call)
  local narrow = ps:list()[1]
  lu.assertEquals(peak, 64)
  lu.assertTrue(narrow.max < 32, narrow.max)
  lu.assertTrue(narrow.narrowed >= 1)
  width = 1000
  local before = refused
  many(1500, call)
  lu.assertTrue(ps:list()[1].max > narrow.max, ps:list()[1].max)
  lu.assertEquals(refused, before)
  lu.assertEquals({ ps:list()[1].running, ps:list()[1].waiting, ps.waiting }, { 0, 0, 0 })
end

function M.test_a_fixed_gate_is_never_exceeded_nor_widened()
  local ps, inside, peak = places.new({ "http://a" }, { limit = 5, adaptive = false }), 0, 0
  many(60, function(i)
    local turn <close> = assert(ps:enter {})
    inside = inside + 1
    peak = math.max(peak, inside)
    async.sleep(0.001)
    inside = inside - 1
    turn:done(i % 3 == 0 and "busy" or "ok")
  end)
  lu.assertEquals({ peak, ps:list()[1].max, ps:list()[1].narrowed }, { 5, 5, 0 })
end

function M.test_slow_answers_mean_too_much_when_a_latency_is_wanted()
  local ps = places.new({ "http://a" }, { limit = 20, target_latency_s = 0.03 })
  many(60, function()
    local turn <close> = assert(ps:enter {})
    async.sleep(0.005 * turn.place.gate.running)
    turn:done "ok"
  end)
  lu.assertTrue(ps:list()[1].max < 20, ps:list()[1].max)
end

function M.test_nothing_leaves_before_what_the_server_said()
  local ps = places.new({ "http://a" }, {})
  local turn = assert(ps:enter {})
  turn:done("busy", { after_s = 0.2 })
  turn:release()
  local began = time.monotonic()
  local again <close> = assert(ps:enter {})
  lu.assertTrue(time.monotonic() - began >= 0.199)
  lu.assertTrue(again.waited_s >= 0.199)
end

function M.test_the_rollouts_clock_stands_still_in_the_queue()
  local ps = places.new({ "http://a" }, { limit = 1 })
  local first = assert(ps:enter {})
  local mine = budget.new { episode_timeout_s = 0.1, step_timeout_s = 1 }
  local ended
  local waiting = fiber.spawn(function()
    mine.on_move = function(at) fiber.current():set_deadline(at) end
    fiber.current():set_deadline(mine.deadline)
    local turn <close> = assert(ps:enter { clock = mine })
    ended = { turn.waited_s >= 0.3, mine:left_s() > 0.01, mine:over() }
  end)
  async.sleep(0.35)
  first:release()
  lu.assertTrue(waiting:join())
  lu.assertEquals(ended, { true, true })
end

-- ---------------------------------------------------------------- a budget

function M.test_a_budget_a_minute_is_kept()
  local bucket, began, taken = rate.new(6000), time.monotonic(), 0 -- 100 a second, 100 at once
  while taken < 150 do
    local wait = bucket:wait_s()
    if wait > 0 then async.sleep(wait) end
    bucket:take(1)
    taken = taken + 1
  end
  local took = time.monotonic() - began
  lu.assertTrue(took >= 0.49, took)
  bucket:take(200) -- overdrawn: the next one waits
  lu.assertTrue(bucket:wait_s() > 1.9)
end

function M.test_tokens_are_settled_by_what_was_used()
  local ps = places.new({ "http://a" }, { tokens_per_minute = 60000 }) -- 1000 a second, 1000 at once
  local turn = assert(ps:enter { bytes = 400 })
  turn:done("ok", { tokens = 1500 })
  turn:release()
  local began = time.monotonic()
  local again <close> = assert(ps:enter { bytes = 4 })
  lu.assertTrue(time.monotonic() - began >= 0.4)
  again:done("ok", { tokens = 1 })
end

-- ---------------------------------------------------------------- where

function M.test_B88_sessions_stay_where_they_are_and_are_spread()
  local ps = places.new({ "http://a", "http://b", "http://c" }, {})
  local where = {}
  for round = 1, 3 do
    for i = 1, 30 do
      local turn <close> = assert(ps:enter { session = "s" .. i })
      where[i] = where[i] or turn.place
      lu.assertEquals(turn.place.url, where[i].url, ("session %d in round %d"):format(i, round))
      turn:done "ok"
    end
  end
  for _, one in ipairs(ps:list()) do lu.assertEquals(one.sessions, 10) end
  for i = 1, 30 do ps:forget("s" .. i) end
  for _, one in ipairs(ps:list()) do lu.assertEquals(one.sessions, 0) end
end

function M.test_a_server_that_is_down_is_left_tried_by_one_and_taken_back()
  local ps = places.new({ "http://a", "http://b" }, {})
  local down = true
  local to = { ["http://a"] = 0, ["http://b"] = 0 }
  local function call(i)
    local failed
    while true do
      local turn <close> = assert(ps:enter { session = "s" .. i, failed = failed })
      to[turn.place.url] = to[turn.place.url] + 1
      async.sleep(0.001)
      if turn.place.url == "http://b" or not down then return turn:done "ok" end
      failed = turn.place
      turn:done "bad"
    end
  end
  many(200, call)
  lu.assertTrue(ps:list()[1].down)
  lu.assertTrue(to["http://a"] <= 110, to["http://a"])
  local before = to["http://a"]
  many(100, call)
  lu.assertTrue(to["http://a"] - before <= 2, "sessions go where somebody is")
  down = false
  async.sleep(0.6)
  for i = 1000, 1010 do call(i) end
  lu.assertTrue(to["http://b"] > 0)
end

function M.test_one_call_at_a_time_tries_the_only_server()
  local states = {}
  local ps = places.new({ "http://a" }, { on_state = function(_, state) states[#states + 1] = state end })
  local until_, inside, peak, probes = time.monotonic() + 0.8, 0, 0, 0
  many(100, function(i)
    while true do
      local turn <close> = assert(ps:enter { session = "s" .. i })
      if turn.place.down then
        inside, probes = inside + 1, probes + 1
        peak = math.max(peak, inside)
      end
      async.sleep(0.002)
      if turn.place.down and turn._probe then inside = inside - 1 end
      if time.monotonic() > until_ then return turn:done "ok" end
      turn:done "bad"
    end
  end)
  lu.assertEquals({ states[1], states[#states], peak }, { "down", "up", 1 })
  lu.assertTrue(probes >= 1 and probes <= 6, probes)
end

function M.test_whoever_tries_a_server_and_is_cancelled_leaves_it_to_the_next()
  local ps = places.new({ "http://a" }, {})
  for _ = 1, 5 do
    local turn <close> = assert(ps:enter {})
    turn:done "bad"
  end
  lu.assertTrue(ps:list()[1].down)
  local first = async.spawn(function()
    local _ <close> = assert(ps:enter {})
    async.sleep(60)
  end)
  async.sleep(0.7)
  local second = async.spawn(function()
    local turn <close> = assert(ps:enter {})
    turn:done "ok"
    return true
  end)
  first:cancel()
  lu.assertEquals({ second:join(10) }, { true, true })
  lu.assertFalse(ps:list()[1].down)
end

-- ---------------------------------------------------------------- with a server

function M.test_B82_a_storm_of_429_ends_and_is_seen()
  local steps = {}
  for i = 1, 40 do steps[i] = { status = 429, retry_after = i % 2 == 0 and 0.05 or nil } end
  local fake = fakellm.script { steps = steps, shared = true, ["then"] = "done" }
  local m = open { base_url = fake.url, limit = 3 }
  local seen = 0
  local clock = async.spawn(function()
    while true do
      local stats = m:stats()
      seen = math.max(seen, stats.waiting + stats.held)
      async.sleep(0.005)
    end
  end)
  many(60, function(i) lu.assertEquals(assert(ask(m, "s" .. i)).message.content, "done") end)
  clock:cancel()
  lu.assertTrue(seen > 0)
  local place = m:stats().places[1]
  lu.assertTrue(place.narrowed > 0)
  lu.assertEquals({ place.running, place.waiting, m:stats().waiting, m:stats().held }, { 0, 0, 0, 0 })
end

function M.test_several_addresses_and_a_dead_one()
  local fake = fakellm.script { "one", "two", "three" }
  local m = open { base_urls = { "http://127.0.0.1:9/v1", fake.url }, max_tries = 3, limit = 2 }
  many(12, function(i) assert(ask(m, "s" .. i)) end)
  lu.assertEquals(#fake.log(), 12)
  local list = m:stats().places
  lu.assertEquals({ list[1].down, list[2].down }, { true, false })
end

return M
