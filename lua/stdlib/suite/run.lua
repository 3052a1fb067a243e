--- Running a suite: every student a run of its own, side by side, recorded as runs are; then the reports.
local async = require "agentbox.async"
local err = require "agentbox.err"
local fs = require "agentbox.fs"
local json = require "agentbox.json"
local outputs = require "agentbox.suite.outputs"
local pack = require "agentbox.suite.pack"
local policy = require "agentbox.suite.policy"
local put = require "agentbox.suite.put"
local rand = require "agentbox.sys.rand"
local result = require "agentbox.suite.result"
local runner = require "agentbox.runner"
local schema = require "agentbox.schema"
local seal = require "agentbox.suite.seal"
local subset = require "agentbox.suite.subset"
local time = require "agentbox.time"

local M = {}

--- Of a student's attempts without a score, beyond which its numbers are not to be used: a share below 1, or a number.
M.MAX_ERRORS = 0.1
-- While a run goes on, so many say that it is broken.
local BROKEN = 0.5

local OPTIONS = {
  suite = { "table", required = true }, out = { "string", required = true }, students = { "list", required = true },
  n = { "integer", min = 1 }, concurrency = { "integer", min = 1 }, jobs = { "integer", min = 1 }, seed = { "integer" },
  limit = { "integer", min = 1 }, tasks = { "list", of = { "string" } }, overrides = { "map", default = {} }, strict = { "boolean" },
  attempts = { "integer", min = 1, default = 3 }, max_errors = { "number", min = 0, default = M.MAX_ERRORS },
  resume = { "boolean" }, retry_errors = { "boolean" }, save_trajectories = { "boolean", default = true }, prices = { "map" },
  tags = { "map", default = {} }, args = { "any" }, on_event = { "function" }, limits = { "map" }, retry_wait_s = { "number", min = 0 },
}

local function bad(code, text, ...) return nil, err.new(code, text:format(...)) end

-- ---------------------------------------------------------------- what is run

-- What the suite says of itself against what it is, with whatever the caller changes.
local function suite_facts(suite, over)
  local verdict, now = pack.integrity(suite)
  local own = require "agentbox.suite.manifest".own(suite.manifest)
  local sealed, problem = seal.of(suite, over)
  if not sealed then return nil, problem end
  local out, manifest = json.object {}, suite.manifest
  put(out, "id", manifest.suite_id, "name", manifest.name, "version", manifest.version, "integrity", verdict)
  put(out, "content_hash", manifest.content_hash, "content_hash_now", now)
  put(out, "seal", sealed.hash, "parts", sealed.parts)
  out.differs = json.array(own.parts and seal.differences(own.parts, sealed.parts) or {})
  return out
end

local function refuse(facts)
  if facts.integrity == "none" then return bad("invalid", "strict: the suite has no content_hash; freeze it first") end
  if facts.integrity == "differs" then
    return bad("invalid", "strict: the suite differs from its content hash: expected %s, got %s", facts.content_hash, facts.content_hash_now)
  end
  if #facts.differs > 0 then
    return bad("invalid", "strict: what would run differs from the suite's seal in: %s", table.concat(facts.differs, ", "))
  end
  return true
end

local function describe(student)
  local out = json.object {}
  put(out, "id", student.id, "dir", student.dir, "run_id", rand.uuid4())
  put(out, "described", student.model:describe(), "price", student.price)
  return out
end

local function new_doc(opts, chosen, facts)
  local manifest, doc = opts.suite.manifest, json.object {}
  put(doc, "schema", result.SCHEMA, "report_id", rand.uuid4(), "agentbox_version", require "agentbox.sys.os".version)
  put(doc, "started_at", time.iso(time.now()), "suite", facts, "tasks", json.array {})
  for i, task in ipairs(chosen) do doc.tasks[i] = task.task_id end
  doc.subset = subset.facts(opts.suite.tasks, chosen, opts)
  put(doc, "n", opts.n or manifest.n_per_task, "seed", opts.seed or manifest.seed)
  doc.overrides = next(opts.overrides) and json.object(opts.overrides) or nil
  put(doc, "max_errors", opts.max_errors, "run_tags", json.object(opts.tags))
  put(doc, "prices", opts.prices, "args", opts.args)
  doc.students = json.array {}
  for i, student in ipairs(opts.students) do doc.students[i] = describe(student) end
  return doc
end

-- Whether what is asked for is what the result was begun with.
local function check_same(doc, fresh)
  local function same(name, a, b)
    if json.encode(a == nil and json.null or a, { sorted = true }) == json.encode(b == nil and json.null or b, { sorted = true }) then return true end
    return bad("config", "the result was begun with another %s; begin a new one with another --out", name)
  end
  local names, now = {}, {}
  for i, one in ipairs(doc.students) do names[i] = one.id end
  for i, one in ipairs(fresh.students) do now[i] = one.id end
  local pairs_ = {
    { "suite", doc.suite.content_hash_now, fresh.suite.content_hash_now }, { "engine, image or setting", doc.suite.seal, fresh.suite.seal },
    { "list of tasks", doc.tasks, fresh.tasks }, { "n", doc.n, fresh.n }, { "seed", doc.seed, fresh.seed }, { "list of students", names, now },
  }
  for _, one in ipairs(pairs_) do
    local ok, problem = same(table.unpack(one, 1, 3))
    if not ok then return nil, problem end
  end
  for i, one in ipairs(doc.students) do
    local was, is = one.described or {}, fresh.students[i].described or {}
    local ok, problem = same("model for " .. one.id, was.name, is.name)
    if ok then ok, problem = same("sampling for " .. one.id, was.sampling, is.sampling) end
    if not ok then return nil, problem end
  end
  return true
end

-- ---------------------------------------------------------------- the run

---@class agentbox.SuiteRun
---@field doc table                        # bench.json
---@field dir string
---@field runs table<string, agentbox.Run> # of students, while they run
---@field interrupted? string
local SuiteRun = {}
SuiteRun.__index = SuiteRun

function SuiteRun:_save() return result.write(self.dir, self.doc) end

local function preparer(suite, over)
  local known = {}
  return function(task)
    local options = known[task.task_id] or policy.of(suite.manifest, task, over)
    known[task.task_id] = options
    return options
  end
end

-- Every task once, then every task again: what a run that is stopped early has is spread over the suite. Attempts are no
-- groups: one that could not be made is made again by itself.
local function rounds(tasks, n)
  local list = {}
  for _ = 1, n do table.move(tasks, 1, #tasks, #list + 1, list) end
  return list
end

function SuiteRun:_runner_options(student, one)
  local opts, quota = self.opts, self.opts.max_errors
  local out = ("%s/models/%s/trajectories"):format(self.dir, one.dir)
  local begun = fs.exists(("%s/%s/run.json"):format(out, one.run_id))
  local meta = json.object {}
  put(meta, "tasks", opts.suite.root, "model", student.model.name, "bench", self.doc.report_id)
  return {
    tasks = rounds(self.tasks, self.doc.n), model = student.model,
    concurrency = student.concurrency or opts.concurrency or opts.suite.manifest.concurrency, out = out, run_id = one.run_id,
    resume = begun, retry_errors = opts.retry_errors, attempts = opts.attempts,
    max_errors = quota >= 1 and quota or math.max(BROKEN, quota), seed = self.doc.seed ~= json.null and self.doc.seed or nil,
    prepare = preparer(opts.suite, opts.overrides), limits = opts.limits, agentbox_json = opts.save_trajectories, meta = meta,
    total = #self.tasks * self.doc.n, retry_wait_s = opts.retry_wait_s,
    on_event = opts.on_event and function(kind, fields) opts.on_event(student.id, kind, fields) end,
  }
end

function SuiteRun:_perform(student, one)
  if self.interrupted then return end
  local began = time.monotonic()
  local run <close>, problem = runner.start(self:_runner_options(student, one)) -- luacheck: ignore
  if not run then
    one.failure = tostring(problem.msg)
    return
  end
  self.runs[student.id] = run
  if self.interrupted then run:stop(self.interrupted) end
  local sum = run:wait()
  self.runs[student.id] = nil
  one.wall_s = (one.wall_s or 0) + time.monotonic() - began
  one.failure = run.failure and tostring(run.failure.msg) or (sum.bad_task and tostring(sum.bad_task)) or nil
  self:_save()
end

local function start_students(self)
  local turns = async.semaphore(self.opts.jobs or #self.opts.students)
  for i, student in ipairs(self.opts.students) do
    local one = self.doc.students[i]
    one.failure = nil
    self.fibers[i] = async.spawn(function()
      local turn <close> = turns:acquire() -- luacheck: ignore
      self:_perform(student, one)
    end)
  end
end

--- Begins no more rollouts; those that run end.
---@param why string
function SuiteRun:drain(why)
  self.interrupted = self.interrupted or why
  for _, run in pairs(self.runs) do run:drain(why) end
end

--- Stops what runs; a resumed run makes it again.
---@param why string
function SuiteRun:stop(why)
  self.interrupted = self.interrupted or why
  for _, run in pairs(self.runs) do run:stop(why) end
end

---@return integer
function SuiteRun:running()
  local n = 0
  for _, run in pairs(self.runs) do n = n + run.running end
  return n
end

--- Waits for all students, and writes the reports.
---@async
---@return table? report
---@return agentbox.Err? err
function SuiteRun:wait()
  for _, fiber in ipairs(self.fibers) do
    local ok, problem = fiber:join()
    if ok == false then return nil, problem end
  end
  self.fibers = {}
  self.doc.finished_at = time.iso(time.now())
  local ok, problem = self:_save()
  if not ok then return nil, problem end
  return outputs.write(self.dir)
end

--- Stops what runs if it was not waited for.
---@async
function SuiteRun:close()
  if #self.fibers == 0 then return end
  self:stop "closed"
  for _, fiber in ipairs(self.fibers) do fiber:join() end
  self.fibers = {}
end
SuiteRun.__close = SuiteRun.close

local function inside(path, folder)
  path, folder = path .. "/", folder .. "/"
  return path:sub(1, #folder) == folder
end

-- The result's own folder must not become a part of the suite, nor the suite of the result.
local function check_place(opts)
  local root = opts.suite.root
  if not root or opts.resume then return true end
  local ok, problem = fs.mkdir(opts.out, true)
  if not ok and problem.code ~= "exists" then return nil, problem end
  local out, suite_dir = fs.realpath(opts.out), fs.realpath(root)
  if out and suite_dir and (inside(out, suite_dir) or inside(suite_dir, out)) then
    if #(fs.list(opts.out) or {}) == 0 then fs.remove(opts.out) end
    return bad("usage", "--out %s: results must not lie in the suite's folder, nor it in them", opts.out)
  end
  return true
end

local function begin(opts, doc)
  if fs.exists(opts.out .. "/bench.json") then
    return bad("exists", "%s holds a result already; --resume goes on with it, --out names another place", opts.out)
  end
  local ok, problem = pack.save(opts.suite, opts.out .. "/suite_snapshot")
  if not ok then return nil, problem end
  return result.write(opts.out, doc)
end

local function go_on(opts, fresh)
  local doc, problem = result.read(opts.out)
  if not doc then return nil, problem end
  if doc.foreign then return bad("config", "%s: made by another program; only results of this one are gone on with", opts.out) end
  local ok
  ok, problem = check_same(doc, fresh)
  if not ok then return nil, problem end
  put(doc, "max_errors", fresh.max_errors, "finished_at", nil)
  return doc
end

--- Starts a suite, or goes on with a result. See agentbox.suite for the options.
---@async
---@param given table
---@return agentbox.SuiteRun?
---@return agentbox.Err? err
function M.start(given)
  local opts = schema.options(given, OPTIONS, "suite.start")
  local ok, problem = check_place(opts)
  if not ok then return nil, problem end
  local chosen, facts
  chosen, problem = subset.choose(opts.suite.tasks, opts)
  if not chosen then return nil, problem end
  facts, problem = suite_facts(opts.suite, opts.overrides)
  if not facts then return nil, problem end
  if opts.strict then
    ok, problem = refuse(facts)
    if not ok then return nil, problem end
  end
  local doc = new_doc(opts, chosen, facts)
  if opts.resume then
    doc, problem = go_on(opts, doc)
    if not doc then return nil, problem end
  else
    ok, problem = begin(opts, doc)
    if not ok then return nil, problem end
  end
  local self = setmetatable({ opts = opts, doc = doc, dir = opts.out, tasks = chosen, runs = {}, fibers = {} }, SuiteRun)
  start_students(self)
  return self
end

return M
