--- What a record knows of a node beside its message, in one integer: a rollout that waits has some dozens of nodes, and
--- thousands of them wait.
---
---     bits 0 to 2 the origin │ 20 bits parent + 1 │ 20 bits call + 1 │ 20 bits tool run + 1        (0 there: none)
local M = {}

local ORIGINS = { "prompt", "sampled", "tool", "injected", "rewritten" }
local NUMBERS = {}
for i, name in ipairs(ORIGINS) do NUMBERS[name] = i end

local PARENT, CALL, RUN, MASK = 3, 23, 43, (1 << 20) - 1

--- The most nodes, calls or tool runs of a record.
M.MAX = MASK - 1

--- nil for an origin that there is not.
---@param origin string
---@param parent? integer   # these are less than MAX
---@param call? integer
---@return integer? node
function M.new(origin, parent, call)
  local number = NUMBERS[origin]
  return number and (number | (parent and parent + 1 or 0) << PARENT | (call and call + 1 or 0) << CALL)
end

--- The node with the tool run that it answers.
---@param node integer
---@param run integer
---@return integer
function M.with_run(node, run)
  return node & ~(MASK << RUN) | run + 1 << RUN
end

---@param node integer
---@return string
function M.origin(node) return ORIGINS[node & 7] end

local SAMPLED = NUMBERS.sampled

---@param node integer
---@return boolean
function M.is_sampled(node) return node & 7 == SAMPLED end

local function part(node, at)
  local value = node >> at & MASK
  return value > 0 and value - 1 or nil
end

---@param node integer
---@return integer?
function M.parent(node) return part(node, PARENT) end

---@param node integer
---@return integer?
function M.call(node) return part(node, CALL) end

---@param node integer
---@return integer?
function M.run(node) return part(node, RUN) end

return M
