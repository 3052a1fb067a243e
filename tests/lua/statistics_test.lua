--- Statistics against published examples and exact arithmetic. tests/peers/scipy.sh compares with scipy.
local intervals = require "agentbox.stats.intervals"
local lu = require "luaunit"
local stats = require("agentbox").stats

local M = {}

local function near(value, expected, by) lu.assertAlmostEquals(value, expected, by or 5e-5) end

-- 1 - C(n-c,k)/C(n,k) by counting subsets.
local function by_counting(n, c, k)
  local hit, all = 0, 0
  for subset = 0, (1 << n) - 1 do
    local size = 0
    for i = 0, n - 1 do size = size + (subset >> i & 1) end
    if size == k then
      all = all + 1
      if subset & ((1 << c) - 1) ~= 0 then hit = hit + 1 end
    end
  end
  return hit / all
end

function M.test_C12_pass_at_k_is_the_share_of_the_subsets_with_a_success()
  for c = 0, 7 do
    for k = 1, 7 do near(stats.pass_at(7, c, k), by_counting(7, c, k), 1e-12) end
  end
  near(stats.pass_at(10, 3, 5), 1 - 21 / 252, 1e-12)
  lu.assertErrorMsgContains("1 <= k <= n", stats.pass_at, 3, 1, 4)
end

-- Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I, method 3.
function M.test_wilson_gives_the_intervals_that_Newcombe_printed()
  for _, row in ipairs { { 81, 263, 0.2553, 0.3662 }, { 15, 148, 0.0624, 0.1605 }, { 0, 20, 0, 0.1611 }, { 1, 29, 0.0061, 0.1718 } } do
    local low, high = stats.wilson(row[1], row[2])
    near(low, row[3])
    near(high, row[4])
  end
end

function M.test_the_normal_distribution_is_exact()
  near(intervals.normal_quantile(0.975), 1.959963984540054, 1e-10)
  near(intervals.normal_quantile(0.995), 2.5758293035489004, 1e-10)
  near(intervals.normal_cdf(-6), 9.865876450376946e-10, 1e-19)
  near(intervals.normal_cdf(1), 0.8413447460685429, 1e-13)
end

-- Darwin's maize: cross- less self-fertilised, in eighths of an inch, and Fisher's own count of the 32768 sums ("The
-- Design of Experiments", 1935, section 21): 863 as large on one side, 1726 on both.
local MAIZE = { 49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48 }

function M.test_the_permutation_test_counts_what_Fisher_counted()
  local p = stats.paired(MAIZE)
  lu.assertEquals(p.permutation.method, "exact")
  near(p.permutation.p, 1726 / 32768, 1e-12)
  near(p.mean, 20.9333, 1e-4)
  near(p.sd, 37.744, 1e-3)
  lu.assertEquals({ p.sign.better, p.sign.worse }, { 13, 2 })
  near(p.sign.p, 2 * (1 + 15 + 105) / 32768, 1e-12)
end

-- Student 1908, "The probable error of a mean": additional hours of sleep by the two isomers; t = 4.0621 on 9 degrees.
function M.test_the_effect_of_Students_sleep()
  local p = stats.paired { 1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4 }
  near(p.mean, 1.58, 1e-12)
  near(p.effect.d_z * math.sqrt(10), 4.0621, 1e-4)
  lu.assertEquals({ p.sign.same, p.effect.dominance }, { 1, 0.9 })
  near(p.permutation.p, 2 / 512, 1e-12)
end

function M.test_a_sampled_permutation_agrees_with_the_exact_one_and_is_never_zero()
  local many = {}
  for i = 1, 17 do many[i] = i % 4 == 0 and -i or i end
  local hits, least = 0, 0
  for _, d in ipairs(many) do least = least + d end
  for code = 0, (1 << 17) - 1 do
    local sum = 0
    for i = 1, 17 do sum = sum + (code >> (i - 1) & 1 == 1 and i or -i) end
    if math.abs(sum) >= least then hits = hits + 1 end
  end
  local p = stats.paired(many).permutation
  lu.assertEquals({ p.method, p.samples }, { "sampled", 9999 })
  near(p.p, hits / (1 << 17), 4 * math.sqrt(p.p / 9999))
  local ones = {}
  for i = 1, 60 do ones[i] = 1 end
  near(stats.paired(ones).permutation.p, 1 / 10000, 1e-12)
  lu.assertEquals(stats.paired({}).permutation.p, 1)
  lu.assertEquals(stats.paired({ 0, 0 }).sign.p, 1)
end

function M.test_large_comparisons_use_the_normal_approximation()
  local many = {}
  for i = 1, 30000 do many[i] = i % 3 == 0 and -1 or 0.5 end
  local p = stats.paired(many)
  lu.assertEquals({ p.permutation.method, p.method }, { "normal", "normal" })
  near(p.permutation.p, 1, 1e-9)
  near(p.sign.p, 0, 1e-12)
end

-- Ten attempts of each task are alike: an interval that takes them for independent would be a third as wide.
function M.test_intervals_know_that_attempts_of_a_task_are_alike()
  local clustered, apart = {}, {}
  for i = 1, 40 do
    clustered[i] = { num = i % 2 * 10, den = 10 }
    for _ = 1, 10 do apart[#apart + 1] = { num = i % 2, den = 1 } end
  end
  local wide, narrow = stats.ratio(clustered, { bounded = true }), stats.ratio(apart, { bounded = true })
  lu.assertEquals({ wide.estimate, narrow.estimate }, { 0.5, 0.5 })
  near((wide.high - wide.low) / (narrow.high - narrow.low), math.sqrt(10), 0.5)
  near(wide.se, math.sqrt(0.25 / 39), 1e-12)
  lu.assertEquals({ wide.method, wide.tasks }, { "bootstrap", 40 })
end

function M.test_the_seed_decides_over_the_interval_and_nothing_else_does()
  local tasks = {}
  for i = 1, 25 do tasks[i] = { num = i * 0.037 % 1, den = 1 } end
  local function go(seed) return stats.ratio(tasks, { seed = seed }) end
  lu.assertEquals(go(1), go(1))
  lu.assertNotEquals(go(1).low, go(2).low)
  near(go(1).low, go(2).low, 0.05)
end

-- Coverage: of 200 samples of 30 tasks each from a known mean about 95 % of the intervals must hold it.
function M.test_an_interval_holds_the_truth_as_often_as_it_says()
  local rand, held = require("agentbox").rand.new(3), 0
  for round = 1, 200 do
    local tasks = {}
    for i = 1, 30 do
      local p, c = rand:float(), 0 -- the task's own chance; their mean is 0.5
      for _ = 1, 5 do c = c + (rand:float() < p and 1 or 0) end
      tasks[i] = { num = c, den = 5 }
    end
    local one = stats.ratio(tasks, { resamples = 300, seed = round })
    if one.low <= 0.5 and 0.5 <= one.high then held = held + 1 end
  end
  lu.assertTrue(held >= 178 and held <= 199, "held " .. held)
end

function M.test_where_nothing_varies_the_number_of_tasks_still_counts()
  local one = stats.ratio({ { num = 2, den = 2 }, { num = 2, den = 2 }, { num = 2, den = 2 } }, { bounded = true })
  local low = stats.wilson(3, 3)
  lu.assertEquals({ one.estimate, one.low, one.high, one.method }, { 1, low, 1.0, "wilson" })
  lu.assertEquals(stats.ratio({}).method, "none")
  lu.assertNil(stats.ratio({ { num = 0, den = 0 } }).estimate)
  local single = stats.ratio({ { num = 0.5, den = 1 } })
  lu.assertEquals({ single.estimate, single.low, single.method }, { 0.5, nil, "none" })
end

function M.test_many_tasks_get_the_normal_interval_that_the_bootstrap_comes_to()
  local tasks, half = {}, {}
  for i = 1, 8000 do tasks[i] = { num = i % 4 == 0 and 1 or 0, den = 1 } end
  for i = 1, 4000 do half[i] = tasks[i] end
  local normal, drawn = stats.ratio(tasks), stats.ratio(half)
  lu.assertEquals({ normal.method, drawn.method }, { "normal", "bootstrap" })
  near((drawn.high - drawn.low) / (normal.high - normal.low), math.sqrt(2), 0.15)
end

-- A test of four items and five takers, worked out by hand: item c is solved by those who solve a and b, d by the others.
function M.test_discrimination_is_the_correlation_with_the_rest()
  local items = stats.items {
    { a = 1, b = 1, c = 1, d = 0 }, { a = 1, b = 1, c = 1, d = 0 }, { a = 1, b = 0, c = 1, d = 0 },
    { a = 0, b = 0, c = 0, d = 1 }, { a = 0, b = 0, c = 0, d = 1 },
  }
  lu.assertEquals({ items.a.difficulty, items.b.difficulty, items.d.n }, { 0.4, 0.6, 5 })
  -- The other three's means beside a: 2/3 2/3 1/3 1/3 1/3; beside d: 1 1 2/3 0 0. Covariances over deviations.
  near(items.a.discrimination, (4 / 75) / math.sqrt(0.24 * 2 / 75), 1e-12)
  near(items.d.discrimination, -(16 / 75) / math.sqrt(0.24 * 46 / 225), 1e-12)
  lu.assertNil(stats.items({ { a = 1, b = 0 }, { a = 1, b = 1 }, { a = 1, b = 0 } }).a.discrimination)
end

function M.test_disagreement_counts_pairs()
  local disagreement = require "agentbox.stats.items".disagreement
  near(disagreement(4, 1), 3 / 6, 1e-12)
  near(disagreement(4, 2), 4 / 6, 1e-12)
  lu.assertEquals(disagreement(4, 4), 0)
  lu.assertNil(disagreement(1, 1))
end

return M
