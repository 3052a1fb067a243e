--- rescore.lua: judges stored rollouts again, with another verifier or the same one once it works.
---
---     local sum = assert(ab.rescore.run { input = "runs/g1", out = "runs", run_id = "g1-judged", verifier = J, tasks = "tasks" })
---
--- The result is a run of its own: the same records with another reward, verdict and status, and `rescored`, which says what they had.
--- Penalties that the reward had are kept. A rollout that the infrastructure ended, before there was anything to judge, stays as it is.
---
--- A verifier that looks at files gets those that the record kept: the task's `artifacts` must be `["**"]`, so that they are the whole
--- workspace. Without them such a verifier leaves the rollout unscored; one that reads the messages needs none.
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local fs = require "agentbox.fs"
local json = require "agentbox.json"
local outcome = require "agentbox.outcome"
local plans = require "agentbox.rollout.plan"
local protect = require "agentbox.verify.protect"
local read = require "agentbox.store.read"
local schema = require "agentbox.schema"
local stage = require "agentbox.stage"
local store = require "agentbox.store"
local task = require "agentbox.task"
local verify = require "agentbox.verify"

local M = {}

local OPTIONS = {
  input = { "string", required = true }, out = { "string", required = true }, run_id = { "string" }, verifier = { "any" },
  tasks = { "string|list", required = true }, sandbox = { "map" }, models = { "map" }, any_version = { "boolean" },
}

local plain = json.plain

-- ---------------------------------------------------------------- what was left

-- The files that a record kept, as the tree that a task's folder would be; nil and why when they are not the whole workspace.
local function tree_of(t, the_task)
  local whole = false
  for _, glob in ipairs(the_task.artifacts) do whole = whole or glob == "**" or glob == "**/*" end
  if not whole then return nil, err.new("verifier", 'the record does not keep the workspace: the task\'s artifacts are not ["**"]') end
  local tree = {}
  for _, entry in ipairs(plain(t.line.artifacts) or {}) do
    if not entry.hash then return nil, err.new("verifier", ("the record has no bytes of %s: it was too large"):format(entry.path)) end
    local bytes, problem = t:artifact(entry.path)
    if not bytes then return nil, err.new("verifier", problem.msg) end
    local shipped = the_task.files[entry.path]
    tree[entry.path] = { bytes = bytes, mode = shipped and shipped.mode or 420 }
  end
  return tree
end

---@class agentbox.StoredRemains
local Remains = {}
Remains.__index = Remains

local function laid(self)
  local tree, problem = tree_of(self.traj, self.stage.task)
  if not tree then return nil, problem end
  local sb
  sb, problem = self.stage:fresh()
  if not sb then return nil, problem end
  local ok
  ok, problem = sb:remove(self.stage.workspace, { recursive = true })
  if ok then ok, problem = sb:mkdir(self.stage.workspace) end
  if ok then ok, problem = protect.lay(sb, self.stage.workspace, tree) end
  if ok then return sb end
  sb:close()
  return nil, problem
end

function Remains:sandbox()
  if self._sb then return self._sb end
  local problem
  self._sb, problem = laid(self)
  return self._sb, problem
end

function Remains:copy() return laid(self) end

function Remains:close()
  if self._sb then self._sb:close() end
  self._sb = nil
end
Remains.__close = Remains.close

-- The state a task begins with, made when a verifier first wants a sandbox.
local Lazy = {}
Lazy.__index = Lazy

function Lazy:fresh()
  if not self._stage then
    local problem
    self._stage, problem = stage.open(self.task, self.spec, { workspace = self.workspace, workdir = self.workdir, user = self.spec.user })
    if not self._stage then return nil, problem end
  end
  return self._stage:fresh()
end

function Lazy:close()
  if self._stage then self._stage:close() end
end
Lazy.__close = Lazy.close

-- ---------------------------------------------------------------- judging

local nobody = { name = "nobody", complete = function() end, describe = function() return { name = "nobody" } end } -- no model is asked
local silent = { event = function() end, call = function() end } -- votes are in the report; the record's calls are the rollout's own

-- The stop that the agent came to, as far as the record tells: that of a failed verification took its place.
local function stop_of(t)
  local reason = t.stop_reason
  if reason == "scorer_error" then return outcome.stop "final_answer" end
  return outcome.stop(reason, { class = t.failure_class, msg = plain(t.line.stop.detail) })
end

local function task_of(self, t)
  local found = self.tasks[t.task_id]
  if not found then return nil, err.new("task", ("task %s is not among the tasks"):format(t.task_id)) end
  local hash = plain(t.task.hash)
  if hash and hash ~= found.hash and not self.opts.any_version then
    return nil, err.new("task", ("task %s is another version than the one that was run"):format(t.task_id))
  end
  return found
end

local function judge(self, t, stop)
  local the_task, problem = task_of(self, t)
  if not the_task then return nil, problem end
  local plan
  plan, problem = plans.make { task = the_task, model = nobody, verifier = self.opts.verifier, sandbox = self.opts.sandbox or {} }
  if not plan then return nil, problem end
  local at <close> = setmetatable({ task = the_task, spec = plan.spec, workspace = plan.spec.workspace, workdir = plan.workdir }, Lazy)
  local remains <close> = setmetatable({ stage = at, traj = t }, Remains)
  local verdict, bad = verify.run {
    task = the_task, stage = at, remains = remains, verifier = plan.verifier, name = plan.verifier_name, limits = plan.verifier_limits,
    user = plan.spec.user, rec = silent,
    traj = { task_id = t.task_id, messages = t.messages, stop_reason = stop.reason, steps = t.metrics.steps or 0 },
  }
  return verdict, bad, plan.verifier_name
end

-- What training may do with the record now: reasons of the old verdict go, those of the new one come.
local function use_of(old, line)
  local why, sft = json.array {}, line.reward.scored and line.status ~= "cancelled"
  for _, reason in ipairs(plain(old.why) or {}) do
    if reason ~= "unscored" and not reason:find "^class:" then why[#why + 1] = reason end
    if reason == "no trainable call" then sft = false end
  end
  if not line.reward.scored then why[#why + 1] = "unscored" end
  if outcome.INFRA[plain(line.stop.class)] then why[#why + 1] = "class:" .. line.stop.class end
  return { rl = #why == 0, sft = sft, why = why }
end

local function verify_part(verdict)
  if not verdict then return nil end
  return {
    success = verdict.success, exit_code = verdict.exit_code, stdout = verdict.stdout, stderr = verdict.stderr,
    duration_s = verdict.duration_s, command = verdict.command, report = verdict.report, text = verdict.text, timed_out = verdict.timed_out,
  }
end

-- Puts a verdict, or why there is none, into the record.
local function put(t, stop, verdict, problem, name)
  local line, was = t.line, t.line.reward
  local penalty = was.scored and type(plain(was.outcome)) == "number" and plain(was.outcome) - was.value or 0
  if not verdict then stop = outcome.stop("scorer_error", { class = problem.code == "task" and "task" or "verifier", msg = problem.msg }) end
  local out = outcome.of(stop, verdict, 0)
  line.rescored = json.object { run = line.run, verifier = name or json.null, scored = was.scored, value = was.value, final_status = line.final_status }
  line.reward = json.object {
    scored = out.scored, value = out.scored and out.reward - penalty or json.null, outcome = out.raw,
    components = out.scored and verdict.components or nil, scorer = { name = name },
  }
  line.status, line.final_status = out.status, out.final_status
  line.stop = json.object { reason = stop.reason, class = out.class or json.null, detail = stop.detail or json.null }
  line.verify, line.error = verify_part(verdict), out.final_status == "error" and (stop.detail or stop.reason) or json.null
  line.use = use_of(line.use, line)
end

-- ---------------------------------------------------------------- a whole run

local function tasks_of(given)
  local list, unread = given, nil
  if type(given) == "string" then list, unread = require("agentbox.dataset").load(given) end
  if not list then return nil, unread end
  local by_id = {}
  for _, one in ipairs(list) do
    local found, problem = task.resolve(one)
    if not found then return nil, problem end
    by_id[found.task_id] = found
  end
  return by_id
end

-- Bodies and artifacts are named by their hash: the new run gets the files themselves.
local function copy_blobs(from, to)
  for _, folder in ipairs(fs.list(from .. "/blobs") or {}) do
    local ok, problem = fs.mkdir(("%s/blobs/%s"):format(to, folder.name), true)
    if not ok then return nil, problem end
    for _, file in ipairs(fs.list(("%s/blobs/%s"):format(from, folder.name)) or {}) do
      local path = ("/blobs/%s/%s"):format(folder.name, file.name)
      local bytes
      bytes, problem = fs.read(from .. path)
      if bytes and not fs.exists(to .. path) then bytes, problem = fs.write(to .. path, bytes, { sync = true }) end
      if not bytes then return nil, problem end
    end
  end
  return true
end

local function one(self, t, into)
  local stop = stop_of(t)
  self.sum.rollouts = self.sum.rollouts + 1
  if outcome.verifiable(stop) then
    local verdict, problem, name = judge(self, t, stop)
    put(t, stop, verdict, problem, name)
    self.sum.judged = self.sum.judged + 1
    if not verdict then
      self.sum.failed = self.sum.failed + 1
      self.sum.first = self.sum.first or tostring(problem.msg)
    end
  end
  t.line.run = into.run_id
  return into:append(t)
end

--- Judges every rollout below a path again, into a new run.
---
--- Raises on unknown options. Returns nil, err when the input, the tasks or the new run cannot be read or written.
---@async
---@param given { input: string, out: string, run_id?: string, verifier?: any, tasks: string|table, sandbox?: table, models?: table, any_version?: boolean }
---@return { rollouts: integer, judged: integer, failed: integer, first?: string, run_dir: string }? sum   # failed: unscored now
---@return agentbox.Err? err
function M.run(given)
  local opts = schema.options(given, OPTIONS, "rescore.run")
  local tasks, problem = tasks_of(opts.tasks)
  if not tasks then return nil, problem end
  local files
  files, problem = read.files(opts.input)
  if not files then return nil, problem end
  local models = {}
  for role, model in pairs(opts.models or {}) do
    models[role], problem = require("agentbox.model").resolve(model)
    if problem then return nil, problem end
  end
  local run_id = opts.run_id or require("agentbox.rand").uuid4()
  if fs.exists(("%s/%s/run.json"):format(opts.out, run_id)) then
    return nil, err.new("exists", ("run %s is in %s already"):format(run_id, opts.out))
  end
  local into <close>, wrong = store.open(opts.out, { run_id = run_id, agentbox_json = false, meta = { rescored = opts.input } })
  if not into then return nil, wrong end
  into.run_id = run_id
  for _, file in ipairs(files) do
    if file.run_dir then
      local ok
      ok, problem = copy_blobs(file.run_dir, into.run_dir)
      if not ok then return nil, problem end
    end
  end
  local self = { opts = opts, tasks = tasks, sum = { rollouts = 0, judged = 0, failed = 0, run_dir = into.run_dir } }
  local worker = fiber.spawn(function()
    fiber.current():locals().models = models
    local stored, bad = true, nil
    local ok, unread = read.visit(opts.input, function(t)
      stored, bad = one(self, t, into)
      return stored ~= nil
    end)
    return ok and stored, bad or unread
  end)
  local _ <close> = setmetatable({}, { __close = function() worker:cancel() end }) -- luacheck: ignore
  local joined, ok, failed = worker:join()
  if not joined then error(ok, 0) end
  if not ok then return nil, failed end
  return self.sum
end

return M
