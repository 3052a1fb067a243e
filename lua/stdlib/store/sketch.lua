--- Percentiles of a stream of numbers, in memory that does not grow with it: values are counted in buckets that are 2 %
--- wide, so that a percentile is within 1 % of the true one. (The idea of DDSketch, Masson, Rim and Lee, 2019.)
local M = {}

local RATIO = 1.02
local LOG = math.log(RATIO)
local SMALLEST = 1e-9

---@class agentbox.Sketch
---@field n integer
---@field sum number
---@field min number?
---@field max number?
local Sketch = {}
Sketch.__index = Sketch

---@return agentbox.Sketch
function M.new()
  return setmetatable({ n = 0, sum = 0.0, _squares = 0.0, _buckets = {} }, Sketch)
end

-- Buckets of negative numbers mirror those of positive ones; 0 is between them.
local function bucket_of(value)
  local size = math.abs(value)
  if size <= SMALLEST then return 0 end
  local index = math.ceil(math.log(size / SMALLEST) / LOG) + 1
  return value > 0 and index or -index
end

local function value_of(bucket)
  if bucket == 0 then return 0.0 end
  local size = SMALLEST * RATIO ^ (math.abs(bucket) - 1) * 2 / (1 + RATIO)
  return bucket > 0 and size or -size
end

---@param value number
function Sketch:add(value)
  local bucket = bucket_of(value)
  self._buckets[bucket] = (self._buckets[bucket] or 0) + 1
  self.n, self.sum, self._squares = self.n + 1, self.sum + value, self._squares + value * value
  self.min, self.max = math.min(self.min or value, value), math.max(self.max or value, value)
end

---@return number? mean   # nil of nothing
function Sketch:mean()
  return self.n > 0 and self.sum / self.n or nil
end

--- The standard deviation of the values as a sample (n - 1); nil below two.
---@return number?
function Sketch:deviation()
  if self.n < 2 then return nil end
  return math.sqrt(math.max(0, (self._squares - self.sum * self.sum / self.n) / (self.n - 1)))
end

--- The smallest value that at least the part `p` of all do not exceed (nearest rank).
---@param p number   # 0 to 1
---@return number?   # nil of nothing
function Sketch:quantile(p)
  if self.n == 0 then return nil end
  local keys = {}
  for bucket in pairs(self._buckets) do keys[#keys + 1] = bucket end
  table.sort(keys)
  local rank, seen = math.max(1, math.ceil(p * self.n)), 0
  for _, bucket in ipairs(keys) do
    seen = seen + self._buckets[bucket]
    if seen >= rank then return math.max(self.min, math.min(self.max, value_of(bucket))) end
  end
end

return M
