--- Intervals for ratios of sums over tasks. The task is the unit that is drawn: its attempts are alike, and intervals
--- that take them for independent are too narrow (Miller 2024, "Adding Error Bars to Evals", arXiv:2411.00640).
local rand = require "agentbox.sys.rand"

local M = {}

--- Beyond so many tasks the bootstrap is not drawn: it is what the normal interval is, and costs tasks times resamples.
M.MAX_DRAWN = 4000

--- The value below which a standard normal variable is with probability `p`, by halving.
---@param p number
---@return number
function M.normal_quantile(p)
  local low, high = -40.0, 40.0
  for _ = 1, 200 do
    local mid = (low + high) / 2
    if M.normal_cdf(mid) < p then low = mid else high = mid end
    if high - low < 1e-14 then break end
  end
  return (low + high) / 2
end

-- The upper tail by Lentz's continued fraction; good from 2 on.
local function tail(x)
  local tiny = 1e-300
  local f, c, d = tiny, tiny, 0.0
  for i = 0, 300 do
    local a, b = i == 0 and 1 or i, x
    d = b + a * d
    if d == 0 then d = tiny end
    c = b + a / c
    if c == 0 then c = tiny end
    d = 1 / d
    local step = c * d
    f = f * step
    if math.abs(step - 1) < 1e-16 then break end
  end
  return math.exp(-x * x / 2) / math.sqrt(2 * math.pi) * f
end

--- The probability that a standard normal variable is below x.
---@param x number
---@return number
function M.normal_cdf(x)
  if x > 2 then return 1 - tail(x) end
  if x < -2 then return tail(-x) end
  local term, sum, i = x, x, 1
  while math.abs(term) > 1e-17 * math.abs(sum) and i < 400 do
    term = term * x * x / (2 * i + 1)
    sum, i = sum + term, i + 1
  end
  return 0.5 + sum * math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
end

--- Wilson's score interval (1927).
---@param c number
---@param n number
---@param level number
---@return number low
---@return number high
function M.wilson(c, n, level)
  local z = M.normal_quantile(1 - (1 - level) / 2)
  local p = c / n
  local middle, scale = p + z * z / (2 * n), 1 + z * z / n
  local half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
  return c > 0 and math.max(0.0, (middle - half) / scale) or 0.0, c < n and math.min(1.0, (middle + half) / scale) or 1.0
end

--- A quantile of a sorted list, between its values where it falls between them (Hyndman and Fan's seventh kind).
---@param sorted number[]
---@param p number
---@return number
function M.quantile(sorted, p)
  local at = 1 + (#sorted - 1) * p
  local below = math.floor(at)
  local value = sorted[below]
  if below == #sorted then return value end
  return value + (at - below) * (sorted[below + 1] - value)
end

---@class agentbox.Measure
---@field num number[]        # by task, or by kind
---@field den number[]
---@field kinds? integer[]    # the kind of each task; measures that share it are drawn together
---@field bounded? boolean
---@field normal? boolean     # no bootstrap: the normal interval

local function identity(n)
  local list = {}
  for i = 1, n do list[i] = i end
  return list
end

-- The estimate and its clustered standard error: Σ num / Σ den, and the spread of the tasks' residuals.
local function estimate(measure, kinds, n)
  local num, den, tasks = 0.0, 0.0, 0
  for i = 1, n do
    local kind = kinds[i]
    num, den = num + measure.num[kind], den + measure.den[kind]
    if measure.den[kind] > 0 then tasks = tasks + 1 end
  end
  if den <= 0 then return { tasks = 0, method = "none" } end
  local ratio, squares = num / den, 0.0
  for i = 1, n do
    local rest = measure.num[kinds[i]] - ratio * measure.den[kinds[i]]
    squares = squares + rest * rest
  end
  local se = tasks > 1 and math.sqrt(squares * tasks / (tasks - 1)) / den or nil
  return { estimate = ratio, se = se, tasks = tasks, method = "none" }
end

-- The measures by the list of kinds that they share.
local function sharing(measures, n)
  local groups, by_kinds = {}, {}
  local own = identity(n)
  for i, measure in ipairs(measures) do
    local kinds = measure.kinds or own
    local group = by_kinds[kinds]
    if not group then
      group = { kinds = kinds, list = {}, drawn = {}, most = 0 }
      for j = 1, n do group.most = math.max(group.most, kinds[j]) end
      by_kinds[kinds], groups[#groups + 1] = group, group
    end
    local entry = { index = i, measure = measure, drawn = {} }
    group.list[#group.list + 1] = entry
    if not measure.normal then group.drawn[#group.drawn + 1] = entry end
  end
  return groups
end

local function count_kinds(group, draws, n)
  local counts, kinds = group.counts, group.kinds
  for kind = 1, group.most do counts[kind] = 0 end
  for i = 1, n do
    local kind = kinds[draws[i]]
    counts[kind] = counts[kind] + 1
  end
end

local function draw_measures(group)
  local counts, most = group.counts, group.most
  for _, entry in ipairs(group.drawn) do
    local nums, dens, num, den = entry.measure.num, entry.measure.den, 0.0, 0.0
    for kind = 1, most do
      local count = counts[kind]
      if count > 0 then num, den = num + count * nums[kind], den + count * dens[kind] end
    end
    if den > 0 then entry.drawn[#entry.drawn + 1] = num / den end
  end
end

local function draw(groups, n, opts)
  local random, draws = rand.new(opts.seed), {}
  for _, group in ipairs(groups) do group.counts = {} end
  for _ = 1, opts.resamples do
    for i = 1, n, 2 do -- two from one number of 62 bits: off by less than n / 2^31
      local bits = random:int(0, (1 << 62) - 1)
      draws[i], draws[i + 1] = ((bits & 0x7fffffff) * n >> 31) + 1, ((bits >> 31) * n >> 31) + 1
    end
    for _, group in ipairs(groups) do
      count_kinds(group, draws, n)
      draw_measures(group)
    end
  end
end

-- Where tasks do not vary, nothing can be drawn that differs: no interval. For a share the number of tasks still says
-- something: Wilson's interval of as many trials.
local function widen(out, level, bounded)
  if not out.estimate or out.low and out.high > out.low then return end
  out.low, out.high, out.method = nil, nil, "none"
  if not bounded then return end
  out.low, out.high = M.wilson(out.estimate * out.tasks, out.tasks, level)
  out.method = "wilson"
end

local function by_normal(out, level, bounded)
  if not out.se then return end
  local half = M.normal_quantile(1 - (1 - level) / 2) * out.se
  out.low, out.high, out.method = out.estimate - half, out.estimate + half, "normal"
  if bounded then out.low, out.high = math.max(0.0, out.low), math.min(1.0, out.high) end
end

--- Estimates with intervals of several measures over the same tasks, from the same draws.
---@param measures agentbox.Measure[]
---@param n integer               # tasks
---@param opts { level: number, resamples: integer, seed: integer }
---@return agentbox.Estimate[]
function M.of(measures, n, opts)
  local groups, out, drawn = sharing(measures, n), {}, n > 1 and n <= M.MAX_DRAWN
  if drawn then draw(groups, n, opts) end
  local below = (1 - opts.level) / 2
  for _, group in ipairs(groups) do
    for _, entry in ipairs(group.list) do
      local one = estimate(entry.measure, group.kinds, n)
      if one.estimate and drawn and #entry.drawn > 0 and one.tasks > 1 then
        table.sort(entry.drawn)
        one.low, one.high = M.quantile(entry.drawn, below), M.quantile(entry.drawn, 1 - below)
        one.method = "bootstrap"
      elseif one.estimate then
        by_normal(one, opts.level, entry.measure.bounded)
      end
      widen(one, opts.level, entry.measure.bounded)
      out[entry.index] = one
    end
  end
  return out
end

return M
