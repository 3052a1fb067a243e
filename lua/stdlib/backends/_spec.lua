--- What may be asked of a sandbox. One list for sandbox.create, which raises; for a rollout's plan, where it is an
--- error before anything has started; and for what a task may say.
local files = require "agentbox.backends._files"
local network = require "agentbox.backends._network"
local schema = require "agentbox.schema"

local M = {}

--- The smallest and the largest number that mean anything. Below, nothing can run; above, the kernel refuses.
---@type table<string, { [1]: number, [2]: number }>
M.RANGES = {
  memory_mb = { 1, 1 << 30 }, memswap_mb = { 0, 1 << 30 }, cpu_count = { 0.01, 4095 }, pids_limit = { 2, 1 << 22 },
  disk_mb = { 1, 1 << 30 }, inodes = { 100, 1 << 40 }, nofile = { 16, 1 << 30 },
}

--- The limits as fields of a schema.
---@param kinds string   # "number", or "number|boolean" where false lifts a limit
---@return table
function M.limits(kinds)
  local fields = {}
  for name, range in pairs(M.RANGES) do fields[name] = { kinds, min = range[1], max = range[2] } end
  return fields
end

local SHAPE = {
  backend = { "string" }, image = { "text" }, network = { "string|map" },
  limits = { "record", fields = M.limits "number|boolean" }, env = { "map" }, workspace = { "text" },
  user = { "text|integer" }, name = { "string" }, layers = { "list" }, runtime = { "string" },
  read_only = { "boolean" }, boot_timeout_s = { "number", min = 0.001, max = 86400 },
}

---@param path? string
---@return boolean
function M.is_workspace(path)
  return path ~= nil and path:find "^/+[^/]" ~= nil and not (path .. "/"):find "/%.%.?/"
end

--- What is wrong with an environment, in words.
---@param env table<string, any>
---@return string?
function M.env_problem(env)
  for name, value in pairs(env) do
    name = tostring(name)
    if name == "" or name:find "[=%z]" then return ("env: %q cannot be the name of a variable"):format(name) end
    if type(value) == "string" and value:find("\0", 1, true) then return "env." .. name .. ": holds a zero byte" end
  end
end

--- What is wrong with the name of an image, in words.
---@param image string?
---@return string?
function M.image_problem(image)
  if image == "" then return "image: is empty" end
end

local function problem_of(spec)
  local wrong = M.image_problem(spec.image)
  if wrong then return wrong end
  if spec.workspace and not M.is_workspace(spec.workspace) then
    return "workspace must be an absolute path below /"
  elseif spec.workspace and files.is_kernels({ kind = spec.backend or "native" }, spec.workspace) then
    return "workspace must not be in /proc or /dev"
  end
  return spec.env and M.env_problem(spec.env)
end

--- Checks what was asked for.
---@param spec table
---@return table? clean
---@return string? problem
function M.check(spec)
  local clean, problem = schema.check(spec, SHAPE)
  if not clean then return nil, problem.msg end
  local wrong = problem_of(clean)
  if not wrong and clean.network then clean.network, wrong = network.check(clean.network) end
  return not wrong and clean or nil, wrong
end

return M
