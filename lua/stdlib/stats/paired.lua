--- Two runs of the same tasks: one difference for each task, and what chance would make of them.
local intervals = require "agentbox.stats.intervals"
local rand = require "agentbox.sys.rand"

local M = {}

--- Up to so many tasks that differ, every assignment of signs is looked at.
local MAX_EXACT = 16
--- Sampled assignments, and how much work they may be in all.
local SAMPLES, MAX_WORK = 9999, 10000000
local FEWEST = 999

---@class agentbox.Paired
---@field n integer             # tasks
---@field mean number?
---@field sd number?
---@field low number?           # of the mean, tasks drawn again
---@field high number?
---@field method string
---@field sign { better: integer, worse: integer, same: integer, p: number }
---@field permutation { p: number, method: "exact"|"sampled"|"normal", samples?: integer }
---@field effect { d_z: number?, dominance: number }   # mean / sd; (better - worse) / n

-- 2 P(X <= k) for a fair coin thrown n times, at most 1. In logarithms: 2^-n underflows.
local function two_sided_binomial(k, n)
  if n == 0 then return 1.0 end
  local log_term, sum = -n * math.log(2), 0.0
  for i = 0, k do
    sum = sum + math.exp(log_term)
    log_term = log_term + math.log((n - i) / (i + 1))
  end
  return math.min(1.0, 2 * sum)
end

--- The sign test (Conover 1999, 3.4): differences that are 0 are left out.
---@param differences number[]
---@return { better: integer, worse: integer, same: integer, p: number }
function M.sign(differences)
  local better, worse, same = 0, 0, 0
  for _, d in ipairs(differences) do
    if d > 0 then better = better + 1 elseif d < 0 then worse = worse + 1 else same = same + 1 end
  end
  return { better = better, worse = worse, same = same, p = two_sided_binomial(math.min(better, worse), better + worse) }
end

-- Every assignment of signs to the sizes, in the order of a Gray code: one sign changes from each to the next.
local function exact(sizes, least)
  local n, sum, signs, hits = #sizes, 0.0, {}, 0
  for i = 1, n do
    sum, signs[i] = sum + sizes[i], 1
  end
  local all = 1 << n
  for code = 1, all do
    if math.abs(sum) >= least then hits = hits + 1 end
    if code < all then
      local i, bits = 1, code
      while bits & 1 == 0 do i, bits = i + 1, bits >> 1 end
      signs[i] = -signs[i]
      sum = sum + 2 * signs[i] * sizes[i]
    end
  end
  return { p = hits / all, method = "exact", samples = all }
end

local BITS = 48

local function sampled(sizes, least, seed, samples)
  local random, n, hits = rand.new(seed), #sizes, 0
  for _ = 1, samples do
    local sum, bits = 0.0, 0
    for i = 1, n do
      if (i - 1) % BITS == 0 then bits = random:int(0, (1 << BITS) - 1) end
      sum = bits & 1 == 1 and sum + sizes[i] or sum - sizes[i]
      bits = bits >> 1
    end
    if math.abs(sum) >= least then hits = hits + 1 end
  end
  -- The observed assignment is one of them, so that p is never 0 (Phipson and Smyth 2010).
  return { p = (hits + 1) / (samples + 1), method = "sampled", samples = samples }
end

--- Fisher's randomisation test of paired differences (1935): how often the sum is as large when each sign is a coin's.
---@param differences number[]
---@param seed integer
---@param max_work? integer   # tasks times assignments; with less than 999 assignments the normal approximation is used
---@return { p: number, method: "exact"|"sampled"|"normal", samples?: integer }
function M.permutation(differences, seed, max_work)
  local sizes, sum, total, squares = {}, 0.0, 0.0, 0.0
  for _, d in ipairs(differences) do
    if d ~= 0 then
      sizes[#sizes + 1] = math.abs(d)
      sum, total, squares = sum + d, total + math.abs(d), squares + d * d
    end
  end
  local n, least = #sizes, math.abs(sum) - 1e-9 * total
  if n == 0 then return { p = 1.0, method = "exact", samples = 1 } end
  if n <= MAX_EXACT then return exact(sizes, least) end
  local samples = math.min(SAMPLES, (max_work or MAX_WORK) // n)
  if samples < FEWEST then
    return { p = math.min(1.0, 2 * intervals.normal_cdf(-math.abs(sum) / math.sqrt(squares))), method = "normal" }
  end
  return sampled(sizes, least, seed, samples)
end

local function moments(list)
  local n, sum, squares = #list, 0.0, 0.0
  for _, value in ipairs(list) do sum = sum + value end
  local mean = n > 0 and sum / n or nil
  for _, value in ipairs(list) do squares = squares + (value - mean) ^ 2 end
  return mean, n > 1 and math.sqrt(squares / (n - 1)) or nil
end

--- Everything about a list of differences.
---@param differences number[]
---@param opts { level: number, resamples: integer, seed: integer }
---@return agentbox.Paired
function M.of(differences, opts)
  local ones, n = {}, #differences
  for i = 1, n do ones[i] = 1 end
  local mean, sd = moments(differences)
  local about = intervals.of({ { num = differences, den = ones } }, n, opts)[1]
  local sign = M.sign(differences)
  return {
    n = n, mean = mean, sd = sd, low = about.low, high = about.high, method = about.method, sign = sign,
    permutation = M.permutation(differences, opts.seed),
    effect = { d_z = sd and sd > 0 and mean / sd or nil, dominance = n > 0 and (sign.better - sign.worse) / n or 0.0 },
  }
end

return M
