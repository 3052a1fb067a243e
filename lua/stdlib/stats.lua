--- Statistics of tasks that were tried several times: pass@k, intervals that know that attempts of one task are alike,
--- and whether two runs differ. docs/benchmarks.md names each formula and where it comes from.
---
---     local a = ab.stats.ratio { { num = 3, den = 4 }, { num = 0, den = 4 } }      -- tasks: successes, attempts
---     print(a.estimate, a.low, a.high)
---     print(ab.stats.paired({ 0.25, -0.5, 1 }).permutation.p)
local intervals = require "agentbox.stats.intervals"
local items = require "agentbox.stats.items"
local paired = require "agentbox.stats.paired"
local schema = require "agentbox.schema"

local M = {}

local OPTIONS = {
  level = { "number", min = 0.5, max = 0.9999, default = 0.95 }, resamples = { "integer", min = 100, max = 100000, default = 1000 },
  seed = { "integer", default = 42 }, bounded = { "boolean" },
}

---@class agentbox.StatsOpts
---@field level? number        # of the interval, default 0.95
---@field resamples? integer   # of the bootstrap, default 1000
---@field seed? integer        # the same seed gives the same interval; default 42
---@field bounded? boolean     # the numbers are shares: an interval stays in 0..1 and never has no width

---@class agentbox.Estimate
---@field estimate number?     # nil: nothing to estimate it from
---@field low number?
---@field high number?
---@field se number?           # clustered standard error; nil below two tasks
---@field tasks integer        # that it is made of
---@field method "bootstrap"|"normal"|"wilson"|"none"

--- The chance that at least one of k attempts succeeds, estimated without bias from c successes of n (Chen et al. 2021).
---@param n integer
---@param c integer
---@param k integer   # at most n
---@return number
function M.pass_at(n, c, k)
  if not (math.type(n) == "integer" and math.type(c) == "integer" and math.type(k) == "integer") or k < 1 or k > n
      or c < 0 or c > n then
    error("stats.pass_at: whole numbers with 1 <= k <= n and 0 <= c <= n expected", 2)
  end
  return require "agentbox.store.stats".pass_at(n, c, k)
end

--- Σ num / Σ den over tasks, with an interval for which whole tasks are drawn again.
---@param tasks { num: number, den: number }[]
---@param opts? agentbox.StatsOpts
---@return agentbox.Estimate
function M.ratio(tasks, opts)
  opts = schema.options(opts or {}, OPTIONS, "stats.ratio")
  local num, den = {}, {}
  for i, task in ipairs(tasks) do num[i], den[i] = task.num, task.den end
  return intervals.of({ { num = num, den = den, bounded = opts.bounded } }, #tasks, opts)[1]
end

--- The score interval of Wilson (1927) for `c` of `n`.
---@param c number
---@param n number
---@param level? number   # default 0.95
---@return number low
---@return number high
function M.wilson(c, n, level)
  if n <= 0 or c < 0 or c > n then error("stats.wilson: 0 <= c <= n and n > 0 expected", 2) end
  return intervals.wilson(c, n, level or 0.95)
end

--- Whether differences between two runs, one for each task, are more than chance: their mean with an interval, an exact
--- sign test, a permutation test and the size of the effect.
---@param differences number[]
---@param opts? agentbox.StatsOpts
---@return agentbox.Paired
function M.paired(differences, opts)
  return paired.of(differences, schema.options(opts or {}, OPTIONS, "stats.paired"))
end

--- Difficulty and discrimination of each task, from the scores of test takers. A taker is one pass over the tasks: a
--- model's first attempts, its second ones.
---@param takers table<string, number>[]   # by task
---@return table<string, agentbox.Item>
function M.items(takers) return items.of(takers) end

return M
