--- mcp/discovery.lua: asks a server for its tools and makes them tools of ours.
---
--- Names, descriptions and schemas come from the server: they are checked before a model sees them, and what is too
--- much is refused as a whole, since a list that was cut would be another environment.
local err = require "agentbox.err"
local gate = require "agentbox.async.gate"
local hash = require "agentbox.hash"
local json = require "agentbox.json"
local sandbox = require "agentbox.sandbox"
local session = require "agentbox.mcp.session"
local text = require "agentbox.text"

local M = {}

--- What one server may offer.
M.MAX_TOOLS, M.MAX_SCHEMA_BYTES = 256, 256 << 10
local MAX_PAGES = 64
local MAX_DESCRIPTION = 8000

--- Code points of what a server says of itself.
local MAX_IDENTITY = 200

--- How far past its own deadline a call is stopped from outside.
local GRACE_S = 5

local function unusable(spec, message, ...)
  return nil, err.new("config", ("MCP server %s: " .. message):format(spec.name, ...))
end

local function list(client, spec)
  local found, cursor = {}, nil
  for _ = 1, MAX_PAGES do
    local page, problem = client:ask("tools/list", json.object { cursor = cursor }, spec.start_timeout_s)
    if not page then return nil, problem end
    if type(page.tools) ~= "table" then return unusable(spec, "tools/list gave no list") end
    for _, entry in ipairs(page.tools) do found[#found + 1] = entry end
    if #found > M.MAX_TOOLS then return unusable(spec, "offers more than %d tools; name some in `only`", M.MAX_TOOLS) end
    cursor = page.nextCursor
    if type(cursor) ~= "string" then return found end
  end
  return unusable(spec, "tools/list has more than %d pages", MAX_PAGES)
end

local function wanted(spec, found)
  if not spec.only then return found end
  local by_name, chosen = {}, {}
  for _, entry in ipairs(found) do
    if type(entry) == "table" and type(entry.name) == "string" then by_name[entry.name] = entry end
  end
  for i, name in ipairs(spec.only) do
    if not by_name[name] then return unusable(spec, "has no tool %q", name) end
    chosen[i] = by_name[name]
  end
  return chosen
end

local function wrong_entry(entry)
  if type(entry) ~= "table" or type(entry.name) ~= "string" or entry.name == "" then return "without a name" end
  local parameters = entry.inputSchema
  if type(parameters) ~= "table" or parameters.type ~= "object" then return entry.name .. ": inputSchema is not of type object" end
  if #json.encode(parameters) > M.MAX_SCHEMA_BYTES then return entry.name .. ": inputSchema is too large" end
end

-- `additionalProperties` unsaid means that anything may come; the server checks what it gets.
local function definition(spec, entry, origin)
  local said = type(entry.description) == "string" and entry.description or type(entry.title) == "string" and entry.title or ""
  local server_name = entry.name
  local tool = require "agentbox.tool".define {
    api = 1, name = spec.name .. "_" .. server_name:gsub("[^%w_-]", "_"),
    description = text.cut(text.scrub(said), MAX_DESCRIPTION), parameters = entry.inputSchema, exclusive = true,
    timeout_s = spec.timeout_s + spec.start_timeout_s + GRACE_S,
    open = function(ctx) return session.enter(spec, ctx) end,
    run = function(_, args, held) return held:call(server_name, args) end,
    close = function(held) held:leave() end,
  }
  tool.origin = origin
  return tool
end

local function definitions(spec, found, origin)
  local tools, seen = {}, {}
  for i, entry in ipairs(found) do
    local wrong = wrong_entry(entry)
    if wrong then return unusable(spec, "tool %s", text.cut(text.scrub(wrong), MAX_DESCRIPTION)) end
    local made, tool = pcall(definition, spec, entry, origin)
    if not made then return unusable(spec, "tool %d: %s", i, tostring(tool)) end
    if seen[tool.name] then return unusable(spec, "two of its tools would be called %s", tool.name) end
    seen[tool.name], tools[i] = true, tool
  end
  return tools
end

-- For the record: where it came from, what it calls itself, and what it told.
local function origin_of(spec, client, found)
  local said = {}
  for i, word in ipairs { client.server.name or "unnamed", client.server.version or "unversioned" } do
    said[i] = text.cut(text.scrub(tostring(word)), MAX_IDENTITY)
  end
  return {
    name = "mcp:" .. spec.name, sha256 = hash.sha256(json.encode(found, { sorted = true })),
    from = ("%s (%s %s, protocol %s)"):format(spec.url or table.concat(spec.command, " "), said[1], said[2],
      text.cut(text.scrub(client.protocol), MAX_IDENTITY)),
  }
end

local function discover(spec)
  local home, problem
  if spec.command then
    home, problem = sandbox.create(spec.sandbox or {})
    if not home then return nil, problem end
  end
  local closing <close> = home -- luacheck: ignore
  local client
  client, problem = require "agentbox.mcp".connect(spec, home)
  if not client then return unusable(spec, "%s", tostring(problem.msg)) end
  local talking <close> = client -- luacheck: ignore
  local found
  found, problem = list(client, spec)
  if found then found, problem = wanted(spec, found) end
  if not found and problem.code == "config" then return nil, problem end
  if not found then return unusable(spec, "%s", problem.msg) end
  return definitions(spec, found, origin_of(spec, client, found))
end

-- By everything that was asked for. The gate makes a thousand rollouts that begin together ask once.
local known, asking = {}, gate.new(1)

---@async
---@param spec agentbox.McpServer   # checked
---@return agentbox.Tool[]? tools
---@return agentbox.Err? err
function M.tools(spec)
  local cacheable, key = pcall(json.encode, spec, { sorted = true })
  if cacheable and known[key] then return known[key] end
  local turn <close> = asking:enter() -- luacheck: ignore
  if cacheable and known[key] then return known[key] end
  local tools, problem = discover(spec)
  if tools and cacheable then known[key] = tools end
  return tools, problem
end

return M
