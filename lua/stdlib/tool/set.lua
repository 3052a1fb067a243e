--- tool/set.lua: the tools of one rollout, and how a turn's calls are run.
---
--- Every call gets exactly one result, in call order. Calls that touch the sandbox run one after another; neighbours
--- that declare themselves independent run at the same time. A result is one of: text; a tool error the model can
--- read; a defect of the tool (recorded with its traceback, a short error to the model); an infrastructure error,
--- which ends the rollout and is never shown to the model as text.
local arguments = require "agentbox.schema.arguments"
local async = require "agentbox.async"
local err = require "agentbox.err"
local guard = require "agentbox.tool.guard"
local json = require "agentbox.json"
local secret = require "agentbox.secret"
local sys_log = require "agentbox.sys.log"
local text = require "agentbox.text"
local time = require "agentbox.time"
local utf = require "agentbox.sys.utf8x"

local M = {}

local monotonic, now, scrub = time.monotonic, time.now, utf.scrub
local NO_FACTS = {}

--- What a result may weigh, in code points; tools with tighter rules cut earlier.
M.MAX_RESULT = 220000

--- A command is cut at the step's end by its own limit, which keeps what it printed; only then is its tool stopped.
local GRACE_S = 2

local CLOSE_TIMEOUT_S = 10

--- The same for what went wrong: a tool may raise a text of any size.
local MAX_ERROR = 8000
local MAX_TOLD = 500

--- Code points of what a program said before it was late.
local MAX_PARTIAL = 2000
local DEFAULT_TIMEOUT_S, DEFAULT_CPU_S, DEFAULT_MEMORY_MB = 120, 10, 256

---@class agentbox.ToolResult
---@field name string
---@field call_id string
---@field args? table          # nil when the call could not be read
---@field text string          # for the model
---@field is_error boolean
---@field malformed? boolean   # unknown tool or arguments that do not fit
---@field infra? agentbox.Err  # the sandbox, the engine or the network failed: the rollout is over
---@field facts table          # exit, cut, oom, timed_out, stop: what the tool said about itself
---@field error? string
---@field traceback? string
---@field t { [1]: number, [2]: number }   # unix seconds

---@class agentbox.ToolSet
---@field tools agentbox.Tool[]
local Set = {}
Set.__index = Set

--- What follows from a tool and is the same for every rollout that offers it.
local known = setmetatable({}, { __mode = "k" })

local function wire_of(tool)
  local fn, entry = json.object {}, json.object {}
  fn.name = tool.name -- one by one: the order of keys is the order of these lines
  fn.description = tool.description
  fn.parameters = tool.parameters
  entry.type = "function"
  entry["function"] = fn
  return entry
end

--- The arguments that may be left out and what they are then, by name.
local function defaults_of(tool)
  local defaults
  for name, prop in pairs(tool.parameters.properties or {}) do
    if type(prop) == "table" and prop.default ~= nil and prop.default ~= json.null then
      defaults = defaults or {}
      defaults[name] = prop.default
    end
  end
  return defaults
end

local function known_of(tool)
  local facts = known[tool]
  if not facts then
    local cpu_s, bytes = tool.cpu_s or DEFAULT_CPU_S, (tool.memory_mb or DEFAULT_MEMORY_MB) << 20
    facts = {
      wire = wire_of(tool), limits = { cpu_s = cpu_s, memory_bytes = bytes },
      run_limits = { cpu_s = cpu_s, memory_bytes = bytes, blame = tool.run },
      defaults = defaults_of(tool),
    }
    known[tool] = facts
  end
  return facts
end

--- What the last few lists of tools have in common: rollouts of a run mostly offer the same, and what others know of a
--- list (its JSON text) goes by its wire form.
---@class agentbox.ToolOffer
---@field tools agentbox.Tool[]
---@field by_name table<string, agentbox.Tool>
---@field wire table
local recent, MAX_RECENT = {}, 16

local function is_same(have, tools)
  if #have ~= #tools then return false end
  for i = 1, #tools do
    if have[i] ~= tools[i] then return false end
  end
  return true
end

---@return agentbox.ToolOffer
local function offer_of(tools)
  for _, offer in ipairs(recent) do
    if is_same(offer.tools, tools) then return offer end
  end
  local offer = { tools = tools, by_name = {}, wire = json.array {} }
  for i, tool in ipairs(tools) do offer.by_name[tool.name], offer.wire[i] = tool, known_of(tool).wire end
  table.insert(recent, 1, offer)
  recent[MAX_RECENT + 1] = nil
  return offer
end

--- A set of tools. The list is the set's from now on.
---@param tools agentbox.Tool[]
---@return agentbox.ToolSet
function M.new(tools)
  local offer = offer_of(tools)
  return setmetatable({ tools = offer.tools, by_name = offer.by_name, _wire = offer.wire }, Set)
end

---@return string[]
function Set:names()
  local names = json.array {}
  for i, tool in ipairs(self.tools) do names[i] = tool.name end
  return names
end

--- The schemas as they go over the wire, in order; nil when there are none.
---@return table?
function Set:wire()
  return #self.tools > 0 and self._wire or nil
end

--- Where the tools that are not built in came from, for the record.
---@return table[]
function Set:origins()
  local out = {}
  for _, tool in ipairs(self.tools) do out[#out + 1] = tool.origin end
  return out
end

-- ---------------------------------------------------------------- reading a call

local REPAIR = { repair = true }

local function arguments_of(call)
  local given = call["function"].arguments
  if call.parse_error then return nil, call.parse_error end
  if type(given) == "table" then return given end
  if given == nil or given == json.null or not given:find "%S" then return json.object {} end
  local value, problem = json.decode(given, REPAIR)
  if value == nil then return nil, "not valid JSON: " .. problem.msg end
  if type(value) ~= "table" or json.is_array(value) or value == json.null then
    return nil, "must be a JSON object"
  end
  return value
end

local function with_defaults(tool, args)
  local defaults = known_of(tool).defaults
  if not defaults then return args end
  local whole = json.object {}
  for name, value in pairs(args) do whole[name] = value end
  for name, value in next, defaults do
    if args[name] == nil then whole[name] = value end
  end
  return whole
end

local function refuse(result, message)
  message = scrub((text.cut(message, MAX_ERROR)))
  result.text, result.is_error, result.malformed, result.error = "ERROR: " .. message, true, true, message
  return result
end

--- Finds the tool and its arguments, or says in one line what is wrong with the call.
local function read_call(self, call, result)
  local tool = self.by_name[result.name]
  if not tool then
    local names = self:names()
    local valid = #names > 0 and "available: " .. table.concat(names, ", ") or "no tools are available"
    refuse(result, ("unknown tool: %s (%s)"):format(result.name, valid))
    return nil
  end
  local args, problem = arguments_of(call)
  if args then
    result.args = args
    args, problem = arguments.validate(tool.parameters, args)
  end
  if not args then
    refuse(result, ("invalid arguments for %s: %s"):format(tool.name, problem))
    return nil
  end
  return tool, with_defaults(tool, args)
end

-- ---------------------------------------------------------------- running a call

local function open_and_run(self, tool, ctx, args)
  local state
  if tool.open then
    local held = self.states and self.states[tool]
    if not held then
      local value, problem = tool.open(ctx)
      if value == nil and problem ~= nil then return nil, problem end
      held = { value = value }
      self.states = self.states or {}
      self.states[tool] = held
    end
    state = held.value
  end
  return tool.run(ctx, args, state)
end

--- What came from a program before its tool gave up belongs in the answer.
local function message_of(problem)
  if not err.is(problem) then return tostring(problem or "no result") end
  if type(problem.partial) ~= "string" or problem.partial == "" then return tostring(problem.msg) end
  return ("%s; until then it said:\n%s"):format(problem.msg, text.cut(text.scrub(problem.partial), MAX_PARTIAL))
end

local function tool_error(result, message)
  message = text.cut(text.scrub(message), MAX_ERROR)
  local said = ("ERROR: %s failed: %s"):format(result.name, message)
  result.text, result.is_error, result.error = scrub(said), true, message
end

local function as_text(value)
  local kind = type(value)
  if kind == "string" then return value end
  if kind == "number" or kind == "boolean" then return tostring(value) end
  if kind ~= "table" or err.is(value) then return nil end
  local ok, encoded = pcall(json.encode, value) -- a cycle or a function inside is the tool's mistake, not the agent's
  return ok and encoded or nil
end

--- What run returned: text and facts, or nil and a reason.
local function take_returned(result, value, extra)
  if value == nil then
    if err.infra(extra) then result.infra = extra end
    tool_error(result, message_of(extra))
    return
  end
  local said = as_text(value)
  if not said then return tool_error(result, "the tool returned a " .. type(value) .. ", not text") end
  local facts = type(extra) == "table" and extra or NO_FACTS
  result.facts, result.is_error = facts, facts.is_error == true
  said = scrub(said)
  result.text = #said <= M.MAX_RESULT and said or text.cut(said, M.MAX_RESULT)
end

local told = {}

-- A script that raises is the lab's to mend, and no rollout ends of it: the first raise of each tool is told to who runs this.
local function tell_raise(name, problem)
  if problem.kind ~= "raise" or told[name] then return end
  told[name] = true
  local why = text.cut(text.scrub(secret.redact(problem.msg)), MAX_TOLD):gsub("%s+", " ") -- it may quote what a model wrote
  sys_log.write("warn", ("the tool %s raised: %s (told once; the records have each with its traceback)"):format(name, why))
end

local function run_call(self, ctx, call, limit_s)
  local name = call["function"].name
  local result = {
    name = type(name) == "string" and name or tostring(name or ""), call_id = call.id, facts = NO_FACTS,
    is_error = false, t = { now(), 0 },
  }
  local tool, args = read_call(self, call, result)
  if tool then
    local timeout_s, most_s = tool.timeout_s or DEFAULT_TIMEOUT_S, limit_s + GRACE_S
    if timeout_s > most_s then timeout_s = most_s end
    local ok, value, extra = guard.call(open_and_run, known_of(tool).run_limits, timeout_s, self, tool, ctx, args)
    if ok then
      take_returned(result, value, extra)
    elseif ok == false then -- the tool raised an engine error: its code decides
      take_returned(result, nil, value)
    else
      tool_error(result, value.msg)
      result.defect, result.traceback = value.kind, value.traceback
      tell_raise(result.name, value)
    end
  end
  result.t[2] = now()
  return result
end

local function is_independent(self, call)
  local tool = self.by_name[call["function"].name]
  return tool ~= nil and tool.independent == true
end

--- Runs one turn's calls. `limit_s` is the time for all of them together; a call that finds none left is answered as
--- cut off, so that no call stays unanswered.
---@async
---@param ctx agentbox.Ctx
---@param calls table[]
---@param limit_s number
---@return agentbox.ToolResult[]   # one per call, in call order
function Set:run(ctx, calls, limit_s)
  local count = #calls
  if count == 1 then return { run_call(self, ctx, calls[1], limit_s) } end
  local deadline = monotonic() + limit_s
  local results, at = {}, 1
  local function run_at(i)
    results[i] = run_call(self, ctx, calls[i], math.max(0, deadline - monotonic()))
  end
  while at <= count do
    local last = at
    if not ctx.one_by_one and is_independent(self, calls[at]) then
      while calls[last + 1] and is_independent(self, calls[last + 1]) do last = last + 1 end
    end
    if last == at then
      run_at(at)
    else
      local group = {}
      for i = at, last do group[#group + 1] = i end
      async.each(group, run_at, { limit = 16 })
    end
    for i = at, last do
      if results[i].infra then return results end
    end
    at = last + 1
  end
  return results
end

--- Closes what the tools opened. Their failures are returned as text for the record, never raised.
---@async
---@return string[] problems
function Set:close()
  local problems = {}
  for tool, held in pairs(self.states or {}) do
    self.states[tool] = nil
    if tool.close then
      local ok, problem = guard.call(tool.close, known_of(tool).limits, CLOSE_TIMEOUT_S, held.value)
      if not ok then
        problems[#problems + 1] = ("tool %s: close failed: %s"):format(tool.name, tostring(problem.msg or problem))
      end
    end
  end
  return problems
end

return M
