--- The numbers of one student, from its rows. What the infrastructure spoilt has no score and is in no mean; it is
--- counted apart.
local attempts = require "agentbox.suite.attempts"
local integrity = require "agentbox.suite.integrity"
local intervals = require "agentbox.stats.intervals"
local items = require "agentbox.stats.items"
local json = require "agentbox.json"
local pass_at = require "agentbox.store.stats".pass_at
local prices = require "agentbox.store.stats"
local put = require "agentbox.suite.put"

local M = {}

local function bump(counts, key, by) counts[key] = (counts[key] or 0) + (by or 1) end

-- Counts as an object, the most frequent first.
local function sorted(counts)
  local names, out = {}, json.object {}
  for name in pairs(counts) do names[#names + 1] = name end
  table.sort(names, function(a, b)
    if counts[a] ~= counts[b] then return counts[a] > counts[b] end
    return a < b
  end)
  for _, name in ipairs(names) do out[name] = counts[name] end
  return out
end

M.sorted = sorted

local function mean(sum, n) return n > 0 and sum / n or json.null end

-- ---------------------------------------------------------------- by task

local function new_task(id)
  return {
    task = id, rows = 0, n = 0, c = 0, clean = 0, reward = 0.0, steps = 0, duration = 0.0, timed = 0, seed_errors = 0, setup_checks = 0,
    flagged = 0, statuses = {}, paths = json.array {},
  }
end

local function add_to_task(sums, row)
  sums.rows = sums.rows + 1
  sums.paths[sums.rows] = row.path
  bump(sums.statuses, row.status)
  if row.failure_kind == "seed" then sums.seed_errors = sums.seed_errors + 1 end
  if row.failure_kind == "setup_check" then sums.setup_checks = sums.setup_checks + 1 end
  sums.steps = sums.steps + row.steps
  if row.duration_s then sums.duration, sums.timed = sums.duration + row.duration_s, sums.timed + 1 end
  if row.suspicious then sums.flagged = sums.flagged + 1 end
  if not row.scored then return end
  sums.n, sums.reward = sums.n + 1, sums.reward + row.reward
  if row.success then
    sums.c = sums.c + 1
    if not row.suspicious then sums.clean = sums.clean + 1 end
  end
end

-- The tasks of the suite in its order, those without a row too.
local function by_task(rows, order)
  local found, list = {}, {}
  for _, id in ipairs(order) do
    if not found[id] then
      found[id] = new_task(id)
      list[#list + 1] = found[id]
    end
  end
  for _, row in ipairs(rows) do
    local sums = found[row.task]
    if not sums then
      sums = new_task(row.task)
      found[row.task], list[#list + 1] = sums, sums
    end
    add_to_task(sums, row)
  end
  return list
end

-- A plain table: there may be a hundred thousand of them.
local function task_result(sums, model)
  return {
    task_id = sums.task, model_id = model, trajectory_paths = sums.paths, n = sums.rows, successes = sums.c, scored = sums.n,
    unscored = sums.rows - sums.n, pass_at_1 = mean(sums.c, sums.n), pass_at_k = sums.n > 0 and (sums.c > 0 and 1.0 or 0.0) or json.null,
    mean_reward = mean(sums.reward, sums.n), mean_steps = mean(sums.steps, sums.rows), mean_duration_s = mean(sums.duration, sums.timed),
    seed_errors = sums.seed_errors, setup_check_failures = sums.setup_checks, statuses = sums.statuses,
    disagreement = items.disagreement(sums.n, sums.c) or json.null, flagged = sums.flagged,
  }
end

-- ---------------------------------------------------------------- estimates

local function estimate_of(one)
  local out = json.object {}
  for _, key in ipairs { "estimate", "low", "high", "se" } do out[key] = one[key] or json.null end
  put(out, "tasks", one.tasks, "method", one.method)
  return out
end

-- Tasks that came to the same are alike to every estimate: each kind is counted when tasks are drawn again.
local function kinds_of(tasks)
  local kinds, known, list, most = {}, {}, {}, 0
  for i, sums in ipairs(tasks) do
    local key = ("%d %d %d %.17g"):format(sums.n, sums.c, sums.clean, sums.reward)
    local kind = known[key]
    if not kind then
      kind = #list + 1
      known[key], list[kind] = kind, sums
    end
    kinds[i], most = kind, math.max(most, sums.n)
  end
  return kinds, list, most
end

--- Up to this k, and for the largest, pass@k gets a bootstrap; between them the normal interval will do.
local MAX_DRAWN_K = 32

local function pass_measure(kinds, list, k, most)
  local measure = { num = {}, den = {}, kinds = kinds, bounded = true, normal = k > MAX_DRAWN_K and k < most }
  for i, sums in ipairs(list) do
    measure.num[i] = sums.n >= k and pass_at(sums.n, sums.c, k) or 0
    measure.den[i] = sums.n >= k and 1 or 0
  end
  return measure
end

local function ratio(kinds, list, top, bounded)
  local measure = { num = {}, den = {}, kinds = kinds, bounded = bounded }
  for i, sums in ipairs(list) do measure.num[i], measure.den[i] = sums[top], sums.n end
  return measure
end

local function add_estimates(out, tasks, opts)
  local kinds, list, most = kinds_of(tasks)
  local measures = { ratio(kinds, list, "c", true), ratio(kinds, list, "reward"), ratio(kinds, list, "clean", true) }
  for k = 1, most do measures[k + 3] = pass_measure(kinds, list, k, most) end
  local found = intervals.of(measures, #tasks, opts)
  put(out, "success", estimate_of(found[1]), "reward", estimate_of(found[2]), "success_masked", estimate_of(found[3]))
  out.pass_at = json.array {}
  for k = 1, #measures - 3 do
    local entry = json.object {}
    entry.k = k
    for key, value in pairs(estimate_of(found[k + 3])) do entry[key] = value end
    out.pass_at[k] = entry
  end
  out.pass_at_k_mean = #out.pass_at > 0 and out.pass_at[#out.pass_at].estimate or json.null
end

-- ---------------------------------------------------------------- sums

local function total()
  local sums = {
    scored = 0, success = 0, steps = 0, tool_calls = 0, duration = 0.0, timed = 0, calls = 0, prompt = 0, cached = 0, completion = 0, told = 0,
    statuses = {}, stops = {}, classes = {}, spoilt = {}, marks = {}, suspicious = 0, suspicious_successes = 0, parts = {}, total_ms = 0.0,
  }
  for _, part in ipairs(attempts.PARTS) do sums.parts[part] = 0.0 end
  for _, name in ipairs(integrity.MARKS) do sums.marks[name] = 0 end
  return sums
end

local SUMMED = { "steps", "tool_calls", "calls", "prompt", "cached", "completion", "total_ms" }

local function add(sums, row)
  for i = 1, #SUMMED do
    local key = SUMMED[i]
    sums[key] = sums[key] + row[key]
  end
  if row.duration_s then sums.duration, sums.timed = sums.duration + row.duration_s, sums.timed + 1 end
  if row.told then sums.told = sums.told + 1 end
  bump(sums.statuses, row.status)
  bump(sums.stops, row.stop)
  if row.scored then
    sums.scored, sums.reward = sums.scored + 1, (sums.reward or 0.0) + row.reward
  else
    bump(sums.classes, row.class or "engine")
  end
  if row.success then sums.success = sums.success + 1 end
  if row.spoilt then
    for class, n in pairs(row.spoilt) do bump(sums.spoilt, class, n) end
  end
  for part, ms in pairs(row.timing) do sums.parts[part] = sums.parts[part] + ms end
  for name in pairs(row.marks) do sums.marks[name] = sums.marks[name] + 1 end
  if row.suspicious then
    sums.suspicious = sums.suspicious + 1
    if row.success then sums.suspicious_successes = sums.suspicious_successes + 1 end
  end
end

local function aggregate_of(sums, n)
  local out = json.object {}
  put(out, "n", n, "success_rate", mean(sums.success, sums.scored),
    "mean_reward", mean(sums.reward or 0, sums.scored))
  put(out, "mean_steps", mean(sums.steps, n), "mean_tool_calls", mean(sums.tool_calls, n),
    "mean_duration_s", mean(sums.duration, sums.timed))
  out.by_status = sorted(sums.statuses)
  return out
end

local function tokens_of(sums, n, table_, name)
  local out = json.object {}
  put(out, "calls", sums.calls, "prompt", sums.prompt, "cached", sums.cached, "completion", sums.completion)
  local all = sums.prompt + sums.completion
  out.untold = n - sums.told
  out.per_success = sums.told > 0 and mean(all, sums.success) or json.null
  local cost = table_ and name and prices.cost(table_, name, sums)
  out.cost = cost or json.null
  out.cost_per_success = cost and mean(cost, sums.success) or json.null
  return out
end

local function time_of(sums)
  local out, rest = json.object {}, sums.total_ms
  for _, part in ipairs(attempts.PARTS) do
    out[part .. "_ms"] = sums.parts[part]
    if part ~= "queued" then rest = rest - sums.parts[part] end
  end
  put(out, "other_ms", math.max(0, rest), "total_ms", sums.total_ms)
  return out
end

local function integrity_of(sums)
  local out = json.object {}
  put(out, "flagged", sums.suspicious, "rate", mean(sums.suspicious, sums.scored))
  out.flagged_successes = sums.suspicious_successes
  out.marks = json.object {}
  for _, name in ipairs(integrity.MARKS) do out.marks[name] = sums.marks[name] end
  return out
end

---@class agentbox.ScoreOpts
---@field model string                 # id of the student
---@field order string[]               # the suite's tasks
---@field planned integer              # attempts that there should be
---@field prices? table<string, agentbox.Price>
---@field priced? string               # the name under which its price is
---@field level number
---@field resamples integer
---@field seed integer

--- The numbers of one student.
---@param rows agentbox.Attempt[]
---@param opts agentbox.ScoreOpts
---@return table
function M.of(rows, opts)
  local sums, tasks, out = total(), by_task(rows, opts.order), json.object {}
  for _, row in ipairs(rows) do add(sums, row) end
  put(out, "model_id", opts.model, "planned", opts.planned, "n", #rows, "scored", sums.scored,
    "unscored", #rows - sums.scored)
  out.missing = math.max(0, opts.planned - #rows)
  out.infrastructure = json.object {}
  out.infrastructure.unscored, out.infrastructure.rate = sorted(sums.classes), mean(#rows - sums.scored, #rows)
  out.infrastructure.retried = sorted(sums.spoilt)
  add_estimates(out, tasks, opts)
  put(out, "aggregate", aggregate_of(sums, #rows), "by_task", json.array {})
  for i, one in ipairs(tasks) do out.by_task[i] = task_result(one, opts.model) end
  out.by_stop = sorted(sums.stops)
  put(out, "tokens", tokens_of(sums, #rows, opts.prices, opts.priced), "time_ms", time_of(sums),
    "integrity", integrity_of(sums))
  return out
end

return M
