--- Overlays: folders in module-name layout whose files replace or add to the built-in library.
---
--- DIR/agentbox/tools/read_file.lua replaces the built-in tool; DIR/mylab/rubric.lua is a module of the lab's own.
local err = require "agentbox.err"
local fs = require "agentbox.sys.fs"
local loader = require "agentbox.loader"

local M = {}

---@class agentbox.Module
---@field name string        # "agentbox.tools.read_file"
---@field from string        # "builtin" or a path
---@field shadows boolean    # an overlay's file that hides a built-in one

local function module_name(rel)
  return (rel:gsub("%.lua$", ""):gsub("/init$", ""):gsub("/", "."))
end

local function walk(dir, rel, into)
  local entries, problem = fs.list(rel == "" and dir or dir .. "/" .. rel)
  if not entries then return nil, problem end
  for _, entry in ipairs(entries) do
    local child = rel == "" and entry.name or rel .. "/" .. entry.name
    if entry.type == "dir" then
      local ok, bad = walk(dir, child, into)
      if not ok then return nil, bad end
    elseif entry.name:find "%.lua$" then
      into[#into + 1] = { name = module_name(child), path = dir .. "/" .. child }
    end
  end
  return true
end

---The modules of one overlay folder: { name, path }.
---@async
---@param dir string
---@return { name: string, path: string }[]?
---@return agentbox.Err? err
function M.files(dir)
  local out = {}
  local ok, problem = walk(dir, "", out)
  if not ok then return nil, err.wrap(problem, "overlay " .. dir) end
  table.sort(out, function(a, b) return a.name < b.name end)
  return out
end

local function is_private(name)
  return name:find "^agentbox%.sys%." or name:find "%._" or name == "argparse"
end

---Every module that a script may name, where it would come from, and whether it hides a built-in one.
---@async
---@return agentbox.Module[]?
---@return agentbox.Err? err
function M.list()
  local by_name = {}
  for _, name in ipairs(loader.builtins()) do
    if not is_private(name) then by_name[name] = { name = name, from = "builtin", shadows = false } end
  end
  local dirs = loader.overlays()
  for i = #dirs, 1, -1 do
    local files, problem = M.files(dirs[i])
    if not files then return nil, problem end
    for _, file in ipairs(files) do
      local hidden = loader.builtin_source(file.name) ~= nil
      by_name[file.name] = { name = file.name, from = file.path, shadows = hidden }
    end
  end
  local out = {}
  for _, module in pairs(by_name) do out[#out + 1] = module end
  table.sort(out, function(a, b) return a.name < b.name end)
  return out
end

local function header(name, source)
  local hash = require "agentbox.sys.hash".sha256(source)
  return ("-- ejected from agentbox %s: %s sha256:%s\n"):format(require "agentbox".version, name, hash)
end

---The version, module and hash that an ejected file says it came from; nil for a file written by hand.
---@param text string
---@return { version: string, name: string, sha256: string }?
function M.origin(text)
  local version, name, sha256 = text:match "^%-%- ejected from agentbox (%S+): (%S+) sha256:(%x+)\n"
  return version and { version = version, name = name, sha256 = sha256 }
end

---Copies a built-in module into an overlay, with a first line that says what it came from.
---
---Returns nil, err when there is no such module (`notfound`) or the file is there already (`exists`).
---@async
---@param name string
---@param dir string
---@return string? path
---@return agentbox.Err? err
function M.eject(name, dir)
  local source = loader.builtin_source(name)
  if not source then
    local hint = require "agentbox.suggest".hint(name, loader.builtins())
    return nil, err.new("notfound", ("no built-in module '%s'%s"):format(name, hint))
  end
  local path = ("%s/%s.lua"):format(dir, (name:gsub("%.", "/")))
  local ok, problem = fs.mkdir(path:match "^(.*)/", true)
  if ok then ok, problem = fs.write(path, header(name, source) .. source, { exclusive = true }) end
  if not ok then return nil, problem end
  return path
end

---@class agentbox.Drift
---@field name string
---@field path string
---@field from? string        # the version it was ejected from; nil when written by hand
---@field upstream_changed boolean
---@field diff? string        # from the built-in module of today to the file; nil when equal

---What each overlay file that hides a built-in module changes.
---@async
---@param only? string   # one module's name
---@return agentbox.Drift[]?
---@return agentbox.Err? err
function M.diff(only)
  local modules, problem = M.list()
  if not modules then return nil, problem end
  local out = {}
  for _, module in ipairs(modules) do
    if module.shadows and (not only or module.name == only) then
      local text, bad = fs.read(module.from)
      if not text then return nil, bad end
      local source, origin = loader.builtin_source(module.name), M.origin(text)
      local body = origin and text:gsub("^[^\n]*\n", "", 1) or text
      out[#out + 1] = {
        name = module.name, path = module.from, from = origin and origin.version,
        upstream_changed = origin ~= nil and origin.sha256 ~= require "agentbox.sys.hash".sha256(source),
        diff = require "agentbox.overlay.diff".unified(source, body, module.name, module.from),
      }
    end
  end
  return out
end

-- Reads and writes of globals while a module loads; a lab's typo is otherwise silent.
local function strict_globals(problems, path)
  local seen = {}
  return setmetatable({}, {
    __index = function(_, key)
      if _G[key] == nil and not seen[key] then
        seen[key] = true
        problems[#problems + 1] = ("%s: reads the global '%s', which nobody sets"):format(path, tostring(key))
      end
      return _G[key]
    end,
    __newindex = function(env, key, value)
      problems[#problems + 1] = ("%s: sets the global '%s'; write `local`"):format(path, tostring(key))
      rawset(env, key, value)
    end,
  })
end

local function check_contract(name, value, path)
  if name:find "^agentbox%.sys%." then return ("%s: agentbox.sys.* cannot be replaced"):format(path) end
  if name:find "^agentbox%.tools%." then
    local tool, problem = require "agentbox.tool".load(path)
    return not tool and tostring(problem.msg) or nil
  elseif name:find "^agentbox%.cli%." then
    if type(value) ~= "table" or not (value.run or value.commands) or not value.summary then
      return ("%s: a command returns { name, summary, run }"):format(path)
    end
  elseif value == nil then
    return ("%s: the module returns nothing"):format(path)
  end
end

---Loads every module of an overlay and lists what is wrong with it.
---@async
---@param dir string
---@return string[]? problems
---@return agentbox.Err|integer err   # the number of modules checked when there is no error
function M.check(dir)
  local files, bad = M.files(dir)
  if not files then return nil, bad end
  local problems = {}
  for _, file in ipairs(files) do
    local chunk, syntax = loadfile(file.path, "t", strict_globals(problems, file.path))
    if not chunk then
      problems[#problems + 1] = syntax
    else
      local ok, value = pcall(chunk, file.name, file.path)
      local problem = ok and check_contract(file.name, value, file.path) or not ok and tostring(value) or nil
      if problem then problems[#problems + 1] = problem end
    end
  end
  return problems, #files
end

return M
