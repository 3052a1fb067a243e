--- Random numbers: from the kernel, or repeatable from a seed.
---
--- A generator is xoshiro256** whose state splitmix64 fills from the seed: a seed gives the same numbers on every
--- machine and in every version.
local sys = require "agentbox.sys.rand"

---@class agentbox.Rand
---@field int fun(self, a: integer, b: integer): integer   # a <= x <= b, without bias
---@field float fun(self): number                          # 0 <= x < 1
---@field shuffle fun(self, list: any[]): any[]            # in place

---@class agentbox.rand
---@field bytes fun(n: integer): string                    # from the kernel
---@field uuid4 fun(): string
---@field new fun(seed: integer|string): agentbox.Rand
local M = { bytes = sys.bytes, uuid4 = sys.uuid4, new = sys.new }

---One item of a list.
---@generic T
---@param rand agentbox.Rand
---@param list T[]
---@return T
function M.pick(rand, list)
  return list[rand:int(1, #list)]
end

return M
