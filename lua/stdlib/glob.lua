--- glob.lua: file patterns as people write them in ignore files.
---
--- `*` and `?` stay inside one component, `**` is any number of them, `[a-z]` and `[!a-z]` are sets. A pattern without
--- a slash matches the last component at any depth; one with a slash is anchored at the top.
local M = {}

local function set_to_lua(glob, at)
  local close = glob:find("]", at + 2, true)
  if not close then return "%[", at + 1 end
  local body = glob:sub(at + 1, close - 1):gsub("[%%%]]", "%%%0"):gsub("^!", "^")
  return "[" .. body .. "]", close + 1
end

local function component(glob)
  local out, at = { "^" }, 1
  while at <= #glob do
    local char = glob:sub(at, at)
    local piece
    at = at + 1
    if char == "*" then
      piece = ".*"
    elseif char == "?" then
      piece = "."
    elseif char == "[" then
      piece, at = set_to_lua(glob, at - 1)
    else
      piece = char:gsub("[%^%$%(%)%%%.%+%-]", "%%%0")
    end
    out[#out + 1] = piece
  end
  out[#out + 1] = "$"
  return table.concat(out)
end

local function split(path)
  local parts = {}
  for part in path:gmatch("[^/]+") do parts[#parts + 1] = part end
  return parts
end

--- Components against components; the classical two-pointer walk, so that `**` never costs more than a product.
local function match_parts(pats, parts)
  local p, s, star, back = 1, 1, nil, nil
  while s <= #parts do
    if pats[p] == "**" then
      star, back, p = p, s, p + 1
    elseif pats[p] and parts[s]:find(pats[p]) then
      p, s = p + 1, s + 1
    elseif star then
      back = back + 1
      p, s = star + 1, back
    else
      return false
    end
  end
  while pats[p] == "**" do p = p + 1 end
  return p > #pats
end

local function compile_one(glob)
  local pats = {}
  for _, part in ipairs(split(glob)) do pats[#pats + 1] = part == "**" and part or component(part) end
  if not glob:find("/", 1, true) and pats[1] ~= "**" then table.insert(pats, 1, "**") end
  -- `dir/**` means what lies below dir, not dir itself.
  return { pats = pats, below = glob:sub(-3) == "/**" and #pats or nil }
end

-- The same few patterns are asked for by every rollout.
local MAX_KNOWN = 256
local known, known_count = {}, 0

local function compiled_of(glob)
  local one = known[glob]
  if one then return one end
  if known_count == MAX_KNOWN then known, known_count = {}, 0 end
  one = compile_one(glob)
  known[glob], known_count = one, known_count + 1
  return one
end

--- Compiles a list of patterns; the result says whether a relative path matches any of them.
---@param globs string[]
---@return fun(path: string): boolean
function M.compile(globs)
  local compiled = {}
  for i, glob in ipairs(globs) do compiled[i] = compiled_of(glob) end
  return function(path)
    local parts = split(path)
    for _, one in ipairs(compiled) do
      if (not one.below or #parts >= one.below) and match_parts(one.pats, parts) then return true end
    end
    return false
  end
end

return M
