--- What a record knows of a node beside its message, in one integer: a rollout that waits has some dozens of nodes, and
--- thousands of them wait.
---
---     bits 0 to 2 the origin │ 20 bits parent + 1 │ 20 bits call + 1 │ 20 bits tool run + 1        (0 there: none)
local M = {}

local ORIGINS = { "prompt", "sampled", "tool", "injected", "rewritten" }
local NUMBERS = {}
for i, name in ipairs(ORIGINS) do NUMBERS[name] = i end

local PARENT <const>, CALL <const>, RUN <const>, MASK <const> = 3, 23, 43, 0xfffff

--- The most nodes, calls or tool runs of a record.
M.MAX = MASK - 1

--- nil for an origin that there is not.
---@param origin string
---@param parent? integer   # these are less than MAX
---@param call? integer
---@return integer? node
function M.new(origin, parent, call)
  local node = NUMBERS[origin]
  if not node then return nil end
  if parent then node = node | parent + 1 << PARENT end
  if call then node = node | call + 1 << CALL end
  return node
end

--- The node with the tool run that it answers.
---@param node integer
---@param run integer
---@return integer
function M.with_run(node, run)
  return node & ~(MASK << RUN) | run + 1 << RUN
end

local SAMPLED <const> = 2

--- The number of the node, or of the nearest one before it on its path, that a model said.
---@param nodes integer[]
---@param at? integer
---@return integer?
function M.sampled(nodes, at)
  while at do
    local node = nodes[at + 1]
    if node & 7 == SAMPLED then return at end
    local parent = node >> PARENT & MASK
    at = parent > 0 and parent - 1 or nil
  end
end

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
