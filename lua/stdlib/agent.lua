--- agent.lua: what an agent is and what it gets. An agent is `function(ctx) → stop reason`; the built-in one is
--- agents/tool_loop.lua. Everything an agent says or hears goes through its ctx and so into the record.
local async = require "agentbox.async"
local err = require "agentbox.err"
local json = require "agentbox.json"
local limits = require "agentbox.limits"
local schema = require "agentbox.schema"
local new_call = require "agentbox.models.wire".call
local sys = require "agentbox.sys.json"
local time = require "agentbox.time"
local tool_set = require "agentbox.tool.set"

local M = {}

--- A message copied back to the server at every turn must not be able to end the conversation by its size.
M.MAX_ARGUMENT_BYTES = 256 << 10

local GRACE_S = 1
local NO_CALLS = {}

--- What a second speaker has in common with the first.
local SHARED = {
  "task", "sandbox", "rec", "budget", "rand", "log", "workspace", "workdir", "user", "one_by_one", "keep_thinking",
}

local monotonic = time.monotonic
local new_message = sys.shape("role", "content")
local new_answer = sys.shape("role", "tool_call_id", "name", "content")

---@class agentbox.AgentRequest: agentbox.Request
---@field private _ctx agentbox.Ctx
---@field private _leaf? integer
local Request = {}
Request.__index = Request

--- What stands still while the call waits for anything but its model.
---@return agentbox.Budget
function Request:clock() return self._ctx.budget end

--- The body around the messages, when the record has their JSON text: a turn encodes only what it added, and what was
--- said before is copied once.
---@param head string   # the body up to the bracket before the first message
---@param tail string   # from the bracket behind the last one on
---@return string?
function Request:history(head, tail)
  return self._leaf and self._ctx.rec:history(self._leaf, self.messages, head, tail)
end

--- Thousands of rollouts have one each, of at most 16 members unless theirs are unusual: a table of 17 is twice as large.
---@class agentbox.Ctx
---@field task agentbox.Task
---@field sandbox agentbox.Sandbox
---@field model agentbox.Model
---@field tools agentbox.ToolSet
---@field messages agentbox.Message[]   # the conversation so far; add with say, answer or inject
---@field budget agentbox.Budget
---@field rand table                    # seeded per rollout
---@field log table                     # log.info, log.warn: into the record
---@field workspace string
---@field workdir string                 # where commands run
---@field user? string|integer           # whom tools run as in the sandbox
---@field one_by_one boolean             # calls of one turn never overlap
---@field keep_thinking boolean          # reasoning goes back to the server with the history
---@field session string                # the same in every request of this rollout
---@field sampling? table
---@field doing "model"|"tools"|false     # what it waits for now
---@field private since number|false      # and since when, monotonic seconds
---@field speaker? string                # of a thread: its name
---@field trainable? boolean             # of a thread: whether what it says may be trained on
---@field seed? integer
---@field private performance? agentbox.Performance   # of the rollout's agent
---@field private call_deadline number|false           # monotonic seconds; of the tools that run
local Ctx = { one_by_one = false, keep_thinking = true, doing = false, call_deadline = false }
Ctx.__index = Ctx

-- What says `ctx.log.info(text)` is made when somebody says it: thousands of rollouts have a log that nobody uses.
local Log = {}

function Log.__index(log, level)
  local rec = rawget(log, 1)
  return (level == "info" or level == "warn") and function(text) rec:event(level, tostring(text)) end or nil
end

--- Made by rollout.lua.
---@param fields table
---@return agentbox.Ctx
function M.ctx(fields)
  fields.messages = json.array {}
  fields.log = setmetatable({ fields.rec }, Log)
  return setmetatable(fields, Ctx)
end

local THREAD = {
  name = { "string", required = true }, model = { "map" }, trainable = { "boolean", default = false },
  system = { "string" }, tools = { "map" }, sampling = { "map" },
}

--- A second speaker in the same rollout, with messages and a model of its own: a user, an opponent, a helper. What it
--- says is a thread of its own in the record. It has no tools unless `tools` is a set of them (`tool.select`). The clock
--- is the rollout's; turns and tokens count only for a speaker that is trained.
---@param opts { name: string, model?: agentbox.Model, trainable?: boolean, system?: string, tools?: agentbox.ToolSet, sampling?: table }
---@return agentbox.Ctx
function Ctx:thread(opts)
  opts = schema.options(opts, THREAD, "ctx:thread")
  if self.rec:has_agent(opts.name) then error("ctx:thread: there is a speaker called " .. opts.name .. " already", 2) end
  local model = opts.model or self.model
  self.rec:agent(opts.name, { model = model.name, trainable = opts.trainable })
  local own = {}
  for _, key in ipairs(SHARED) do own[key] = self[key] end
  own.model, own.tools, own.sampling = model, opts.tools or tool_set.new {}, opts.sampling
  own.speaker, own.trainable, own.session = opts.name, opts.trainable, ("%s/%s"):format(self.session, opts.name)
  own.messages = json.array {}
  setmetatable(own, Ctx)
  if opts.system then own:say(M.message("system", opts.system), "prompt") end
  return own
end

--- Records a named fact about this rollout.
---@param name string
---@param value any
function Ctx:note(name, value) self.rec:note(name, value) end

--- A message in the order of keys that people read: the same bytes in the request and in the record.
---@param role string
---@param content string
---@return agentbox.Message
function M.message(role, content)
  return new_message(role, content)
end

--- Adds a message.
---@param message agentbox.Message
---@param origin "prompt"|"sampled"|"tool"|"injected"
---@param call? integer
---@return integer node
function Ctx:say(message, origin, call)
  local messages = self.messages
  messages[#messages + 1] = message
  return self.rec:add(message, origin, call, self.speaker)
end

--- Lets whoever steps the rollout stop it here, between two turns.
---@async
function Ctx:pause()
  local performance = self.performance
  if performance then performance:pause() end
end

--- Says something that neither the task nor the model said. It is masked in training.
---@param role "user"|"system"
---@param text string
---@return integer node
function Ctx:inject(role, text)
  return self:say(M.message(role, text), "injected")
end

--- A copy whose oversized arguments are cut; the whole reply stays in the record as the server sent it.
local function for_history(message)
  local copy
  for i, call in ipairs(message.tool_calls or {}) do
    local arguments = call["function"].arguments
    if #arguments > M.MAX_ARGUMENT_BYTES then
      if not copy then
        copy = json.object {}
        for key, value in pairs(message) do copy[key] = value end
        copy.tool_calls = json.array {}
        for j, other in ipairs(message.tool_calls) do copy.tool_calls[j] = other end
      end
      local note = json.encode { truncated = ("%d bytes of arguments left out of the history"):format(#arguments) }
      copy.tool_calls[i] = new_call(call.id, call["function"].name, note)
    end
  end
  return copy or message
end

local THINKING = { "reasoning_content", "reasoning", "reasoning_details", "thinking_blocks", "thinking" }

local function without_thinking(message)
  local clean = json.object {}
  for key, value in pairs(message) do clean[key] = value end
  for _, key in ipairs(THINKING) do clean[key] = nil end
  return clean
end

--- Whether a message's calls go back to the server as they are.
local function has_clean_calls(message)
  local calls = message.tool_calls or NO_CALLS
  for i = 1, #calls do
    local call = calls[i]
    if call.parse_error or call.raw_arguments or #call["function"].arguments > M.MAX_ARGUMENT_BYTES then return false end
  end
  return true
end

--- What of a reply goes back to the server; parse_error and raw_arguments are ours.
local function wire_message(message, keep_thinking)
  if keep_thinking ~= false and has_clean_calls(message) then return message end
  message = for_history(message)
  if keep_thinking == false then message = without_thinking(message) end
  for _, call in ipairs(message.tool_calls or {}) do
    if call.parse_error or call.raw_arguments then
      local clean = json.object {}
      for key, value in pairs(message) do clean[key] = value end
      clean.tool_calls = json.array {}
      for i, one in ipairs(message.tool_calls) do
        clean.tool_calls[i] = new_call(one.id, one["function"].name, one["function"].arguments)
      end
      return clean
    end
  end
  return message
end

--- A client keeps its own deadline, which says more; the one here is for models that keep none.
local function complete(model, request)
  if model.keeps_time then return model:complete(request) end
  return async.timeout(request.timeout_s + GRACE_S, model.complete, model, request)
end

local function record_call(self, response, problem, request, said)
  local name = self.speaker
  return self.rec:call {
    response = response, error = problem, request = request, leaf = request._leaf, agent = name, thread = name,
    purpose = name and (self.trainable and "subagent" or "aux") or nil, trainable = self.trainable, said = said,
  }
end

--- One model call over the whole conversation: counted, recorded, appended.
---@async
---@return agentbox.Response? response
---@return agentbox.Err? err
function Ctx:ask()
  local wire, began, spent = self.tools:wire(), monotonic(), self.budget
  local request = setmetatable({
    messages = self.messages, tools = wire, tool_choice = wire and "auto" or nil, sampling = self.sampling,
    session = self.session, timeout_s = self.budget:step_s(began), _leaf = self.rec:leaf_of(self.speaker), _ctx = self,
  }, Request)
  self.doing, self.since = "model", began
  local response, problem = complete(self.model, request)
  self.doing = false
  local waited_s = monotonic() - began
  spent.model_s = spent.model_s + waited_s
  if not response then
    if type(problem) ~= "table" then problem = err.new("model", tostring(problem or "the model gave no response")) end
    problem.waited_s = waited_s -- also tells a call of the model from whatever else may fail
    record_call(self, nil, problem, request)
    return nil, problem
  end
  if self.trainable ~= false then self.budget:spend(response.usage, response.message) end
  local said, messages = wire_message(response.message, self.keep_thinking), self.messages
  record_call(self, response, nil, request, said)
  messages[#messages + 1] = said
  return response
end

--- Seconds that a command started now may take.
---@return number
function Ctx:time_left()
  local left = (self.call_deadline or self.budget.deadline) - time.monotonic()
  return math.max(0.05, left)
end

--- Runs calls within this step's time and answers each of them, in call order.
---@async
---@param calls table[]
---@return agentbox.ToolResult[]
function Ctx:run_tools(calls)
  self.doing, self.since = "tools", false
  local pass <close> = limits.enter("commands", self.budget) -- luacheck: ignore
  local began, spent = monotonic(), self.budget
  self.since = began
  local limit = self.budget:step_s(began)
  self.call_deadline = began + limit
  local results = self.tools:run(self, calls, limit)
  self.call_deadline, self.doing = false, false
  spent.tool_s = spent.tool_s + monotonic() - began
  return results
end

--- The agent has ended: what it was waiting for then cost time, too.
function Ctx:_rest()
  local spent, since = self.budget, self.doing and self.since
  local part = self.doing == "model" and "model_s" or "tool_s"
  if since then spent[part] = spent[part] + monotonic() - since end
  self.doing = false
end

--- Adds the tool messages. A call without a result (the sandbox died before it) is answered as not run, so that the
--- history stays one that any server accepts.
---@param calls table[]
---@param results agentbox.ToolResult[]
function Ctx:answer(calls, results)
  local rec = self.rec
  for i = 1, #calls do
    local id, name = calls[i].id, calls[i]["function"].name
    local result = results[i] or { text = ("ERROR: %s did not run"):format(name), is_error = true, facts = {} }
    local node = self:say(new_answer("tool", id, name, result.text), "tool")
    rec:ran(node, i - 1, id, name, result)
  end
end

-- ---------------------------------------------------------------- finding an agent

--- The built-in loop with hooks; see agents/tool_loop.lua.
---@param opts? table
---@return fun(ctx: agentbox.Ctx): string, any
function M.tool_loop(opts) return require("agentbox.agents.tool_loop").new(opts) end

--- The tool loop with a model that plays the user; see agents/dialogue.lua.
---@param opts table
---@return fun(ctx: agentbox.Ctx): string, any
function M.dialogue(opts) return require("agentbox.agents.dialogue").new(opts) end

local NO_AGENT = "There are tool_loop, shell, oracle and idle; another one is a module, by its name with a dot, in an overlay "
    .. "(agentbox -L DIR, lua_path in agentbox.yaml)."

--- An agent, whatever was given: nil is the tool loop, a name a module, a table the loop's options.
---@param what nil|string|function|table
---@return function? agent
---@return agentbox.Err? err
---@return string? name
function M.resolve(what)
  if what == nil then return M.tool_loop(), nil, "tool_loop" end
  if type(what) == "function" then return what, nil, "function" end
  if type(what) == "table" then return M.tool_loop(what), nil, "tool_loop" end
  local module = what:find(".", 1, true) and what or "agentbox.agents." .. what
  local ok, found = pcall(require, module)
  if not ok then
    local missing = tostring(found):find("module '" .. module .. "' not found", 1, true)
    return nil, err.new("config", missing and "unknown agent: " .. what or tostring(found), missing and { hint = NO_AGENT } or nil)
  end
  local agent = type(found) == "table" and found.new and found.new() or found
  if type(agent) ~= "function" then return nil, err.new("config", module .. " does not return an agent") end
  return agent, nil, what
end

return M
