--- The seal: one hash over everything that decides what a rollout of a suite comes to, beyond AgentBox's content hash.
---
--- It is made of parts, so that a difference has a name: tasks (every field, byte and mode), images (their digests),
--- sandbox, agent, tools (as they go over the wire), prompts, verifiers, scoring and library (the Lua that ran).
local canonical = require "agentbox.suite.canonical"
local err = require "agentbox.err"
local fs = require "agentbox.fs"
local hash = require "agentbox.sys.hash"
local image = require "agentbox.image"
local json = require "agentbox.json"
local model = require "agentbox.model"
local modules = require "agentbox.record.modules"
local overlay = require "agentbox.overlay"
local plans = require "agentbox.rollout.plan"
local policy = require "agentbox.suite.policy"
local schema = require "agentbox.schema"

local M = {}

--- In the order in which differences are told.
M.PARTS = { "tasks", "images", "sandbox", "agent", "tools", "prompts", "verifiers", "scoring", "library" }

local function digest(value) return "sha256:" .. hash.sha256(canonical.text(value)) end

-- What the plan says without what is new with every rollout.
local function parts_of_plan(plan, checks)
  local spec = {}
  for key, value in pairs(plan.spec) do
    if key ~= "name" and key ~= "backend" then spec[key] = value end
  end
  local agent = {}
  for key, value in pairs(plan.config) do
    if type(value) ~= "function" then agent[key] = value end
  end
  local limits = {}
  for key, value in pairs(plan.limits) do limits[key] = value end
  return {
    sandbox = { spec = spec, workdir = plan.workdir, checks = checks },
    agent = { name = plan.agent_name, config = agent, limits = limits },
    tools = plan.tools:wire(), prompts = plan.prompt,
    verifiers = { name = plan.verifier_name, spec = plan.task.verifier },
  }
end

-- The digest of an image that is here; nil when it is not, or is the machine itself.
local function image_id(name)
  if name == "host" then return nil end
  local found = image.get(name)
  return found and found.id or nil
end

local function plan_of(suite, task, over, wire)
  local options = policy.of(suite.manifest, task, over)
  local given = schema.options({ task = task, model = wire, agent = options.agent, sandbox = options.sandbox },
    plans.OPTIONS, "suite.seal")
  local plan, problem = plans.make(given)
  if not plan then return nil, err.wrap(problem, "task " .. task.task_id) end
  return plan, options
end

local function add_task(sums, suite, task, over, wire)
  local plan, options = plan_of(suite, task, over, wire)
  if not plan then return nil, options end
  sums.tasks[task.task_id] = task.hash
  local parts = parts_of_plan(plan, options.checks)
  for name, value in pairs(parts) do sums[name][task.task_id] = digest(value) end
  local name = plan.spec.image
  if sums.images[name] == nil then sums.images[name] = image_id(name) or json.null end
  return true
end

-- The shipped library, and what overlays put beside or before it: by name and bytes, wherever they lie. Modules that only a
-- student's script loads decide nothing here.
local function library()
  local out = { modules.list()[1].hash }
  local list, problem = overlay.list()
  if not list then return nil, problem end
  for _, module in ipairs(list) do
    if module.from ~= "builtin" then
      local text
      text, problem = fs.read(module.from)
      if not text then return nil, err.wrap(problem, module.from) end
      out[#out + 1] = ("%s %s"):format(module.name, hash.sha256(text))
    end
  end
  return out
end

--- The seal of a suite as this engine would run it.
---@async
---@param suite agentbox.Suite
---@param over? agentbox.SuiteOverrides
---@return { hash: string, parts: table<string, string>, unpinned: string[] }? seal   # unpinned: images without a digest
---@return agentbox.Err? err
function M.of(suite, over)
  local sums, wire = {}, model.scripted { name = "seal", "" }
  for _, name in ipairs(M.PARTS) do sums[name] = {} end
  for _, task in ipairs(suite.tasks) do
    local ok, bad = add_task(sums, suite, task, over or {}, wire)
    if not ok then return nil, bad end
  end
  local manifest = suite.manifest
  sums.scoring = { n = manifest.n_per_task, seed = manifest.seed, scoring = manifest.scoring }
  local problem
  sums.library, problem = library()
  if not sums.library then return nil, problem end
  local parts, unpinned = json.object {}, {}
  for _, name in ipairs(M.PARTS) do parts[name] = digest(sums[name]) end
  for name, id in pairs(sums.images) do
    if id == json.null then unpinned[#unpinned + 1] = name end
  end
  table.sort(unpinned)
  return { hash = digest(parts), parts = parts, unpinned = unpinned }
end

--- The parts in which two seals differ; all of them when one has none.
---@param a? table<string, string>
---@param b? table<string, string>
---@return string[]
function M.differences(a, b)
  local out = {}
  for _, name in ipairs(M.PARTS) do
    if (a or {})[name] ~= (b or {})[name] then out[#out + 1] = name end
  end
  return out
end

return M
