--- mcp/file.lua: a file that lists servers.
local config_file = require "agentbox.config.file"
local err = require "agentbox.err"
local fs = require "agentbox.fs"
local json = require "agentbox.json"
local os_sys = require "agentbox.sys.os"
local schema = require "agentbox.schema"
local server = require "agentbox.mcp.server"

local M = {}

--- The largest file.
local MAX_BYTES = 1 << 20

-- `"command": "npx", "args": [...]` is how most programs write it; ours is a list.
local function command_of(given)
  if type(given.command) ~= "string" then return given.command end
  local command = { given.command }
  for i, word in ipairs(given.args or {}) do command[i + 1] = word end
  return command
end

local function expanded(spec, file)
  for _, key in ipairs { "env", "headers" } do
    if spec[key] then
      local value, problem = config_file.expand(file, ("mcpServers.%s.%s"):format(spec.name, key), spec[key],
        "map", os_sys.env)
      if not value then return nil, problem end
      spec[key] = value
    end
  end
  return spec
end

local function server_of(name, given, file)
  local at = ("%s: mcpServers.%s"):format(file.path, name)
  if not schema.is_map(given) then return nil, err.new("config", at .. ": must be an object") end
  local spec = {}
  for key, value in pairs(given) do spec[key] = value end
  spec.name, spec.command, spec.args, spec.type = name, command_of(given), nil, nil
  local clean, problem = schema.check(spec, server.SHAPE, { where = at })
  if not clean then return nil, problem end
  local wrong = server.problem(clean)
  if wrong then return nil, err.new("config", ("%s: %s"):format(at, wrong)) end
  return expanded(clean, file)
end

---@async
---@param path string
---@return agentbox.McpServer[]? servers   # in the order of the file
---@return agentbox.Err? err   # code `config`
function M.read(path)
  local bytes, problem = fs.read(path, MAX_BYTES)
  if not bytes then return nil, err.new("config", path .. ": " .. problem.msg) end
  local doc
  doc, problem = json.decode(bytes)
  if not doc then return nil, err.new("config", path .. ": " .. problem.msg) end
  if not schema.is_map(doc) or not schema.is_map(doc.mcpServers) then
    return nil, err.new("config", path .. ": must be an object with mcpServers")
  end
  local servers = {}
  for name, given in pairs(doc.mcpServers) do
    local spec
    spec, problem = server_of(name, given, { path = path, text = bytes })
    if not spec then return nil, problem end
    servers[#servers + 1] = spec
  end
  return servers
end

return M
