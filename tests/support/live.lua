--- Rollouts and sandboxes that are real, for the tests of faults.
---
---     local live = dofile "tests/support/live.lua"
---     M.setUp = live.need_native
---     for _, backend in ipairs(live.BACKENDS) do local sb <close> = live.sandbox(backend) ... end
---
--- AGENTBOX_TEST_BACKENDS names other backends, separated by spaces: with "docker podman" (tests/docker/engine.sh gives both)
--- the same tests try containers of a test image, and rollouts are made on the first of them.
local lu = require "luaunit"
local model = require "agentbox.model"
local rollout = require "agentbox.rollout"
local sandbox = require "agentbox.sandbox"
local test = require "agentbox.test"

local M = {}

--- What every promise about commands and files is tried on.
M.BACKENDS = { "native", "none" }

local image = dofile((debug.getinfo(1, "S").source:match "^@(.*/)" or "./") .. "testimage.lua")
local given = os.getenv "AGENTBOX_TEST_BACKENDS"

if given then
  M.BACKENDS = {}
  for name in given:gmatch "%S+" do
    if name ~= "podman" or os.getenv "AGENTBOX_TEST_PODMAN" then M.BACKENDS[#M.BACKENDS + 1] = name end
  end
end

--- Whether a backend's sandboxes are containers of an engine.
function M.is_container(backend) return backend == "docker" or backend == "podman" end

local prepared = {}

--- What a sandbox of that backend is made of, unless it is said.
function M.image_of(backend)
  if not M.is_container(backend) then return nil end
  if not prepared[backend] then image.prepare(backend) end
  prepared[backend] = true
  return image.NAME
end

--- The verifier leaves no doubt whether it ran: it succeeds.
M.TASK = { task_id = "t", description = "d", verifier = { command = "true" } }

--- Skips the test where no native sandbox can be made.
function M.need_native()
  if given then return end
  local sb, problem = sandbox.create {}
  if not sb then test.skip("no native sandbox here: " .. problem.msg) end
  sb:close()
end

---@param backend string
---@param spec? table
---@return agentbox.Sandbox
function M.sandbox(backend, spec)
  local all = { backend = backend, image = M.image_of(backend) }
  for key, value in pairs(spec or {}) do all[key] = value end
  return assert(sandbox.create(all))
end

--- A model's turn that runs one command.
---@param command string
---@param timeout_s? number
---@return table
function M.sh(command, timeout_s)
  return { tool_calls = { { name = "run_command", arguments = { command = command, timeout_s = timeout_s } } } }
end

--- One rollout of TASK, or of `opts.task`.
---@param what table|function   # a model, a script's turns, or a function that answers
---@param opts? table
---@return agentbox.Traj
function M.run(what, opts)
  local chosen = what
  if type(what) == "function" then
    chosen = model.fn(what)
  elseif not what.complete then
    chosen = model.scripted(what)
  end
  local all = { task = M.TASK, model = chosen }
  for key, value in pairs(opts or {}) do all[key] = value end
  local backend = M.BACKENDS[1]
  if M.is_container(backend) then
    local sandboxed = { backend = backend, image = M.image_of(backend), ensure_pytest = false }
    for key, value in pairs(all.sandbox or {}) do sandboxed[key] = value end
    all.sandbox = sandboxed
  end
  return assert(rollout.run(all))
end

--- How many processes that the sandbox can see have these bytes on their command line. Those that look have not.
---@param sb agentbox.Sandbox
---@param tag string
---@return integer
function M.count(sb, tag)
  local out = assert(sb:exec("grep -alf - /proc/[0-9]*/cmdline 2>/dev/null | wc -l", { stdin = tag .. "\n" }))
  lu.assertEquals(out.exit_code, 0)
  return math.tointeger(tonumber(out.stdout))
end

return M
