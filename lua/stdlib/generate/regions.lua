--- generate/regions.lua: stubs and mutants of any language, by text alone.
---
--- The author of a solution marks what an agent has to write, in comments of the language:
---
---     int add(int a, int b)
---     {
---         // BEGIN SOLUTION stub: return 0;
---         return a + b;
---         // END SOLUTION
---     }
---
--- The stub has the text after `stub:` instead, or else the language's own. A file without marks is all solution.
local rand = require "agentbox.sys.rand"

local M = {}

local function is_begin(line) return line:find "BEGIN SOLUTION" ~= nil end
local function is_end(line) return line:find "END SOLUTION" ~= nil end

-- The text after `stub:`, without what closes a comment.
local function own_stub(line)
  local text = line:match "BEGIN SOLUTION%s+stub:%s*(.-)%s*$"
  if not text then return nil end
  return (text:gsub("%s*%*/%s*$", ""))
end

--- The stub of a file: its regions emptied. nil and why when a region is not closed.
---@param path string
---@param text string
---@param stub string     # the language's own line
---@return string? text
---@return string? problem
function M.strip(path, text, stub)
  local out, inside = {}, false
  for line in text:gmatch "[^\n]*\n?" do
    if is_begin(line) then
      if inside then return nil, path .. ": BEGIN SOLUTION inside of a region" end
      inside = true
      out[#out + 1] = line:match "^%s*" .. (own_stub(line) or stub) .. "\n"
    elseif is_end(line) then
      if not inside then return nil, path .. ": END SOLUTION without a beginning" end
      inside = false
    elseif not inside then
      out[#out + 1] = line
    end
  end
  if inside then return nil, path .. ": END SOLUTION is missing" end
  return table.concat(out)
end

--- Whether a file has marks.
---@param text string
---@return boolean
function M.marked(text) return is_begin(text) end

--- A solution without the marks.
---@param text string
---@return string
function M.unmarked(text)
  local out = {}
  for line in text:gmatch "[^\n]*\n?" do
    if not (is_begin(line) or is_end(line)) then out[#out + 1] = line end
  end
  return table.concat(out)
end

-- ---------------------------------------------------------------- mutants

local SWAPS = {
  ["=="] = "!=", ["!="] = "==", ["<="] = "<", [">="] = ">", ["<"] = "<=", [">"] = ">=", ["&&"] = "||", ["||"] = "&&",
  ["+"] = "-", ["-"] = "+", ["*"] = "+", ["true"] = "false", ["false"] = "true", ["-eq"] = "-ne", ["-ne"] = "-eq",
  ["-lt"] = "-le", ["-gt"] = "-ge", ["-z"] = "-n", ["-n"] = "-z",
}

-- Operators with blanks around them, words and numbers, outside of comments and strings as far as a line shows.
local function sites_of(line)
  local code = line:gsub('"[^"]*"', function(s) return (" "):rep(#s) end):gsub("'[^']*'", function(s) return (" "):rep(#s) end)
  code = code:gsub("^%s*[#/*].*$", ""):gsub("//.*$", ""):gsub("%s#.*$", "")
  local found = {}
  for at, word, stop in code:gmatch "()(%S+)()" do
    local bare = word:match "^[^%w]*(%d+)[^%w]*$"
    if SWAPS[word] then
      found[#found + 1] = { at, stop - 1, SWAPS[word] }
    elseif bare then
      local from = at + word:find(bare, 1, true) - 1
      found[#found + 1] = { from, from + #bare - 1, tostring(math.tointeger(tonumber(bare)) + 1) }
    end
  end
  return found
end

local function lines_of(text)
  local lines = {}
  for line in text:gmatch "[^\n]*\n?" do
    if line ~= "" then lines[#lines + 1] = line end
  end
  return lines
end

local function sorted(files)
  local names = {}
  for name in pairs(files) do names[#names + 1] = name end
  table.sort(names)
  return names
end

--- Variants of a solution with one operator or number wrong.
---@param files table<string, string>
---@param opts { seed: integer, max: integer }
---@return { path: string, text: string, what: string }[]
function M.mutants(files, opts)
  local all = {}
  for _, path in ipairs(sorted(files)) do
    local lines = lines_of(files[path])
    for i, line in ipairs(lines) do
      for _, site in ipairs(sites_of(line)) do all[#all + 1] = { path = path, lines = lines, i = i, site = site } end
    end
  end
  rand.new(opts.seed):shuffle(all)
  local out = {}
  for n = 1, math.min(opts.max, #all) do
    local one = all[n]
    local line, site = one.lines[one.i], one.site
    local changed = line:sub(1, site[1] - 1) .. site[3] .. line:sub(site[2] + 1)
    local copy = table.move(one.lines, 1, #one.lines, 1, {})
    copy[one.i] = changed
    out[n] = { path = one.path, text = table.concat(copy), what = ("%s:%d %s"):format(one.path, one.i, changed:match "^%s*(.-)%s*$") }
  end
  return out
end

return M
