--- generate/spread.lua: what the next candidate is to be about, so that what is accepted in the end has the wanted mix: difficulties
--- by their weights, families alike within each. What is running counts as accepted; what was rejected a little, so that a family
--- that never succeeds does not take every turn.
local rand = require "agentbox.sys.rand"
local schema = require "agentbox.schema"

local M = {}

local REJECTED = 0.25

---@class agentbox.Spec
---@field family string
---@field difficulty string
---@field constraints string
---@field idea? string      # one of the lab's seeds
---@field parent? integer   # which of the tasks to vary or evolve
---@field salt? integer     # for the model's own sampling

---@class agentbox.Spread
local Spread = {}
Spread.__index = Spread

-- Weights by name: a list counts its repetitions, a map gives them.
local function weights_of(mix)
  local weights, sum = {}, 0
  for key, value in pairs(mix) do
    local name, weight = key, value
    if math.type(key) == "integer" then name, weight = value, (weights[value] or 0) + 1 end
    weights[name] = weight
  end
  for _, weight in pairs(weights) do sum = sum + weight end
  for name, weight in pairs(weights) do weights[name] = weight / sum end
  return weights
end

local function shuffled(list, seed)
  local copy = table.move(list, 1, #list, 1, {})
  if seed then rand.new(seed):shuffle(copy) end
  return copy
end

---@param opts table     # families, mix, constraints, seeds, seed, parents
---@return agentbox.Spread
function M.new(opts)
  local self = setmetatable({ _weights = weights_of(opts.mix), _families = shuffled(opts.families, opts.seed), _counts = {}, _of = {},
    _total = 0, _opts = opts, _ideas = opts.seeds and shuffled(opts.seeds, opts.seed) or {} }, Spread)
  self._names = schema.names(self._weights)
  return self
end

local function cell(family, difficulty) return family .. "\0" .. difficulty end

local function add(self, spec, n)
  local key = cell(spec.family or "", spec.difficulty or "")
  self._counts[key] = (self._counts[key] or 0) + n
  self._of[spec.difficulty or ""] = (self._of[spec.difficulty or ""] or 0) + n
  self._total = self._total + n
end

--- Counts a candidate that ended in an earlier run.
---@param spec { family?: string, difficulty?: string }
---@param accepted boolean
function Spread:seen(spec, accepted) add(self, spec, accepted and 1 or REJECTED) end

-- The name that is furthest below its share.
local function neediest(self)
  local best, most = nil, -math.huge
  for _, name in ipairs(self._names) do
    local lack = self._weights[name] * (self._total + 1) - (self._of[name] or 0)
    if lack > most + 1e-9 then best, most = name, lack end
  end
  return best
end

local function rarest(self, difficulty)
  local best, least = nil, math.huge
  for _, family in ipairs(self._families) do
    local n = self._counts[cell(family, difficulty)] or 0
    if n < least - 1e-9 then best, least = family, n end
  end
  return best
end

--- What a candidate is to be about. It counts at once; `ended` puts it right.
---@param i integer
---@return agentbox.Spec
function Spread:next(i)
  local opts = self._opts
  local difficulty = neediest(self)
  local spec = { difficulty = difficulty, family = rarest(self, difficulty), constraints = opts.constraints }
  if #self._ideas > 0 then spec.idea = self._ideas[(i - 1) % #self._ideas + 1] end
  if opts.parents then spec.parent = (i - 1) % #opts.parents + 1 end
  if opts.seed then spec.salt = opts.seed + i end
  add(self, spec, 1)
  return spec
end

--- A candidate's end.
---@param spec agentbox.Spec
---@param accepted boolean
function Spread:ended(spec, accepted)
  if not accepted then add(self, spec, REJECTED - 1) end
end

--- What became of families and difficulties: one row for each pair, sorted.
---@param ended table<integer, { accepted: boolean, family?: string, difficulty?: string }>
---@return { family: string, difficulty: string, tried: integer, accepted: integer }[]
function M.coverage(ended)
  local by, rows = {}, {}
  for _, one in pairs(ended) do
    local family, difficulty = one.family or "?", one.difficulty or "?"
    local key = cell(family, difficulty)
    local row = by[key]
    if not row then
      row = { family = family, difficulty = difficulty, tried = 0, accepted = 0 }
      by[key], rows[#rows + 1] = row, row
    end
    row.tried = row.tried + 1
    if one.accepted then row.accepted = row.accepted + 1 end
  end
  table.sort(rows, function(a, b) return cell(a.family, a.difficulty) < cell(b.family, b.difficulty) end)
  return rows
end

return M
