--- Runs one tool, verifier or agent without a model server: the helpers of agentbox.test.
local M = {}

local OPTIONS = {
  task = { "any" }, files = { "map" }, hidden = { "map" }, data = { "any" }, params = { "any" }, sandbox = { "map" },
  timeout_s = { "number", default = 60 }, verifier = { "any" }, turns = { "list" }, agent = { "any" },
  seed = { "integer" },
}

local function task_of(opts)
  if opts.task ~= nil then return assert(require "agentbox.task".resolve(opts.task)) end
  local fields = { task_id = "test", description = "a test", verifier = { type = "command", command = "true" } }
  for _, name in ipairs { "files", "hidden", "data", "params" } do fields[name] = opts[name] end
  return require "agentbox.task".new(fields)
end

local function tool_of(what)
  local tool = require "agentbox.tool"
  if type(what) ~= "string" then return what end
  if what:find "%.lua$" then return assert(tool.load(what)) end
  return assert(tool.get(what))
end

local function context(task, sb, tools, opts)
  local workspace = "/workspace"
  local model = require "agentbox.model".scripted { "done" }
  local rec = require "agentbox.record".new { run_id = "test", id = "test", task = task, model = model:describe() }
  return require "agentbox.agent".ctx {
    task = task, sandbox = sb, model = model, tools = tools, rec = rec, workspace = workspace, session = "test",
    budget = require "agentbox.budget".new { episode_timeout_s = opts.timeout_s, step_timeout_s = opts.timeout_s },
    rand = require "agentbox.sys.rand".new(opts.seed or 1),
  }
end

---Calls one tool, once for each set of arguments, in a sandbox of its own, exactly as a rollout would: the arguments
---are checked against its schema, its limits apply, `open` and `close` run.
---@async
---@param what string|agentbox.Tool   # a name, a file or a definition
---@param calls table|table[]         # the arguments of one call, or a list of them
---@param opts? table                 # files, task, sandbox, timeout_s, seed
---@return agentbox.ToolResult ...    # .text as the model sees it, .is_error, .facts, .traceback
function M.tool(what, calls, opts)
  opts = require "agentbox.schema".options(opts or {}, OPTIONS, "test.tool")
  local json = require "agentbox.json"
  local task = task_of(opts)
  local tools = assert(require "agentbox.tool".select { mode = json.array {}, custom = { tool_of(what) } })
  local stage <close> = assert(require "agentbox.stage".open(task, opts.sandbox or {}, { workspace = "/workspace" }))
  local sb <close> = assert(stage:fresh())
  local sent = {}
  for i, args in ipairs(calls[1] and calls or { calls }) do
    sent[i] = require "agentbox.models.wire".call("call_" .. i, tools:names()[1], json.encode(json.object(args)))
  end
  local results = tools:run(context(task, sb, tools, opts), sent, opts.timeout_s)
  tools:close()
  return table.unpack(results)
end

---Scores a workspace: the files are what an agent left.
---@async
---@param what any      # as in a task: a name, a function, the result of verify.*
---@param opts table    # files, hidden, data, params, task, sandbox
---@return agentbox.Traj   # .scored, .reward, .components, .verify
function M.verifier(what, opts)
  opts = require "agentbox.schema".options(opts, OPTIONS, "test.verifier")
  return assert(require "agentbox.rollout".run {
    task = task_of(opts), model = require "agentbox.model".scripted { "done" }, verifier = what,
    sandbox = opts.sandbox, timeout_s = opts.timeout_s, seed = opts.seed,
  })
end

---Runs an agent over a script of the model's answers.
---@async
---@param what any      # nil for the tool loop, a name, a function, options of the tool loop
---@param opts table    # task or files; turns: the model's answers, as for model.scripted
---@return agentbox.Traj
function M.agent(what, opts)
  opts = require "agentbox.schema".options(opts, OPTIONS, "test.agent")
  return assert(require "agentbox.rollout".run {
    task = task_of(opts), model = require "agentbox.model".scripted(opts.turns or { "done" }), agent = what,
    verifier = opts.verifier, sandbox = opts.sandbox, timeout_s = opts.timeout_s, seed = opts.seed,
  })
end

return M
