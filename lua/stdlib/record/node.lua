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

local SAMPLED = NUMBERS.sampled

---@param node integer
---@return boolean
function M.is_sampled(node) return node & 7 == SAMPLED end

---@param node integer
---@return integer?
function M.parent(node)
  local parent = node >> PARENT & MASK
  return parent > 0 and parent - 1 or nil
end

--- All that is known of it.
---@param node integer
---@return string origin
---@return integer? parent
---@return integer? call
---@return integer? run
function M.parts(node)
  local parent, call, run = node >> PARENT & MASK, node >> CALL & MASK, node >> RUN & MASK
  return ORIGINS[node & 7], parent > 0 and parent - 1 or nil, call > 0 and call - 1 or nil, run > 0 and run - 1 or nil
end

return M
