--- tool.lua: what a tool is, where tools come from, and which of them a rollout offers.
---
--- A tool is one file that returns `tool.define { ... }`. `run(ctx, args, state)` returns text for the model, or
--- nil and a message for a tool error the model can read. How calls are run is tool/set.lua.
local err = require "agentbox.err"
local fs = require "agentbox.fs"
local hash = require "agentbox.hash"
local json = require "agentbox.json"
local mt19937 = require "agentbox.tool.mt19937"
local schema = require "agentbox.schema"
local set = require "agentbox.tool.set"

local M = {}

--- The contract's number. A file written for a newer one is refused.
M.API = 1

--- The built-in tools; the order is that of the schemas on the wire and of the draws when tools are dropped.
M.BUILTINS = { "list_files", "read_file", "write_file", "edit_file", "run_command", "run_tests" }

---@class agentbox.Tool
---@field api integer
---@field name string
---@field description string
---@field parameters table       # JSON Schema
---@field run fun(ctx: agentbox.Ctx, args: table, state: any): string?, any
---@field open? fun(ctx: agentbox.Ctx): any   # at first use in a rollout; its result is given to run
---@field close? fun(state: any)              # at the end of the rollout, if open ran
---@field exclusive? boolean     # never two at once in a sandbox (true of every tool that is not independent)
---@field independent? boolean   # does not touch the sandbox: calls of one turn may run at the same time
---@field timeout_s? number      # for one call; at most the step's time
---@field cpu_s? number          # Lua CPU time for one call, 10 unless given
---@field memory_mb? integer     # Lua memory for one call, 256 unless given

local DEFINITION = {
  api = { "integer", required = true }, name = { "string", required = true },
  description = { "string", required = true }, parameters = { "table" }, run = { "function", required = true },
  open = { "function" }, close = { "function" }, exclusive = { "boolean" }, independent = { "boolean" },
  timeout_s = { "number", min = 0 }, cpu_s = { "number", min = 0 }, memory_mb = { "integer", min = 1 },
}

local JSON_TYPES = { string = 1, number = 1, integer = 1, boolean = 1, array = 1, object = 1 }

local PARAMETER_KEYS = { [1] = 1, [2] = 1, [3] = 1, default = 1, optional = 1, enum = 1, items = 1, minimum = 1,
  maximum = 1, properties = 1, required = 1 }

local function one_parameter(entry, at)
  local name, kind, description = entry[1], entry[2], entry[3]
  local here = ("parameters[%d]"):format(at)
  if type(name) ~= "string" or name == "" then return nil, here .. ": the first item must be the name" end
  if not JSON_TYPES[kind] then
    return nil, ("%s (%s): the type must be one of %s"):format(here, name, table.concat(schema.names(JSON_TYPES), ", "))
  end
  for key in pairs(entry) do
    if not PARAMETER_KEYS[key] then return nil, ("%s (%s): unknown key %s"):format(here, name, tostring(key)) end
  end
  local prop = json.object {}
  prop.type = kind
  if description then prop.description = description end
  for _, key in ipairs { "enum", "items", "minimum", "maximum", "properties", "default" } do
    if entry[key] ~= nil then prop[key] = entry[key] end
  end
  if prop.enum then prop.enum = json.array(prop.enum) end
  return prop
end

--- The short form is a list, so that the order on the wire is the order in the file.
local function from_list(list)
  local out, required = json.object {}, json.array {}
  out.type = "object"
  out.properties = json.object {}
  for at, entry in ipairs(list) do
    if type(entry) ~= "table" then return nil, ("parameters[%d]: must be a table"):format(at) end
    local prop, problem = one_parameter(entry, at)
    if not prop then return nil, problem end
    if out.properties[entry[1]] then return nil, ("parameters: %s is there twice"):format(entry[1]) end
    out.properties[entry[1]] = prop
    if entry.default == nil and not entry.optional then required[#required + 1] = entry[1] end
  end
  if #required > 0 then out.required = required end
  out.additionalProperties = false
  return out
end

local function parameters_of(given)
  if given == nil or next(given) == nil then return from_list {} end
  if given.type == "object" or given.properties then return given end
  if schema.is_list(given) then return from_list(given) end
  return nil, "parameters: must be a list of { name, type, description } or a JSON Schema of type object"
end

--- Checks a tool. A mistake raises and names the field: a broken tool must not reach a model.
---@param spec table
---@return agentbox.Tool
function M.define(spec)
  local tool = schema.options(spec, DEFINITION, "tool.define")
  if tool.api > M.API or tool.api < 1 then
    error(("tool.define: %s: api %d is not supported (this is api %d)"):format(tool.name, tool.api, M.API), 2)
  end
  if not tool.name:match("^[%w_-]+$") or #tool.name > 64 then
    error("tool.define: name must be 1 to 64 letters, digits, _ or -: " .. tool.name, 2)
  end
  if tool.exclusive and tool.independent then
    error(("tool.define: %s: exclusive and independent contradict each other"):format(tool.name), 2)
  end
  local parameters, problem = parameters_of(tool.parameters)
  if not parameters then error(("tool.define: %s: %s"):format(tool.name, problem), 2) end
  tool.parameters = parameters
  return setmetatable(tool, { __name = "agentbox.Tool" })
end

local function is_tool(value)
  return type(value) == "table" and (getmetatable(value) or {}).__name == "agentbox.Tool"
end

--- Loads a tool from a Lua source file (text only, never bytecode).
---@async
---@param path string
---@return agentbox.Tool? tool
---@return agentbox.Err? err   # code `config`; the text names file and line
function M.load(path)
  local text, problem = fs.read(path, 1 << 20)
  if not text then
    local said = problem.code == "notfound" and "no such tool file" or problem.msg
    return nil, err.new("config", path .. ": " .. said)
  end
  local chunk, syntax = load(text, "@" .. path, "t")
  if not chunk then return nil, err.new("config", syntax) end
  local ok, result = pcall(chunk)
  if not ok then return nil, err.new("config", path .. ": " .. tostring(result)) end
  if not is_tool(result) then
    return nil, err.new("config", path .. ': must return require("agentbox.tool").define { ... }')
  end
  result.origin = { name = result.name, from = path, sha256 = hash.sha256(text) }
  return result
end

--- A built-in tool, or an overlay's of the same name.
---@param name string
---@return agentbox.Tool?
---@return string? problem
function M.get(name)
  if not name:match("^[%w_]+$") then return nil, "no tool is called " .. name end
  local ok, result = pcall(require, "agentbox.tools." .. name)
  if ok and is_tool(result) then return result end
  if ok then return nil, ("agentbox.tools.%s does not return a tool"):format(name) end
  if not tostring(result):find("module 'agentbox.tools." .. name .. "' not found", 1, true) then
    return nil, tostring(result)
  end
  local near = schema.suggest(name, M.BUILTINS)
  if near == "" then near = ("; built in are %s; another one is a file (--tool), or in an overlay"):format(table.concat(M.BUILTINS, ", ")) end
  return nil, ("unknown tool: %s%s"):format(name, near)
end

-- ---------------------------------------------------------------- selection

local function mode_names(mode)
  if mode == nil or mode == "structured" then return M.BUILTINS end
  if mode == "shell" then return { "run_command" } end
  if mode == "custom" then return {} end
  if type(mode) == "table" then return mode end
  return nil, ("tools: must be structured, shell, custom or a list of names, is %s%s"):format(
    mode, schema.suggest(mode, { "structured", "shell", "custom" }))
end

-- A file is a tool, or lists servers that have some.
local function load_file(path)
  if path:find "%.json$" then return require "agentbox.mcp".load(path) end
  local tool, problem = M.load(path)
  return tool and { tool }, problem
end

local function resolve_custom(list)
  local out = {}
  for i, item in ipairs(list or {}) do
    local tools, problem = { item }, nil
    if type(item) == "string" then tools, problem = load_file(item) end
    if not tools then return nil, problem end
    for _, tool in ipairs(tools) do
      if not is_tool(tool) then return nil, err.new("config", ("custom tools: item %d is not a tool"):format(i)) end
      out[#out + 1] = tool
    end
  end
  return out
end

local function by_name(tools)
  local map = {}
  for _, tool in ipairs(tools) do map[tool.name] = tool end
  return map
end

--- Custom tools replace a tool of the same name in its place; others come after.
local function add_custom(tools, custom)
  for _, tool in ipairs(custom) do
    local at
    for i, have in ipairs(tools) do
      if have.name == tool.name then at = i end
    end
    tools[at or #tools + 1] = tool
  end
end

local function named_tools(names, custom)
  local own, tools, seen = by_name(custom), {}, {}
  for i, name in ipairs(names) do
    if type(name) ~= "string" then
      return nil, err.new("config", ("tools[%d]: must be the name of a tool, is %s"):format(i - 1, schema.word(name)))
    end
    if not seen[name] then
      local tool, problem = own[name], nil
      if not tool then tool, problem = M.get(name) end
      if not tool then return nil, err.new("config", problem) end
      seen[name] = true
      tools[#tools + 1] = tool
    end
  end
  return tools
end

local function drop(tools, names, probability, seed)
  local dropped, kept = {}, {}
  for _, name in ipairs(names or {}) do dropped[name] = true end
  local draws = (probability or 0) > 0 and mt19937.new(seed or os.time())
  for _, tool in ipairs(tools) do
    -- One draw per tool that is left, in order: the same seed drops the same tools as AgentBox does.
    if not dropped[tool.name] and not (draws and draws:random() < probability) then kept[#kept + 1] = tool end
  end
  return kept
end

---@class agentbox.ToolSelection
---@field mode? string|string[]      # structured, shell, custom or names
---@field allowed? string[]          # a task's list: exactly these
---@field custom? (agentbox.Tool|string)[]   # tools or files
---@field builtins? boolean
---@field drop? string[]
---@field drop_prob? number
---@field seed? integer

--- The tools of one rollout.
---@async
---@param opts agentbox.ToolSelection
---@return agentbox.ToolSet? set
---@return agentbox.Err? err   # code `config`, before anything was started
function M.select(opts)
  local custom, problem = resolve_custom(opts.custom)
  if not custom then return nil, problem end
  local names, wrong = mode_names(opts.allowed or opts.mode)
  if not names then return nil, err.new("config", wrong) end
  if opts.builtins == false and not opts.allowed then names = {} end
  local tools
  tools, problem = named_tools(names, custom)
  if not tools then return nil, problem end
  if not opts.allowed then add_custom(tools, custom) end
  return set.new(drop(tools, opts.drop, opts.drop_prob, opts.seed))
end

return M
