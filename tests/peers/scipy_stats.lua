--- Computes what scipy_stats.py asks: a list of cases in, a list of answers out.
local ab = require "agentbox"
local intervals = require "agentbox.stats.intervals"

local compute = {
  paired = function(case) return ab.stats.paired(case.differences, { resamples = 100, seed = 1 }) end,
  wilson = function(case)
    local low, high = ab.stats.wilson(case.c, case.n, case.level)
    return { low = low, high = high }
  end,
  normal = function(case) return { cdf = intervals.normal_cdf(case.x), quantile = intervals.normal_quantile(case.p) } end,
  ratio = function(case) return ab.stats.ratio(case.tasks, { resamples = 20000, seed = case.seed, level = case.level }) end,
  items = function(case) return ab.stats.items(case.takers) end,
  pass_at = function(case) return { value = ab.stats.pass_at(case.n, case.c, case.k) } end,
}

local cases, answers = assert(ab.json.decode(assert(ab.fs.read(arg[1])))), ab.json.array {}
for i, case in ipairs(cases) do answers[i] = compute[case.kind](case) end
print(ab.json.encode(answers))
