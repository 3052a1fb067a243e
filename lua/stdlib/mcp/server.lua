--- mcp/server.lua: what may be said about a server, and what is wrong with it.
local schema = require "agentbox.schema"

local M = {}

---@class agentbox.McpServer
---@field name string              # begins the names of its tools: NAME_TOOL
---@field command? string[]        # a program that speaks on stdin and stdout, in a sandbox
---@field env? table<string, string>
---@field cwd? string
---@field user? string|integer
---@field inside? boolean          # the program runs in the rollout's own sandbox, on its files
---@field sandbox? agentbox.SandboxSpec   # else in one made like this; with `inside`: where it is asked for its tools
---@field url? string              # or a server behind this URL (Streamable HTTP)
---@field headers? table<string, string>
---@field only? string[]           # of its tools, by the server's names; unless given, all
---@field timeout_s? number        # for one call; 60
---@field start_timeout_s? number  # to start and to tell its tools; 30

--- The fields, for schema.lua.
M.SHAPE = {
  name = { "string", required = true }, command = { "list" }, env = { "map" }, cwd = { "string" },
  user = { "string|integer" }, inside = { "boolean" }, sandbox = { "map" }, url = { "string" }, headers = { "map" },
  only = { "list" }, timeout_s = { "number", min = 0.001, default = 60 },
  start_timeout_s = { "number", min = 0.001, default = 30 },
}

local function list_problem(list, what)
  for i, item in ipairs(list or {}) do
    if type(item) ~= "string" then return ("%s[%d]: must be a string, is %s"):format(what, i - 1, schema.word(item)) end
  end
end

--- What is wrong with a server of the right shape, in words.
---@param spec agentbox.McpServer
---@return string?
function M.problem(spec)
  if not spec.name:find "^[%w_-]+$" or #spec.name > 32 then return "name: must be 1 to 32 letters, digits, _ or -" end
  if (spec.command == nil) == (spec.url == nil) then return "give either command or url" end
  if spec.command and #spec.command == 0 then return "command: is empty" end
  if spec.url and not spec.url:find "^https?://" then return "url: must begin with http:// or https://" end
  for _, name in ipairs(spec.url and { "env", "cwd", "user", "inside", "sandbox" } or { "headers" }) do
    if spec[name] ~= nil then return ("%s: has no meaning with %s"):format(name, spec.url and "url" or "command") end
  end
  return list_problem(spec.command, "command") or list_problem(spec.only, "only")
end

return M
