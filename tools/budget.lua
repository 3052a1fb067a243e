-- Prints what is larger than its aim, and fails on what is larger than its ceiling.
-- Usage: lua5.4 tools/budget.lua [-q] [ROOT]; -q prints only what fails and the totals.
local quiet = arg and arg[1] == "-q"
local root = arg and arg[quiet and 2 or 1] or "."
local over = 0

-- Pattern of the path, then aim and ceiling: lines of a file, lines of a function, columns (of C clang-format takes care).
local budgets = {
  { "^src/.*%.h$", file = { 80, 200 }, func = { 40, 80 } },
  { "^src/.*%.cc?$", file = { 300, 700 }, func = { 40, 80 } },
  { "^lua/tools/", file = { 60, 120 }, func = { 40, 80 }, width = { 120, 160 } },
  { "^lua/", file = { 200, 450 }, func = { 40, 80 }, width = { 120, 160 } },
}

local function judge(where, what, size, aim, ceiling)
  if size > ceiling then
    over = over + 1
    print(("%s: %s %d, ceiling %d"):format(where, what, size, ceiling))
  elseif size > aim and not quiet then
    print(("%s: %s %d, aim %d"):format(where, what, size, aim))
  end
end

local function lines_of(file)
  local lines = {}
  for line in io.lines(root .. "/" .. file) do lines[#lines + 1] = line end
  return lines
end

-- The house style makes this simple: a C function's braces, and a Lua function's `end`, stand below its first column.
local function c_functions(lines, found)
  local start
  for number, line in ipairs(lines) do
    if line == "{" then
      start = number
    elseif line == "}" and start then
      found(start, number - start + 1)
      start = nil
    end
  end
end

local function lua_functions(lines, found)
  local open = {}
  for number, line in ipairs(lines) do
    local indent, rest = line:match "^(%s*)(.*)$"
    if open[indent] and rest:find "^end" then
      found(open[indent], number - open[indent] + 1)
      open[indent] = nil
    elseif (rest:find "^local function " or rest:find "^function " or rest:find "= function%b()$")
        and not rest:find "%send[%s,)]*$" then
      open[indent] = number
    end
  end
end

local function check(file, budget)
  local lines = lines_of(file)
  judge(file, "lines", #lines, table.unpack(budget.file))
  local functions = file:find "%.lua$" and lua_functions or c_functions
  functions(lines, function(start, size)
    -- A table or a switch over a closed list may be long; it says so on the line above.
    local before = lines[start - 1] or ""
    if not before:find "budget: table" then judge(("%s:%d"):format(file, start), "function of", size, table.unpack(budget.func)) end
  end)
  for number, line in ipairs(lines) do
    if budget.width and not line:find "^%-%-%-@" then -- an annotation is one line, however long
      judge(("%s:%d"):format(file, number), "columns", utf8.len(line) or #line, table.unpack(budget.width))
    end
  end
  return #lines
end

local totals = {}
local pipe = assert(io.popen(("cd '%s' && find src lua -type f \\( -name '*.[ch]' -o -name '*.cc' -o -name '*.lua' \\) | sort"):format(root)))
for file in pipe:lines() do
  for _, budget in ipairs(budgets) do
    if file:find(budget[1]) then
      local top = file:match "^%w+"
      totals[top] = (totals[top] or 0) + check(file, budget)
      break
    end
  end
end
pipe:close()
print(("budget: src %d lines, lua %d lines, %d over a ceiling"):format(totals.src or 0, totals.lua or 0, over))
os.exit(over == 0 and 0 or 1)
