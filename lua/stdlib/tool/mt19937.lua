--- tool/mt19937.lua: the Mersenne Twister with Python's seeding by integers and its 53-bit uniform draw.
---
--- It exists for one promise: with the same seed, drop_tools_prob removes the tools that AgentBox removed.
local M = {}

local N, PERIOD = 624, 397
local MASK = 0xffffffff

local Twister = {}
Twister.__index = Twister

local function init(state, seed)
  state[0] = seed & MASK
  for i = 1, N - 1 do
    state[i] = (1812433253 * (state[i - 1] ~ state[i - 1] >> 30) + i) & MASK
  end
end

local function init_by_array(state, key)
  init(state, 19650218)
  local i, j = 1, 0
  local function step()
    i = i + 1
    if i >= N then state[0], i = state[N - 1], 1 end
  end
  for _ = 1, math.max(N, #key + 1) do
    state[i] = (state[i] ~ (state[i - 1] ~ state[i - 1] >> 30) * 1664525) + key[j] + j & MASK
    step()
    j = j < #key and j + 1 or 0
  end
  for _ = 1, N - 1 do
    state[i] = (state[i] ~ (state[i - 1] ~ state[i - 1] >> 30) * 1566083941) - i & MASK
    step()
  end
  state[0] = 0x80000000
end

---@param seed integer
function M.new(seed)
  local magnitude = seed < 0 and -seed or seed
  local key = { [0] = magnitude & MASK }
  if magnitude >> 32 ~= 0 then key[1] = magnitude >> 32 end
  local self = setmetatable({ state = {}, at = N }, Twister)
  init_by_array(self.state, key)
  return self
end

local function refill(state)
  for i = 0, N - 1 do
    local y = state[i] & 0x80000000 | state[(i + 1) % N] & 0x7fffffff
    local mag = y & 1 == 1 and 0x9908b0df or 0
    state[i] = state[(i + PERIOD) % N] ~ y >> 1 ~ mag
  end
end

function Twister:next32()
  if self.at >= N then
    refill(self.state)
    self.at = 0
  end
  local y = self.state[self.at]
  self.at = self.at + 1
  y = y ~ y >> 11
  y = y ~ y << 7 & 0x9d2c5680
  y = y ~ y << 15 & 0xefc60000
  return (y ~ y >> 18) & MASK
end

--- A float in [0, 1) with 53 random bits.
function Twister:random()
  local a, b = self:next32() >> 5, self:next32() >> 6
  return (a * 67108864.0 + b) / 9007199254740992.0
end

return M
