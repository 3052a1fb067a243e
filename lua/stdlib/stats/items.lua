--- What classical test theory says of the tasks themselves (Lord and Novick 1968, chapter 15): how difficult each is,
--- and whether those who do well elsewhere do well on it.
local M = {}

---@class agentbox.Item
---@field n integer               # takers that tried it
---@field difficulty number       # 1 - mean score: 0 everybody solves it, 1 nobody
---@field discrimination number?  # correlation with the score on all other tasks; nil where nothing varies

-- The Pearson correlation from sums.
local function correlation(s)
  local xx, yy = s.xx - s.x * s.x / s.n, s.yy - s.y * s.y / s.n
  if s.n < 3 or xx <= 1e-12 * s.n or yy <= 1e-12 * s.n then return nil end
  local r = (s.xy - s.x * s.y / s.n) / math.sqrt(xx * yy)
  return math.max(-1.0, math.min(1.0, r))
end

-- In one order, whatever the hashes of strings are: sums of fractions depend on it.
local function names_of(takers)
  local seen, names = {}, {}
  for _, scores in ipairs(takers) do
    for task in pairs(scores) do
      if not seen[task] then
        seen[task], names[#names + 1] = true, task
      end
    end
  end
  table.sort(names)
  return names
end

local function add(s, x, y)
  s.n, s.x, s.y, s.xx, s.yy, s.xy = s.n + 1, s.x + x, s.y + y, s.xx + x * x, s.yy + y * y, s.xy + x * y
end

local function add_taker(sums, names, scores)
  local total, count = 0.0, 0
  for _, task in ipairs(names) do
    if scores[task] then total, count = total + scores[task], count + 1 end
  end
  for _, task in ipairs(names) do
    local x, s = scores[task], sums[task]
    if x then
      s.all, s.score = s.all + 1, s.score + x
      if count > 1 then add(s, x, (total - x) / (count - 1)) end
    end
  end
end

--- The items of some takers, each a table of scores by task. A task is compared with the mean of the taker's others.
---@param takers table<string, number>[]
---@return table<string, agentbox.Item>
function M.of(takers)
  local sums, out, names = {}, {}, names_of(takers)
  for _, task in ipairs(names) do
    sums[task] = { n = 0, x = 0.0, y = 0.0, xx = 0.0, yy = 0.0, xy = 0.0, all = 0, score = 0.0 }
  end
  for _, scores in ipairs(takers) do add_taker(sums, names, scores) end
  for task, s in pairs(sums) do
    out[task] = { n = s.all, difficulty = 1 - s.score / s.all, discrimination = s.n > 0 and correlation(s) or nil }
  end
  return out
end

--- How often two attempts of one task differ, estimated without bias from c successes of n: 2c(n-c) / (n(n-1)).
---@param n integer
---@param c integer
---@return number?   # nil below two attempts
function M.disagreement(n, c)
  if n < 2 then return nil end
  return 2 * c * (n - c) / (n * (n - 1))
end

return M
