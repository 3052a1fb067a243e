--- The report of a result: everything that is known of it, as one table. REPORT.md, report.json, `--json`, junit, CSV and
--- the pages are made of it. The keys that the Python AgentBox's report has mean the same here, except that what the
--- infrastructure spoilt is in no rate.
local attempts = require "agentbox.suite.attempts"
local failures = require "agentbox.suite.failures"
local integrity = require "agentbox.suite.integrity"
local items = require "agentbox.stats.items"
local json = require "agentbox.json"
local paired = require "agentbox.stats.paired"
local put = require "agentbox.suite.put"
local result = require "agentbox.suite.result"
local scores = require "agentbox.suite.scores"

local M = {}

--- How many suspicious attempts are listed, those of successes first.
M.MAX_LISTED = 200

local DEFINITION = "pass_at[k] is the unbiased estimate of the chance that of k attempts at least one succeeds (Chen et al. 2021), "
  .. "the mean over tasks with at least k scored attempts; a task's pass_at_k is 1 when any of its attempts succeeded"

---@class agentbox.ReportOpts
---@field level? number       # of the intervals, default 0.95
---@field resamples? integer  # default 1000

local function or_null(value)
  if value == nil then return json.null end
  return value
end

local function prices_of(doc, student)
  local table_ = doc.prices ~= json.null and doc.prices or nil
  local name = type(student.described) == "table" and student.described.name or student.id
  if student.price and student.price ~= json.null then return { [name] = student.price }, name end
  return table_, name
end

-- ---------------------------------------------------------------- one student

local function model_of(doc, student, rows, opts)
  local table_, name = prices_of(doc, student)
  local out = scores.of(rows, {
    model = student.id, order = doc.tasks, planned = #doc.tasks * doc.n, prices = table_, priced = name, level = opts.level,
    resamples = opts.resamples, seed = doc.seed ~= json.null and doc.seed or 42,
  })
  put(out, "model_config_public", or_null(student.described), "wall_clock_s", or_null(student.wall_s))
  out.failure = or_null(student.failure)
  out.records = select(2, result.records("", student))
  local quota = doc.max_errors or 1
  local over = quota < 1 and out.n > 0 and out.unscored > quota * out.n or quota >= 1 and out.unscored > quota
  out.over_quota = over
  out.valid = out.scored > 0 and not over and out.failure == json.null and out.missing == 0
  return out
end

-- ---------------------------------------------------------------- all students

local function above(a, b)
  local function key(one, name)
    local value = one.aggregate[name]
    return value == json.null and -math.huge or value
  end
  for _, name in ipairs { "success_rate", "mean_reward" } do
    local x, y = key(a, name), key(b, name)
    if x ~= y then return x > y end
  end
  local x, y = key(a, "mean_steps"), key(b, "mean_steps")
  if x ~= y then return x < y end
  return a.model_id < b.model_id
end

-- Per-task differences of success rate between two students, over the tasks that both have a score of.
local function differences(a, b)
  local of_b, list = {}, {}
  for _, task in ipairs(b.by_task) do of_b[task.task_id] = task.pass_at_1 end
  for _, task in ipairs(a.by_task) do
    local other = of_b[task.task_id]
    if other and other ~= json.null and task.pass_at_1 ~= json.null then list[#list + 1] = task.pass_at_1 - other end
  end
  return list
end

local MAX_WORK = 1000000 -- of each pair in the leaderboard

-- Whether the one that stands below could as well stand here.
local function versus(a, b, seed)
  local list = differences(a, b)
  local out = json.object {}
  put(out, "model_id", b.model_id, "tasks", #list, "p", paired.permutation(list, seed, MAX_WORK).p)
  return out
end

local function leaderboard_of(models, seed)
  local order, out = table.move(models, 1, #models, 1, {}), json.array {}
  table.sort(order, above)
  for i, one in ipairs(order) do
    local row, aggregate = json.object {}, one.aggregate
    put(row, "model_id", one.model_id, "success_rate", aggregate.success_rate, "mean_reward", aggregate.mean_reward)
    put(row, "mean_steps", aggregate.mean_steps, "mean_duration_s", aggregate.mean_duration_s,
      "pass_at_k_mean", one.pass_at_k_mean)
    put(row, "n", one.n, "wall_clock_s", one.wall_clock_s)
    put(row, "rank", i, "scored", one.scored, "unscored", one.unscored, "missing", one.missing, "valid", one.valid)
    put(row, "low", one.success.low, "high", one.success.high)
    put(row, "flagged", one.integrity.flagged, "cost", one.tokens.cost)
    row.versus_next = order[i + 1] and order[i + 1].scored > 0 and versus(one, order[i + 1], seed) or json.null
    out[i] = row
  end
  return out
end

-- Every pass over the suite of every student is one taker: its first attempts, its second ones.
local function takers_of(all)
  local takers = {}
  for _, rows in ipairs(all) do
    local by_index = {}
    for _, row in ipairs(rows) do
      if row.scored then
        local taker = by_index[row.index]
        if not taker then
          taker = {}
          by_index[row.index], takers[#takers + 1] = taker, taker
        end
        taker[row.task] = row.success and 1 or 0
      end
    end
  end
  return takers
end

local function tasks_of(doc, models, all)
  local found, out = items.of(takers_of(all)), json.array {}
  for i, id in ipairs(doc.tasks) do
    local item = found[id]
    local entry = {
      task_id = id, scored = item and item.n or 0, difficulty = item and item.difficulty or json.null,
      discrimination = item and item.discrimination or json.null, flaky = json.array {},
    }
    for _, one in ipairs(models) do
      local task = one.by_task[i]
      if task.disagreement ~= json.null and task.disagreement > 0 then table.insert(entry.flaky, one.model_id) end
    end
    out[i] = entry
  end
  return out
end

local function marks_of(row)
  local out = json.array {}
  for _, name in ipairs(integrity.MARKS) do
    if row.marks[name] then out[#out + 1] = name end
  end
  return out
end

M.marks_of = marks_of

-- The attempts that somebody should look at: suspicious successes, other suspicious ones, then disagreements.
local function listed(all)
  local list = {}
  for _, rows in ipairs(all) do
    for _, row in ipairs(rows) do
      if next(row.marks) then
        list[#list + 1] = { weight = (row.suspicious and 2 or 0) + (row.success and 1 or 0), row = row }
      end
    end
  end
  table.sort(list, function(a, b)
    if a.weight ~= b.weight then return a.weight > b.weight end
    if a.row.model ~= b.row.model then return a.row.model < b.row.model end
    if a.row.task ~= b.row.task then return a.row.task < b.row.task end
    return a.row.index < b.row.index
  end)
  local out = json.array {}
  for i = 1, math.min(#list, M.MAX_LISTED) do
    local row, entry = list[i].row, json.object {}
    put(entry, "model_id", row.model, "task_id", row.task, "index", row.index, "id", row.id)
    put(entry, "success", row.success, "marks", marks_of(row), "path", row.path)
    out[i] = entry
  end
  return out, #list
end

local function hack_rate(models)
  local flagged, scored, successes = 0, 0, 0
  for _, one in ipairs(models) do
    flagged, scored = flagged + one.integrity.flagged, scored + one.scored
    successes = successes + one.integrity.flagged_successes
  end
  local out = json.object {}
  put(out, "flagged", flagged, "flagged_successes", successes, "rate", scored > 0 and flagged / scored or json.null)
  return out
end

local function problems_of(report)
  local list = json.array {}
  local function add(text, ...) list[#list + 1] = text:format(...) end
  if report.subset ~= json.null then add("a subset: %d of the suite's %d tasks", report.subset.tasks, report.subset.of) end
  if report.suite.integrity == "differs" then add "the suite differs from its stored content hash" end
  if report.suite.integrity == "none" then add "the suite is not frozen" end
  if #report.suite.differs > 0 then add("differs from the suite's seal in: %s", table.concat(report.suite.differs, ", ")) end
  for _, one in ipairs(report.models) do
    if one.failure ~= json.null then add("%s: %s", one.model_id, one.failure) end
    if one.missing > 0 then add("%s: %d of %d attempts are missing", one.model_id, one.missing, one.planned) end
    if one.unscored > 0 then
      add("%s: %d of %d attempts have no score%s", one.model_id, one.unscored, one.n, one.over_quota and ", more than the quota" or "")
    end
  end
  return list
end

-- ---------------------------------------------------------------- the whole

local function head_of(doc)
  local out, suite = json.object {}, doc.suite
  put(out, "schema_version", "1", "report_id", doc.report_id, "suite_id", suite.id, "suite_version", suite.version)
  put(out, "suite_content_hash", or_null(suite.content_hash), "agentbox_version", or_null(doc.agentbox_version))
  put(out, "started_at", or_null(doc.started_at), "finished_at", or_null(doc.finished_at))
  out.run_tags = doc.run_tags or json.object {}
  out.suite = json.object {}
  for _, key in ipairs { "id", "name", "version", "integrity", "content_hash", "content_hash_now", "seal" } do
    out.suite[key] = or_null(suite[key])
  end
  out.suite.differs, out.suite.parts = suite.differs or json.array {}, or_null(suite.parts)
  put(out, "subset", or_null(doc.subset), "overrides", or_null(doc.overrides))
  put(out, "n_per_task", doc.n, "seed", or_null(doc.seed), "max_errors", or_null(doc.max_errors))
  return out
end

--- Makes the report of rows that are there already.
---@param doc table                     # as result.read gives it
---@param all agentbox.Attempt[][]      # of each student, in the order of doc.students
---@param opts? agentbox.ReportOpts
---@return table
function M.build(doc, all, opts)
  opts = { level = opts and opts.level or 0.95, resamples = opts and opts.resamples or 1000 }
  local out = head_of(doc)
  put(out, "models", json.array {}, "level", opts.level, "resamples", opts.resamples)
  for i, student in ipairs(doc.students) do out.models[i] = model_of(doc, student, all[i], opts) end
  out.leaderboard = leaderboard_of(out.models, doc.seed ~= json.null and doc.seed or 42)
  put(out, "pass_at_k_definition", DEFINITION, "tasks", tasks_of(doc, out.models, all))
  local total
  out.integrity = hack_rate(out.models)
  out.integrity.look_at, total = listed(all)
  out.integrity.listed_of = total
  out.failures = failures.of(all)
  out.problems = problems_of(out)
  out.valid = #out.models > 0
  for _, one in ipairs(out.models) do out.valid = out.valid and one.valid end
  return out
end

-- Members that differ between two runs of the same: times, and the ids that are drawn for each run and where they stand.
local VOLATILE = {}
for name in ([[
  report_id started_at finished_at wall_clock_s wall_s mean_duration_s time_ms id path trajectory_paths records seal parts
  agentbox_version agentbox
]]):gmatch "%S+" do VOLATILE[name] = true end

--- A report without times and ids: what is left of two reports is the same when the same was run.
---@param value any
---@return any
function M.comparable(value)
  if type(value) ~= "table" then return value end
  if json.is_array(value) then
    local out = json.array {}
    for i, item in ipairs(value) do out[i] = M.comparable(item) end
    return out
  end
  local out = json.object {}
  for name, item in pairs(value) do
    if not VOLATILE[name] then out[name] = M.comparable(item) end
  end
  return out
end

--- Reads the rows of a result: a list for each student.
---@async
---@param dir string
---@param doc table
---@return agentbox.Attempt[][]?
---@return agentbox.Err? err
function M.rows(dir, doc)
  local all = {}
  for i, student in ipairs(doc.students) do
    local path, shown = result.records(dir, student)
    local rows, problem = attempts.of(path, student.id, shown)
    if not rows then return nil, problem end
    all[i] = rows
  end
  return all
end

return M
