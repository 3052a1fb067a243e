--- traj stats: every number against one that was worked out another way.
local lu = require "luaunit"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local rand = require "agentbox.sys.rand"
local sketch = require "agentbox.store.sketch"
local stats = require "agentbox.store.stats"
local store = require "agentbox.store"
local made = dofile((arg[0]:gsub("lua/[^/]*$", "support/rollouts.lua")))

local M = {}

-- Of all ways to draw k of n rollouts, those with a success among them.
local function counted(n, c, k)
  local hits, all = 0, 0
  local function draw(at, left, hit)
    if left == 0 then
      all, hits = all + 1, hits + (hit and 1 or 0)
      return
    end
    for i = at, n - left + 1 do draw(i + 1, left - 1, hit or i <= c) end
  end
  draw(1, k, false)
  return hits / all
end

function M.test_pass_at_k_is_the_counted_chance()
  for n = 1, 9 do
    for c = 0, n do
      for k = 1, n do lu.assertAlmostEquals(stats.pass_at(n, c, k), counted(n, c, k), 1e-12) end
    end
  end
  lu.assertAlmostEquals(stats.pass_at(100000, 1, 1), 1e-5, 1e-12)
end

function M.test_quantiles_are_within_a_hundredth()
  local random, s, values = rand.new(3), sketch.new(), {}
  for i = 1, 20000 do
    values[i] = math.exp(random:float() * 20 - 10) * (random:float() < 0.3 and -1 or 1)
    s:add(values[i])
  end
  table.sort(values)
  for _, p in ipairs { 0.001, 0.1, 0.3, 0.5, 0.9, 0.99, 1 } do
    local exact = values[math.max(1, math.ceil(p * #values))]
    lu.assertTrue(math.abs(s:quantile(p) - exact) <= 0.0101 * math.abs(exact), ("%g: %g, not %g"):format(p, s:quantile(p), exact))
  end
  local same = sketch.new()
  for _, value in ipairs { 0, 0, 5, 5 } do same:add(value) end
  lu.assertEquals({ same:quantile(0.5), same:mean(), same.max }, { 0, 2.5, 5 })
  lu.assertAlmostEquals(same:quantile(0.51), 5, 0.05)
  lu.assertAlmostEquals(same:deviation(), math.sqrt(25 / 3), 1e-12)
  lu.assertNil(sketch.new():quantile(0.5))
  lu.assertNil(sketch.new():mean())
end

local dir

function M.setUp() dir = assert(fs.tmpdir "agentbox-stats") end

function M.tearDown() assert(fs.remove(dir, true)) end

local FAILED = {
  final_status = "failed", reward = { scored = true, value = 0.0, outcome = 0.0 },
}
local BROKEN = {
  status = "failed", final_status = "error", stop = { reason = "sandbox_error", class = "sandbox" }, reward = { scored = false },
}

local function write()
  local s <close> = assert(store.open(dir, { run_id = "r", agentbox_json = false }))
  local n = 0
  local function add(task, result, opts)
    n = n + 1
    local all = { id = "r-" .. n, task_id = task }
    for key, value in pairs(opts or {}) do all[key] = value end
    assert(s:append(made.sample(all):finish(result)))
  end
  add "a"
  add("a", FAILED)
  add("a", BROKEN)
  add("a", nil, { attempt = 1 })
  add("b", FAILED, { model = "other" })
  assert(s:group { id = "g", members = { "r-1", "r-2" } })
end

function M.test_a_run()
  write()
  local report = assert(stats.of(dir)):report { k = { 1, 2, 4 }, prices = {
    fixer = { prompt = 10, completion = 100 }, ["oth*"] = { prompt = 1, completion = 1 },
  } }
  lu.assertEquals({ report.rollouts, report.tasks, report.groups, report.retries, report.scored, report.unscored }, { 5, 2, 1, 1, 4, 1 })
  lu.assertEquals(json.encode(report.by_status), '{"failed":2,"success":2,"error":1}')
  lu.assertEquals(json.encode(report.by_class), '{"sandbox":1}')
  lu.assertEquals(json.encode(report.reward.values), "[[0.0,2],[1.0,2]]")
  lu.assertAlmostEquals(report.reward.mean, 0.5, 1e-12)
  -- of task a 2 of 3 succeed, of task b none of 1
  lu.assertAlmostEquals(report.pass_at[1].rate, (2 / 3 + 0) / 2, 1e-12)
  lu.assertEquals({ report.pass_at[2].rate, report.pass_at[2].tasks }, { 1.0, 1 })
  lu.assertEquals({ report.pass_at[3].rate, report.pass_at[3].tasks }, { json.null, 0 })
  local fixer = report.models["fixer@12"]
  lu.assertEquals({ fixer.calls, fixer.prompt, fixer.completion }, { 8, 4 * 100, 4 * 13 })
  lu.assertAlmostEquals(fixer.cost, (400 * 10 + 52 * 100) / 1e6, 1e-12)
  lu.assertAlmostEquals(report.cost, fixer.cost + 113 / 1e6, 1e-12)
  lu.assertNil(report.unpriced)
  lu.assertEquals({ report.time_ms.total_ms, report.time_ms.boot.sum, report.time_ms.score.sum }, { 5 * 3200, 5 * 900.0, 5 * 500.0 })
  lu.assertEquals(report.time_ms.other_ms, 5 * (3200 - 900 - 100 - 500.0))
end

function M.test_cached_tokens_and_models_without_a_price()
  write()
  local statistics = assert(stats.of(dir))
  local sum = statistics.models["fixer@12"]
  sum.cached = 300
  local report = statistics:report { prices = { ["fixer@12"] = { prompt = 10, completion = 0, cached = 1 } } }
  lu.assertAlmostEquals(report.cost, (100 * 10 + 300 * 1) / 1e6, 1e-12)
  lu.assertEquals(json.encode(report.unpriced), '["other"]')
  lu.assertNil(statistics:report().cost)
end

function M.test_many_different_rewards_are_not_listed()
  do
    local s <close> = assert(store.open(dir, { run_id = "r", agentbox_json = false }))
    for n = 1, 40 do
      assert(s:append(made.sample({ id = "r-" .. n }):finish { reward = { scored = true, value = n / 64 } }))
    end
  end
  local reward = assert(stats.of(dir)):report().reward
  lu.assertNil(reward.values)
  lu.assertAlmostEquals(reward.p50, 20 / 64, 0.01 * 20 / 64)
end

function M.test_other_programs_records()
  local doc = json.encode((require "agentbox.formats.agentbox".convert(made.sample({}):finish())))
  assert(fs.write(dir .. "/x.json", doc))
  local report = assert(stats.of(dir)):report()
  lu.assertEquals({ report.rollouts, report.scored, report.by_status.success }, { 1, 1, 1 })
end

function M.test_damage_and_nothing()
  local none, problem = stats.of(dir)
  lu.assertNil(none)
  lu.assertEquals(problem.code, "notfound")
  assert(fs.write(dir .. "/bad.jsonl", "{\n"))
  none, problem = stats.of(dir .. "/bad.jsonl")
  lu.assertNil(none)
  lu.assertEquals(problem.code, "parse")
end

return M
