-- Checks the arrows of ARCHITECTURE.md: who may include whom, who may require whom, which words C may know.
-- Usage: lua5.4 tools/layers.lua [ROOT]. Prints FILE:LINE: what is wrong; exit 1 if anything is.
local root = arg and arg[1] or "."
local problems = 0

local function complain(file, line, text)
  problems = problems + 1
  print(("%s:%d: %s"):format(file, line, text))
end

local function files(pattern, ...)
  local pipe = assert(io.popen(("cd '%s' && find %s -name '%s' -type f | sort"):format(root, table.concat({ ... }, " "), pattern)))
  local list = {}
  for file in pipe:lines() do list[#list + 1] = file end
  pipe:close()
  return list
end

local function read(file)
  local handle = assert(io.open(root .. "/" .. file))
  local text = handle:read "a"
  handle:close()
  return text
end

-- C: folder → folders whose headers it may include.
local may_include = {
  base = { base = true },
  rt = { base = true, rt = true },
  sandbox = { base = true, sandbox = true },
  init = { init = true },
  guest = { base = true, sandbox = true, guest = true },
  lua = { base = true, rt = true, sandbox = true, lua = true },
  cli = { base = true, lua = true, cli = true },
}
-- Single headers beyond that: what the static program shares, the zygote, which is started before everything else, and
-- the programs that unpack archives and trees, which this one is instead.
local also = {
  init = { ["base/ab.h"] = true, ["base/wire.h"] = true },
  guest = { ["init/init.h"] = true },
  cli = { ["sandbox/zygote.h"] = true, ["rt/unpack.h"] = true, ["sandbox/tree_child.h"] = true },
}
-- A library's headers → the files that may include them.
local libraries = {
  { "^simdjson%.h", { "^src/base/json%.cc$" } },
  { "^yaml%.h", { "^src/base/yaml%.c$" } },
  { "^toml%+%+/", { "^src/base/toml%.cc$" } },
  { "^uv%.h", { "^src/rt/", "^src/lua/" } },
  { "^curl/", { "^src/rt/http[%w_]*%.[ch]$" } },
  { "^llhttp%.h", { "^src/rt/http_request%.c$" }, one = true },
  { "^openssl/", { "^src/rt/[%w_]+%.c$" }, one = true },
  { "^seccomp%.h", { "^src/sandbox/[%w_]+%.c$", "^src/init/[%w_]+%.c$" }, one = true },
  { "^sqlite3%.h", { "^src/rt/[%w_]+%.c$" }, one = true },
  { "^archive[%w_]*%.h", { "^src/rt/archive[%w_]*%.[ch]$" } },
  { "^lua%.h", { "^src/lua/", "^src/cli/" } },
  { "^lauxlib%.h", { "^src/lua/", "^src/cli/" } },
  { "^lualib%.h", { "^src/lua/", "^src/cli/" } },
  { "^pthread%.h", { "^src/base/fault%.c$", "^src/guest/", "^src/rt/", "^src/lua/", "^src/cli/" } },
}
local used_by = {}

local function check_library(file, line, header)
  for _, library in ipairs(libraries) do
    if header:find(library[1]) then
      local allowed = false
      for _, pattern in ipairs(library[2]) do allowed = allowed or file:find(pattern) ~= nil end
      if not allowed then complain(file, line, ("<%s> may not be included here"):format(header)) end
      local first = used_by[library[1]]
      if library.one and first and first ~= file then
        complain(file, line, ("<%s> belongs to one file, and %s has it"):format(header, first))
      end
      used_by[library[1]] = first or file
    end
  end
end

local function check_include(file, line, header)
  local layer, target = file:match "^src/(%w+)/", header:match "^(%w+)/"
  if not target or not may_include[target] then return end
  if also[layer] and also[layer][header] then return end
  if not may_include[layer][target] then complain(file, line, ("%s may not include %s"):format(layer, header)) end
end

-- Comments may explain why; code may not know the product's words.
local words = { task = 1, tool = 1, tools = 1, prompt = 1, reward = 1, rollout = 1, openai = 1, verifier = 1, agent = 1 }
local allowed_words = { ["src/lua/loader.c"] = { tools = 1 } } -- module names are paths of folders

local function without_comments(text)
  text = text:gsub("/%*.-%*/", function(comment) return (comment:gsub("[^\n]", " ")) end)
  return (text:gsub("//[^\n]*", ""))
end

local function check_words(file, text)
  local number = 0
  for line in (without_comments(text) .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    local code = line:gsub('"[^"]*"', ""):gsub("%u%l+", "_%0"):lower()
    for word in code:gmatch "%a+" do
      local excused = allowed_words[file] and allowed_words[file][word]
      if words[word] and not excused then complain(file, number, ("C does not know the word '%s'"):format(word)) end
    end
    if line:lower():find "openai" then complain(file, number, "C does not know 'openai'") end
  end
end

local function check_c()
  for _, file in ipairs(files("*.[ch]*", "src")) do
    local text, number = read(file), 0
    for line in (text .. "\n"):gmatch "(.-)\n" do
      number = number + 1
      local quoted = line:match '^%s*#%s*include%s+"([^"]+)"'
      local angled = line:match "^%s*#%s*include%s+<([^>]+)>"
      if quoted then check_include(file, number, quoted) end
      if angled then check_library(file, number, angled) end
    end
    check_words(file, text)
  end
end

-- Lua: module patterns → what they may not require.
local may_not_require = {
  { "^agentbox%.tools%.", { "^agentbox%.tools%.", "^agentbox%.model", "^agentbox%.sys%.", "^agentbox%.cli" } },
  { "^agentbox%.models%.", { "^agentbox%.tool", "^agentbox%.agent", "^agentbox%.rollout", "^agentbox%.cli" } },
  { "^agentbox%.formats%.", { "^agentbox%.sandbox", "^agentbox%.model", "^agentbox%.rollout", "^agentbox%.cli" } },
  { "^agentbox%.backends%.", { "^agentbox%.model", "^agentbox%.tool", "^agentbox%.rollout", "^agentbox%.cli" } },
  -- The commands stand on the library, not the other way round; what they share (`_name`) says how to write a text.
  { "^agentbox", { "^agentbox%.cli$", "^agentbox%.cli%.[^_]" }, except = { "^agentbox%.cli", "^agentbox$" } },
}

local function module_of(file)
  local name = file:gsub("^lua/stdlib/", "agentbox."):gsub("^lua/tools/", "agentbox.tools."):gsub("%.lua$", "")
  return (name:gsub("/", "."):gsub("%.init$", ""))
end

local function matches_any(name, patterns)
  for _, pattern in ipairs(patterns or {}) do
    if name:find(pattern) then return true end
  end
  return false
end

local function check_require(file, line, from, to)
  for _, rule in ipairs(may_not_require) do
    if from:find(rule[1]) and not matches_any(from, rule.except) and matches_any(to, rule[2]) then
      complain(file, line, ("%s may not require %s"):format(from, to))
    end
  end
end

-- What is required at the top of a file is needed to load it: a circle there never loads.
local function find_circle(graph)
  local state = {}
  local function visit(name, path)
    if state[name] == "done" then return end
    if state[name] == "open" then
      complain(graph[name].file, 1, "circle of requires: " .. table.concat(path, " → ") .. " → " .. name)
      return
    end
    state[name] = "open"
    path[#path + 1] = name
    for _, to in ipairs(graph[name] and graph[name].needs or {}) do visit(to, path) end
    path[#path] = nil
    state[name] = "done"
  end
  local names = {}
  for name in pairs(graph) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do visit(name, {}) end
end

local function check_lua()
  local graph = {}
  for _, file in ipairs(files("*.lua", "lua")) do
    local from, number = module_of(file), 0
    graph[from] = { file = file, needs = {} }
    for line in (read(file) .. "\n"):gmatch "(.-)\n" do
      number = number + 1
      local code = line:gsub("%-%-.*", "")
      for to in code:gmatch "require%s*%(?%s*[\"']([%w_.]+)[\"']" do
        check_require(file, number, from, to)
        if code:find "^local" then table.insert(graph[from].needs, to) end
      end
    end
  end
  find_circle(graph)
end

local function check_names()
  for _, file in ipairs(files("*", "src", "lua")) do
    for _, word in ipairs { "manager", "helper", "util", "misc", "common" } do
      if file:match "[^/]*$":find("^" .. word) then complain(file, 1, "a file is named after what it holds, not " .. word) end
    end
  end
end

check_c()
check_lua()
check_names()
if problems > 0 then
  print(("layers: %d wrong"):format(problems))
  os.exit(1)
end
print "layers: as drawn"
