--- Servers of the Model Context Protocol, whose tools a rollout offers like any other.
---
---     local files = assert(ab.mcp.tools {
---       name = "files", inside = true, command = { "mcp-server-filesystem", "/workspace" },
---     })
---     ab.rollout.run { task = task, model = model, custom_tools = files }
---
--- A server is asked for its tools once, before the first rollout, so that every rollout offers the same. Each rollout
--- then has a conversation of its own: a process in its sandbox (`inside`) or in one made for it, or a session with a URL.
--- The schemas and results are in the record like those of every tool. docs/tools.md.
local client = require "agentbox.mcp.client"
local discovery = require "agentbox.mcp.discovery"
local schema = require "agentbox.schema"
local secret = require "agentbox.secret"
local server = require "agentbox.mcp.server"

local M = {}

---Asks a server for its tools. Raises on unknown options. They are for any number of rollouts; what the server tells
---is kept, so that asking again costs nothing.
---@async
---@nodiscard
---@param spec agentbox.McpServer
---@return agentbox.Tool[]? tools
---@return agentbox.Err? err   # code `config`: it does not start, does not answer, or what it tells is unusable
function M.tools(spec)
  spec = schema.options(spec, server.SHAPE, "mcp.tools")
  local wrong = server.problem(spec)
  if wrong then error("mcp.tools: " .. wrong, 2) end
  for _, value in pairs(spec.headers or {}) do secret.register(secret.reveal(value)) end
  return discovery.tools(spec)
end

---Starts a conversation of one's own, for scripts: `c:ask("tools/list", {}, 10)`.
---@async
---@nodiscard
---@param spec agentbox.McpServer
---@param sandbox? agentbox.Sandbox   # where `command` runs; needed for one
---@return agentbox.McpClient? client
---@return agentbox.Err? err
function M.connect(spec, sandbox)
  spec = schema.options(spec, server.SHAPE, "mcp.connect")
  local wrong = server.problem(spec) or spec.command and not sandbox and "a command needs a sandbox"
  if wrong then error("mcp.connect: " .. wrong, 2) end
  local transport, problem
  if spec.url then
    transport = require "agentbox.mcp.remote".open(spec)
  else
    transport, problem = require "agentbox.mcp.stdio".open(sandbox, spec)
    if not transport then return nil, problem end
  end
  return client.open(transport, spec.start_timeout_s)
end

---The tools of every server in a JSON file `{ "mcpServers": { NAME: { ... } } }`, the shape that other programs use,
---with the fields of `agentbox.McpServer` beside it. `${VAR}` in `env` and `headers` is the environment's.
---@async
---@nodiscard
---@param path string
---@return agentbox.Tool[]? tools
---@return agentbox.Err? err   # code `config`
function M.load(path)
  local servers, problem = require "agentbox.mcp.file".read(path)
  if not servers then return nil, problem end
  local tools = {}
  for _, spec in ipairs(servers) do
    local found
    found, problem = M.tools(spec)
    if not found then return nil, problem end
    table.move(found, 1, #found, #tools + 1, tools)
  end
  return tools
end

return M
