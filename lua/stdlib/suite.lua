--- Suites of tasks that are run with several models and can be believed: frozen, hashed, with intervals, and with what the
--- infrastructure spoilt apart. docs/benchmarks.md has the whole; a shell has `agentbox bench`.
---
---     local suite = assert(ab.suite.load "suites/mini")
---     local students = assert(ab.suite.students { { id = "small", model = "m1", base_url = U } })
---     local run <close> = assert(ab.suite.start { suite = suite, out = "results/a", students = students })
---     print(assert(run:wait()).leaderboard[1].model_id)
---
---     local report = assert(ab.suite.report "results/a")      -- at any time, also while it runs
local compare = require "agentbox.suite.compare"
local err = require "agentbox.err"
local fs = require "agentbox.fs"
local integrity = require "agentbox.suite.integrity"
local json = require "agentbox.json"
local manifests = require "agentbox.suite.manifest"
local outputs = require "agentbox.suite.outputs"
local pack = require "agentbox.suite.pack"
local report = require "agentbox.suite.report"
local result = require "agentbox.suite.result"
local run = require "agentbox.suite.run"
local schema = require "agentbox.schema"
local seal = require "agentbox.suite.seal"
local students = require "agentbox.suite.students"
local task = require "agentbox.task"
local time = require "agentbox.time"

local M = {}

--- Reads a suite: a folder with suite.json and tasks/, ours or the Python AgentBox's.
---
--- Returns nil, err: `notfound`, `config` when suite.json is wrong, `task` when a task is.
---@async
---@nodiscard
---@param root string
---@return agentbox.Suite?
---@return agentbox.Err? err
function M.load(root) return pack.load(root) end

---@class agentbox.SuiteCheck
---@field integrity "ok"|"none"|"differs"   # AgentBox's content hash
---@field expected? string
---@field got string
---@field sealed boolean                    # the suite has a seal, which `bench freeze` makes
---@field differs string[]                  # parts in which the seal differs: tasks, images, sandbox, agent, tools, prompts, ...
---@field seal string                       # as it is here and now
---@field unpinned string[]                 # images without a digest on this machine
---@field unknown string[]                  # keys of suite.json that mean nothing

--- Whether a suite is what it was when it was frozen.
---@async
---@nodiscard
---@param suite agentbox.Suite
---@return agentbox.SuiteCheck?
---@return agentbox.Err? err   # when a task cannot be planned
function M.check(suite)
  local verdict, now = pack.integrity(suite)
  local sealed, problem = seal.of(suite)
  if not sealed then return nil, problem end
  local own = manifests.own(suite.manifest)
  local stored = suite.manifest.content_hash
  return {
    integrity = verdict, expected = stored ~= json.null and stored or nil, got = now, sealed = own.hash ~= nil, seal = sealed.hash,
    differs = json.array(own.parts and seal.differences(own.parts, sealed.parts) or {}), unpinned = json.array(sealed.unpinned),
    unknown = json.array(suite.unknown or {}),
  }
end

local function freeze(suite)
  local manifest = suite.manifest
  if manifest.created_at == json.null then manifest.created_at = time.iso(time.now()) end
  local _, now = pack.integrity(suite)
  manifest.content_hash = now
  local sealed, problem = seal.of(suite)
  if not sealed then return nil, problem end
  local own = json.is_object(manifest.metadata.agentbox) and manifest.metadata.agentbox or json.object {}
  own.hash, own.parts = sealed.hash, sealed.parts
  manifest.metadata.agentbox = own
  return suite
end

--- Stores the hashes of what is there in suite.json: AgentBox's, and the seal.
---@async
---@nodiscard
---@param root string
---@return agentbox.Suite?
---@return agentbox.Err? err
function M.freeze(root)
  local suite, problem = pack.load(root)
  if not suite then return nil, problem end
  suite, problem = freeze(suite)
  if not suite then return nil, problem end
  local ok
  ok, problem = pack.save_manifest(suite.manifest, root)
  if not ok then return nil, problem end
  return suite
end

local CREATE = {
  tasks = { "string|list", required = true }, dest = { "string", required = true }, suite_id = { "string", required = true },
  name = { "string", required = true }, version = { "string" }, description = { "string" }, concurrency = { "integer", min = 1 },
  n_per_task = { "integer", min = 1 }, seed = { "integer" }, sandbox = { "map" }, agent = { "map" }, setup_checks = { "list" },
  prices = { "map" }, replace = { "boolean" },
}

local function raw_manifest(opts)
  local raw = json.object {}
  for _, key in ipairs { "suite_id", "name", "version", "description", "concurrency", "n_per_task", "seed", "sandbox", "agent" } do
    raw[key] = opts[key]
  end
  if opts.setup_checks then raw.scoring = json.object { setup_checks = json.array(opts.setup_checks) } end
  if opts.prices then raw.metadata = json.object { agentbox = json.object { prices = opts.prices } } end
  return raw
end

-- A folder that is there must be empty, or a suite that may be replaced: everything in its tasks folder goes.
local function check_dest(opts)
  local entries = fs.list(opts.dest)
  if not entries or #entries == 0 then return true end
  local is_suite = fs.exists(opts.dest .. "/suite.json")
  if is_suite and opts.replace then return true end
  return nil, err.new("exists", ("%s: %s"):format(opts.dest,
    is_suite and "holds a suite already; replace it knowingly (--replace)" or "is neither empty nor a suite"))
end

--- Makes a suite of tasks, frozen, in a folder.
---
--- Raises on unknown options. Returns nil, err: `task`, `config`, `exists`.
---@async
---@nodiscard
---@param opts { tasks: string|agentbox.Task[], dest: string, suite_id: string, name: string, version?: string, description?: string, concurrency?: integer, n_per_task?: integer, seed?: integer, sandbox?: table, agent?: table, setup_checks?: agentbox.SetupCheck[], prices?: table<string, agentbox.Price>, replace?: boolean }
---@return agentbox.Suite?
---@return agentbox.Err? err
function M.create(opts)
  opts = schema.options(opts, CREATE, "suite.create")
  local tasks, problem = opts.tasks, nil
  if type(tasks) == "string" then tasks, problem = task.dir(tasks) end
  if not tasks then return nil, problem end
  if #tasks == 0 then return nil, err.new("task", ("%s: no tasks here"):format(opts.tasks)) end
  local manifest
  manifest, problem = manifests.check(raw_manifest(opts), "suite")
  if not manifest then return nil, problem end
  local ok
  ok, problem = check_dest(opts)
  if not ok then return nil, problem end
  ok, problem = pack.save({ manifest = manifest, tasks = tasks }, opts.dest)
  if not ok then return nil, problem end
  return M.freeze(opts.dest) -- what was written is what is hashed
end

--- Opens models to run a suite with; the keys of an entry are those of a models file (docs/benchmarks.md).
---@async
---@nodiscard
---@param entries table[]
---@param defaults? { api_key?: string, extra_body?: table }
---@return agentbox.Student[]?
---@return agentbox.Err? err
function M.students(entries, defaults) return students.open(entries, defaults or {}) end

---@class agentbox.SuiteStartOpts
---@field suite agentbox.Suite
---@field out string                       # folder of the result
---@field students agentbox.Student[]
---@field n? integer                       # attempts of each task; the suite's unless given
---@field concurrency? integer             # rollouts of one student at once; the suite's unless given
---@field jobs? integer                    # students at once; all unless given
---@field seed? integer
---@field limit? integer                   # a subset: the first so many tasks
---@field tasks? string[]                  # a subset: ids, or globs over them
---@field overrides? agentbox.SuiteOverrides   # image, backend, network, max_steps
---@field strict? boolean                  # refuse when anything differs from what was frozen
---@field attempts? integer                # of one place, when the infrastructure fails; default 3
---@field max_errors? number               # attempts without a score beyond which a student's numbers do not count; default 0.1
---@field resume? boolean                  # the result is there: what is missing is run
---@field retry_errors? boolean
---@field save_trajectories? boolean       # AgentBox's JSON beside the record; default true
---@field prices? table<string, agentbox.Price>
---@field limits? table                    # as for the runner
---@field tags? table<string, string>
---@field on_event? fun(student: string, kind: string, fields: table)

--- Starts a suite and returns at once; `run:wait()` gives the report, which is written to the folder as well. Closing the
--- handle stops what runs.
---@async
---@nodiscard
---@param opts agentbox.SuiteStartOpts
---@return agentbox.SuiteRun? run
---@return agentbox.Err? err
function M.start(opts) return run.start(opts) end

--- What a result comes to, made anew of its records: the one table from which REPORT.md, report.json, `--json` and the
--- pages are made. `result_dir` is the folder given to --out; a result of the Python AgentBox will do. It may be called
--- while the run goes on.
---
---     suite { id, name, version, content_hash, integrity, seal, differs }   subset { tasks, of, limit, filter } or null
---     valid, problems[]           whether to believe it, and why not
---     leaderboard[]               rank, model_id, success_rate, low, high, mean_reward, scored, unscored, versus_next { p }
---     models[]                    of each student:
---       success, reward, success_masked, pass_at[k]   { estimate, low, high, se, tasks, method }; pass_at has k, too
---       aggregate, by_stop        AgentBox's means and counts
---       by_task[]                 in the suite's order: n, successes, scored, pass_at_1, mean_reward, disagreement, flagged,
---                                 trajectory_paths[] (PATH#ID below result_dir, for ab.traj.load)
---       infrastructure { unscored, retried }   by class; planned, n, scored, missing
---       tokens, time_ms           with cost and tokens for a success, null without a price or a success
---       integrity { flagged, rate, marks }
---       records                   the student's run folder, below result_dir
---     tasks[]                     task_id, difficulty, discrimination, flaky[] (students)
---     failures[]                  what fails alike: fingerprint, n, class, exit_code, head, model_id, task_id, path
---     integrity.look_at[]         model_id, task_id, index, id, success, marks[], path
---
--- What is unknown is null. Returns nil, err: `notfound` when there is no result, `parse` when a record is damaged.
---@async
---@nodiscard
---@param result_dir string
---@param opts? agentbox.ReportOpts
---@return table? report
---@return agentbox.Err? err
function M.report(result_dir, opts)
  local doc, problem = result.read(result_dir)
  if not doc then return nil, problem end
  local rows
  rows, problem = report.rows(result_dir, doc)
  if not rows then return nil, problem end
  return report.build(doc, rows, opts)
end

--- The attempts of a result, one flat row for each place: a list for each student, in the order of `models` of the report.
---@async
---@nodiscard
---@param result_dir string
---@return agentbox.Attempt[][]?
---@return agentbox.Err? err
function M.attempts(result_dir)
  local doc, problem = result.read(result_dir)
  if not doc then return nil, problem end
  return report.rows(result_dir, doc)
end

--- Writes every form of the report again: report.json, REPORT.md, junit.xml, attempts.csv.
---@async
---@nodiscard
---@param result_dir string
---@param opts? agentbox.ReportOpts
---@return table? report
---@return agentbox.Err? err
function M.write(result_dir, opts) return outputs.write(result_dir, opts) end

--- Reads a report: a report.json, or the folder that has one.
---@async
---@nodiscard
---@param path string
---@return table?
---@return agentbox.Err? err
function M.read(path)
  local stat, problem = fs.stat(path)
  if not stat then return nil, err.wrap(problem, path) end
  return result.read_json(stat.type == "dir" and path .. "/report.json" or path)
end

--- A report without times and ids, for telling whether two runs came to the same.
---@nodiscard
---@param whole table
---@return table
function M.comparable(whole) return report.comparable(whole) end

--- Compares two reports, B less A: `deltas[]` with the paired statistics of success and reward for each student that both
--- have (or `student_a` with `student_b`), `explained_by[]` the tasks that make the difference, `warnings[]`.
---@nodiscard
---@param a table
---@param b table
---@param opts? agentbox.CompareOpts
---@return table
function M.compare(a, b, opts) return compare.of(a, b, opts) end

--- The last tool call of a record that reads like a test run, with its verdict.
---@param line table   # a record, as `traj.line`
---@return agentbox.OwnCheck?
function M.own_check(line) return integrity.own_check(line) end

--- What of a record looks like winning without solving: names among `touched`, `planted`, `history`, `spoofed`, `mismatch`.
---@param line table
---@return table<string, true>
function M.marks(line) return integrity.marks(line) end

return M
