--- The lists of a record by columns, taken from their JSON text: no table is made of a node or a call that is only passed on.
---
--- Texts of messages stay what the record has, so that an export copies them as slices.
local json = require "agentbox.json"
local sys = require "agentbox.sys.json"

local M = {}

---@class agentbox.NodeColumns
---@field n integer
---@field p (integer?)[]     # the parent, from 0
---@field o string[]
---@field c (integer?)[]     # the call that it came of, from 0
---@field r (integer?)[]     # the tool run, from 0
---@field m string[]         # the message, as JSON text

local nodes_of = sys.split { "p", "&p", "o", "c", "r", "&m" }

--- A list of the record as JSON text: of a record that was read, the text that was read.
---@param list any
---@return string|agentbox.JsonRaw
local function text_of(list)
  return json.type(list) == "raw" and list or json.encode(list)
end

--- The nodes of a record; nil and where it is, when one is no node or goes on from what does not come before it.
---@param line table
---@return agentbox.NodeColumns?
---@return string? where
function M.nodes(line)
  local n, p, given, o, c, r, m = nodes_of(text_of(line.nodes))
  if not n then return nil, "nodes" end
  for i = 1, n do
    local parent = p[i]
    local fits = given[i] == "null" or math.type(parent) == "integer" and parent >= 0 and parent < i - 1
    if not fits or not m[i] or m[i]:byte() ~= 123 then return nil, ("nodes[%d]"):format(i - 1) end -- "{"
  end
  return { n = n, p = p, o = o, c = c, r = r, m = m }
end

--- The places (from 1) of the nodes from the root to a leaf.
---@param nodes agentbox.NodeColumns
---@param leaf integer?    # from 0
---@return integer[]
function M.path(nodes, leaf)
  local path, p = {}, nodes.p
  local at = leaf
  while at do
    path[#path + 1] = at + 1
    at = p[at + 1]
  end
  for i = 1, #path // 2 do path[i], path[#path - i + 1] = path[#path - i + 1], path[i] end
  return path
end

return M
