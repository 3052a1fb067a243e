--- verify.lua: verifiers, found by name, combined, run and brought to one verdict.
---
--- A verifier is `function(ev) → number or table of named numbers, text, facts`; `nil, err` means that the work could
--- not be judged and stays unscored. What ev offers: verify/evidence.lua.
local command_line = require "agentbox.verify.command_line"
local err = require "agentbox.err"
local evidence = require "agentbox.verify.evidence"
local fiber = require "agentbox.sys.fiber"
local fs = require "agentbox.fs"
local guard = require "agentbox.tool.guard"
local protect = require "agentbox.verify.protect"
local cut = require "agentbox.text".cut
local schema = require "agentbox.schema"

local M = {}

--- Built-in types; AgentBox's five are among them.
local TYPES = {
  pytest = "pytest", test = "pytest", command = "command", shell = "command", custom = "command", files = "files",
  llm_judge = "llm_judge", python = "python", harbor = "harbor",
}

--- Those that read params of a form of their own.
local READ = { files = true, llm_judge = true, python = true }

--- For one verifier, beside what its commands are allowed.
local LIMITS = { timeout_s = 600, cpu_s = 60, memory_mb = 512 }
--- Over a long command of the task's own: for making sandboxes and collecting tests.
local MARGIN_S = 300

-- ---------------------------------------------------------------- finding

local HINT = "A verifier is a module %s.lua in an overlay (agentbox -L DIR, lua_path in agentbox.yaml), or a file: --verifier FILE.lua."

local function module_verifier(name)
  local module = name:find(".", 1, true) and name or "agentbox.verifiers." .. name
  local ok, found = pcall(require, module)
  if not ok then
    local missing = tostring(found):find("module '" .. module .. "' not found", 1, true)
    return nil, err.new("verifier", missing and "unknown verifier: " .. name or tostring(found),
      missing and { hint = HINT:format((module:gsub("%.", "/"))) } or nil)
  end
  local fn = type(found) == "table" and found.run or found
  if type(fn) ~= "function" then return nil, err.new("verifier", module .. " does not return a verifier") end
  return fn
end

--- Loads a verifier from a Lua file that the lab names; a task's folder is never searched for one.
---@async
---@param path string
---@return function?
---@return agentbox.Err?
function M.load(path)
  local text, problem = fs.read(path, 1 << 20)
  if not text then return nil, err.new("config", path .. ": " .. problem.msg) end
  local chunk, syntax = load(text, "@" .. path, "t")
  if not chunk then return nil, err.new("config", syntax) end
  local ok, found = pcall(chunk)
  if not ok then return nil, err.new("config", path .. ": " .. tostring(found)) end
  local fn = type(found) == "table" and found.run or found
  if type(fn) ~= "function" then return nil, err.new("config", path .. " does not return a verifier") end
  return fn
end

local GIVEN = {
  run = { "function", required = true }, name = { "string", default = "table" }, timeout_s = { "number", min = 0 },
  cpu_s = { "number", min = 0 }, memory_mb = { "integer", min = 1 },
}

--- The verifier of a task, or the one a lab gives instead: a function, a module's name, a Lua file, or a table
--- { run, name, timeout_s, cpu_s, memory_mb }.
---@async
---@param given nil|function|string|table
---@param spec table      # task.verifier
---@return function?
---@return agentbox.Err?  # code `verifier` or `config`
---@return string? name
---@return table? limits
function M.resolve(given, spec)
  if type(given) == "function" then return given, nil, "function" end
  if type(given) == "table" then
    given = schema.options(given, GIVEN, "verifier", 2)
    return given.run, nil, given.name, given
  end
  if type(given) == "string" then
    local fn, problem
    if given:find("%.lua$") then fn, problem = M.load(given) else fn, problem = module_verifier(given) end
    return fn, problem, given
  end
  if spec.type == "lua" then
    local fn, problem = module_verifier(spec.name)
    return fn, problem, spec.name
  end
  local name = command_line.is_tests(spec) and "pytest" or TYPES[spec.type]
  if not name and not spec.type:find(".", 1, true) then
    return nil, err.new("task", ("verifier.type: unknown: %s%s"):format(
      spec.type, schema.suggest(spec.type, { "pytest", "test", "command", "shell", "custom", "files", "llm_judge", "python", "lua" })))
  end
  local fn, problem = module_verifier(name or spec.type)
  return fn, problem, name or spec.type
end

--- Whether a task's own verifier can read what the task tells it: a mistake is known before a model is asked.
---@async
---@param task agentbox.Task
---@return true? fine
---@return agentbox.Err? err   # code `task`
function M.check(task)
  local spec = task.verifier
  local read = READ[spec.type] and require("agentbox.verifiers." .. spec.type).read
  if not read then return true end
  local opts, problem = read(spec.params or task.params, task)
  return opts and true, problem
end

-- ---------------------------------------------------------------- running

---@class agentbox.VerifyOpts
---@field task agentbox.Task
---@field stage agentbox.Stage
---@field remains agentbox.Remains
---@field verifier function
---@field name string
---@field limits? table
---@field traj table
---@field rec agentbox.Recorder
---@field user? string|integer

---@class agentbox.Verdict
---@field success boolean
---@field reward number
---@field components? { name: string, score: number, weight: number }[]
---@field agents? table<string, number>   # rewards of single speakers (facts.agents)
---@field text? string
---@field exit_code? integer
---@field stdout? string
---@field stderr? string
---@field duration_s? number
---@field command? string
---@field report? table
---@field timed_out? boolean
---@field denied? agentbox.Denial[]   # what the network's list refused to the verifier
---@field tamper agentbox.Tamper
---@field scorer { name: string }

local function finite(number) return type(number) == "number" and number == number and math.abs(number) ~= math.huge end

--- A table of named numbers: `reward` is the value if it is there, else the mean of all is.
local function from_named(values)
  local components, sum = {}, 0
  for _, name in ipairs(schema.names(values)) do
    if not finite(values[name]) then return nil, ("the number %s is %s"):format(name, tostring(values[name])) end
    components[#components + 1] = { name = name, score = values[name], weight = name == "reward" and 1 or 0 }
    sum = sum + values[name]
  end
  if #components == 0 then return nil, "the verifier returned no numbers" end
  if values.reward then return values.reward, nil, components end
  for _, component in ipairs(components) do component.weight = 1 / #components end
  return sum / #components, nil, components
end

local function bad_value(text) return nil, err.new("verifier", text) end

--- Brings what a verifier returned to a verdict.
local function verdict_of(value, text, facts, spec)
  facts = type(facts) == "table" and facts or {}
  local components, reward = facts.components, value
  if type(value) == "boolean" then
    reward = value and spec.reward_success or spec.reward_failure
    facts.success = value
  elseif type(value) == "table" then
    local problem
    reward, problem, components = from_named(value)
    if problem then return bad_value(problem) end
  end
  if not finite(reward) then
    return bad_value(("the verifier gave %s: a number is wanted, true or false, or a table of named numbers"):format(
      type(reward) == "string" and ("the text %q"):format(cut(reward, 60)) or tostring(reward)))
  end
  for name, number in pairs(facts.agents or {}) do
    if not finite(number) then return bad_value(("the reward of %s is %s"):format(tostring(name), tostring(number))) end
  end
  local success = facts.success
  if success == nil then success = reward >= spec.reward_success end
  return {
    success = success, reward = reward, components = components, agents = facts.agents, text = type(text) == "string" and text or nil,
    exit_code = facts.exit_code, stdout = facts.stdout, stderr = facts.stderr, duration_s = facts.duration_s,
    command = facts.command, report = facts.report, timed_out = facts.timed_out,
  }
end

--- Calls one verifier with evidence of its own, so that code run for one cannot prepare the ground for the next.
local function call(fn, limits, opts, rec)
  local ev <close> = evidence.new(opts)
  local function body()
    fiber.current():locals().log = function(level, line) rec:event(level, line) end
    return fn(ev)
  end
  local ok, value, text, facts = guard.call(body, {
    cpu_s = limits.cpu_s or LIMITS.cpu_s, memory_bytes = (limits.memory_mb or LIMITS.memory_mb) << 20,
    blame = fn,
  }, limits.timeout_s or math.max(LIMITS.timeout_s, opts.spec.timeout_s + MARGIN_S))
  if ok == nil then
    local defect = value
    return nil, err.new("verifier", "the verifier failed: " .. defect.msg, { traceback = defect.traceback })
  end
  if ok == false then return nil, value end
  if value == nil then
    if err.is(text) then return nil, text end
    return nil, err.new("verifier", tostring(text or "the verifier gave no result"))
  end
  local verdict, problem = verdict_of(value, text, facts, opts.spec)
  if verdict then verdict.denied = ev:denied() end
  return verdict, problem
end

--- Verifies what an agent left.
---@async
---@param opts agentbox.VerifyOpts
---@return agentbox.Verdict? verdict
---@return agentbox.Err? err     # could not be judged: verifier, task, or the sandbox's own failure
---@return agentbox.Tamper tamper
function M.run(opts)
  local tamper = protect.no_tamper()
  local verdict, problem = call(opts.verifier, opts.limits or {}, {
    task = opts.task, spec = opts.task.verifier, stage = opts.stage, remains = opts.remains, user = opts.user,
    traj = opts.traj, tamper = tamper, rec = opts.rec,
  }, opts.rec)
  if not verdict and problem.class == "policy" then
    verdict = { success = false, reward = opts.task.verifier.reward_failure, text = problem.msg }
  end
  if not verdict then return nil, problem, tamper end
  verdict.tamper, verdict.scorer = tamper, { name = opts.name }
  return verdict, nil, tamper
end

-- ---------------------------------------------------------------- combining

local OPERATORS = {
  [">"] = function(a, b) return a > b end, [">="] = function(a, b) return a >= b end,
  ["<"] = function(a, b) return a < b end, ["<="] = function(a, b) return a <= b end,
  ["=="] = function(a, b) return a == b end, ["~="] = function(a, b) return a ~= b end,
}

local function condition(text)
  if text == nil then return function() return true end end
  local name, operator, number = text:match("^%s*([%w_]+)%s*([<>=~]=?)%s*(-?[%d.]+)%s*$")
  local compare = OPERATORS[operator or ""]
  if not compare or not tonumber(number) then error('verify.compose: only_if must read like "tests > 0": ' .. text, 3) end
  return function(scores) return scores[name] ~= nil and compare(scores[name], tonumber(number)) end
end

local function check_parts(parts)
  local out = {}
  for i, part in ipairs(parts) do
    local name, weight, fn = part[1], part[2], part[3]
    if type(fn) == "table" then fn = fn.run end
    if type(name) ~= "string" or type(weight) ~= "number" or type(fn) ~= "function" then
      error(("verify.compose: part %d must be { name, weight, verifier }"):format(i), 3)
    end
    out[i] = { name = name, weight = weight, fn = fn, when = condition(part.only_if) }
  end
  if #out == 0 then error("verify.compose: no parts", 3) end
  return out
end

--- Combines verifiers by weight. `only_if = "tests > 0"` skips a part, which then counts 0. `unscored = "renormalise"`
--- leaves a part that could not be judged out of the sum; "propagate" (the default) makes the whole unscored.
---@param parts table
---@return fun(ev: agentbox.Evidence): number?, any, table?
function M.compose(parts)
  local unscored = parts.unscored or "propagate"
  if unscored ~= "propagate" and unscored ~= "renormalise" then
    error('verify.compose: unscored must be "propagate" or "renormalise"', 2)
  end
  local list = check_parts(parts)
  return function(ev)
    local scores, components, sum, weights, texts, first = {}, {}, 0, 0, {}, nil
    for _, part in ipairs(list) do
      local score, text, facts = 0, "skipped", nil
      if part.when(scores) then score, text, facts = M.part(ev, part.fn) end
      if score == nil then
        if unscored == "propagate" then return nil, text end
      else
        first = first or facts
        scores[part.name], sum, weights = score, sum + part.weight * score, weights + part.weight
        components[#components + 1] = {
          name = part.name, score = score, weight = part.weight, report = first ~= facts and facts and facts.report or nil,
        }
      end
      texts[#texts + 1] = ("%s: %s"):format(part.name, tostring(text or score))
    end
    if #components == 0 then return nil, err.new("verifier", "no part could be judged") end
    if unscored == "renormalise" and weights > 0 then sum = sum / weights end
    local facts = {}
    for key, value in pairs(first or {}) do facts[key] = value end
    facts.success, facts.components = nil, components
    return sum, table.concat(texts, "\n"), facts
  end
end

--- Runs one part of a composition with sandboxes of its own.
---@async
---@param ev agentbox.Evidence
---@param fn function
---@return number? score
---@return any text_or_err
---@return table? facts
function M.part(ev, fn)
  local own <close> = ev:part()
  local value, text, facts = fn(own)
  if value == nil then return nil, text end
  local verdict, problem = verdict_of(value, text, facts, ev.spec)
  if not verdict then return nil, problem end
  return verdict.reward, verdict.text, facts
end

--- A verifier of the built-in type, with settings of its own: `ab.verify.pytest { path = "tests", score = "fraction"
--- }`. `hidden` is another word for `path`, for tests that only the verifier has.
local function typed(kind)
  return function(settings)
    local fields = { type = kind }
    for key, value in pairs(settings or {}) do fields[key == "hidden" and "path" or key] = value end
    local spec = schema.options(fields, require("agentbox.task.shape").VERIFIER, "verify." .. kind)
    return function(ev)
      local own <close> = ev:part(spec)
      return require("agentbox.verifiers." .. TYPES[kind]).run(own)
    end
  end
end

-- A verifier whose settings are its own and not those of a task's command.
local function settled(kind)
  return function(settings)
    local module = require("agentbox.verifiers." .. kind)
    local opts = module.options and module.options(settings or {}, 2)
      or schema.options(settings, module.OPTIONS, "verify." .. kind)
    return function(ev)
      local own <close> = ev:part()
      return module.judge(own, opts)
    end
  end
end

---@type fun(settings?: table): fun(ev: agentbox.Evidence): number?, any, table?
M.pytest = typed "pytest"
---@type fun(settings?: table): fun(ev: agentbox.Evidence): number?, any, table?
M.command = typed "command"
--- What must be in the files that the agent left: verifiers/files.lua.
---@type fun(settings: table): fun(ev: agentbox.Evidence): number?, any, table?
M.files = settled "files"
--- Models that grade by a rubric: verifiers/llm_judge.lua.
---@type fun(settings: table): fun(ev: agentbox.Evidence): number?, any, table?
M.llm_judge = settled "llm_judge"
--- What compares the rollouts of a group: verify/ranking.lua. For the option `rank` of a run.
---@param opts table
---@return fun(group: { id: string, task?: string, trajectories: agentbox.Traj[] }): table<string, number>?, table|agentbox.Err
function M.ranking(opts) return require("agentbox.verify.ranking").new(opts) end
--- A grader in Python, in a sandbox: verifiers/python.lua.
---@type fun(settings: table): fun(ev: agentbox.Evidence): any, any, table?
M.python = settled "python"

return M
