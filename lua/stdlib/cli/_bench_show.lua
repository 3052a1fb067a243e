--- `agentbox bench show`, `compare` and `list`.
local json = require "agentbox.json"
local out = require "agentbox.cli._out"

local M = {}

local function put(text, ...) io.stdout:write(select("#", ...) > 0 and text:format(...) or text, "\n") end
local function null(value) return value == nil or value == json.null end

local function number(value, format)
  return null(value) and "-" or (format or "%.3f"):format(value)
end

local function interval(one)
  if null(one) or null(one.estimate) then return "-" end
  if null(one.low) then return number(one.estimate) end
  return ("%s [%s, %s]"):format(number(one.estimate), number(one.low), number(one.high))
end

local function by_id(report)
  local map = {}
  for _, one in ipairs(report.models or {}) do map[one.model_id] = one end
  return map
end

--- The first lines of a report: what it is of, whether to believe it, and the leaderboard.
---@param report table
function M.leaderboard(report)
  local subset = type(report.subset) == "table" and (" SUBSET: %d of %d tasks"):format(report.subset.tasks, report.subset.of) or ""
  put("suite %s %s  hash %s%s", out.line(tostring(report.suite_id)), out.line(tostring(report.suite_version)),
    null(report.suite_content_hash) and "-" or out.line(report.suite_content_hash):sub(1, 12), subset)
  local models = by_id(report)
  for i, row in ipairs(report.leaderboard or {}) do
    local one = models[row.model_id] or {}
    local infra = (row.unscored or 0) > 0 and ("  unscored %d"):format(row.unscored) or ""
    local missing = (row.missing or 0) > 0 and ("  missing %d"):format(row.missing) or ""
    put("%d. %s  success %s  reward %s  pass@k %s  steps %s  n %d%s%s%s", i, out.line(row.model_id),
      one.success and interval(one.success) or number(row.success_rate), one.reward and interval(one.reward) or number(row.mean_reward),
      number(row.pass_at_k_mean), number(row.mean_steps, "%.2f"), row.scored or row.n or 0, infra, missing,
      row.valid == false and "  NOT VALID" or "")
  end
  for _, problem in ipairs(report.problems or {}) do put("note: %s", out.line(problem)) end
end

local function counts(map)
  local parts = {}
  for name, value in pairs(map or {}) do parts[#parts + 1] = ("%s %s"):format(out.line(name), tostring(value)) end
  return #parts > 0 and table.concat(parts, ", ") or "none"
end

local MAX_TASKS = 30

local function put_model(one)
  put("\n%s: %s", out.line(one.model_id), counts(one.aggregate.by_status))
  if one.infrastructure then
    put("  infrastructure: unscored %s; made again %s", counts(one.infrastructure.unscored), counts(one.infrastructure.retried))
    put("  suspicious: %d of %d (%s)", one.integrity.flagged, one.scored, counts(one.integrity.marks))
  end
  local passes = {}
  for i, entry in ipairs(one.pass_at or {}) do passes[i] = ("pass@%d %s"):format(entry.k, number(entry.estimate)) end
  if #passes > 0 then put("  %s", table.concat(passes, ", ", 1, math.min(#passes, 16))) end
  for i, task in ipairs(one.by_task) do
    if i > MAX_TASKS then
      put("  and %d more tasks", #one.by_task - MAX_TASKS)
      break
    end
    put("  %-32s %d/%d  reward %s  steps %s%s", out.line(task.task_id), task.successes, task.scored or task.n, number(task.mean_reward),
      number(task.mean_steps, "%.1f"), (task.flagged or 0) > 0 and ("  suspicious %d"):format(task.flagged) or "")
  end
end

local function put_failures(report)
  if #(report.failures or {}) == 0 then return end
  put "\nwhat fails alike:"
  for _, one in ipairs(report.failures) do
    put("  %4d  %s  exit %s  %s  (as %s)", one.n, one.fingerprint, null(one.exit_code) and "-" or tostring(one.exit_code),
      out.line(one.head:gsub("%s+", " ")):sub(1, 80), out.line(one.task_id))
  end
end

-- The report to show: as it was written, or made anew where there are records and something asks for it.
local function report_of(args)
  local suites = require "agentbox.suite"
  local fs = require "agentbox.fs"
  local is_dir = (fs.stat(args.report) or {}).type == "dir"
  local dir = args.traj_dir or is_dir and args.report or args.report:match "^(.*)/[^/]*$" or "."
  if args.level and not (args.level >= 0.5 and args.level < 1) then
    return nil, { code = "usage", msg = ("bench show: --level must be between 0.5 and 1, not %g"):format(args.level) }
  end
  if args.traj_dir or args.level or is_dir and not fs.exists(args.report .. "/report.json") then
    local report, err = suites.report(dir, { level = args.level })
    return report, err, dir
  end
  local report, err = suites.read(args.report)
  return report, err, dir
end

local function write(path, text)
  local ok, err = require "agentbox.fs".write(path, text)
  if not ok then return nil, err end
  io.stderr:write("wrote ", out.line(path), "\n")
  return true
end

local function write_forms(args, report, dir)
  local suites, ok, err = require "agentbox.suite", true, nil
  if args.out then
    local full = report
    if not report.suite then full, err = suites.report(dir) end -- the Python AgentBox's
    if not full then return nil, err end
    ok, err = write(args.out, require "agentbox.suite.markdown".text(full))
  end
  if not ok then return nil, err end
  if not (args.csv or args.junit) then return true end
  local rows
  rows, err = suites.attempts(dir)
  if not rows then return nil, err end
  if args.csv then ok, err = write(args.csv, require "agentbox.suite.csv".text(rows)) end
  if ok and args.junit then ok, err = write(args.junit, require "agentbox.suite.junit".text(report, rows)) end
  return ok, err
end

---@async
---@param args table
---@return integer? status
---@return table? err
function M.show(args)
  local report, err, dir = report_of(args)
  if not report then return nil, err end
  if type(report.models) ~= "table" or not report.suite_id then
    return nil, { code = "parse", msg = args.report .. ": not the report of a suite" }
  end
  local ok
  ok, err = write_forms(args, report, dir)
  if not ok then return nil, err end
  if args.json then
    put("%s", json.encode(report))
    return 0
  end
  M.leaderboard(report)
  for _, one in ipairs(report.models) do put_model(one) end
  put_failures(report)
  return 0
end

-- ---------------------------------------------------------------- comparing

local function put_paired(name, p)
  put("  %s: %+.4f [%s, %s] over %d tasks; better %d, worse %d, same %d; sign test p = %.3g, permutation test p = %.3g (%s); d = %s",
    name, null(p.mean) and 0 or p.mean, number(p.low, "%+.4f"), number(p.high, "%+.4f"), p.tasks, p.sign.better, p.sign.worse, p.sign.same,
    p.sign.p, p.permutation.p, p.permutation.method, number(p.d_z, "%.2f"))
end

local MAX_EXPLAINED = 10

local function put_delta(delta)
  put("%s%s: success %s to %s (%s), steps %s to %s (%s)", out.line(delta.model_id),
    delta.model_id_b and " against " .. out.line(delta.model_id_b) or "", number(delta.success_rate_a), number(delta.success_rate_b),
    number(delta.delta_success_rate, "%+.3f"), number(delta.mean_steps_a, "%.2f"), number(delta.mean_steps_b, "%.2f"),
    number(delta.delta_mean_steps, "%+.2f"))
  put_paired("success", delta.success)
  put_paired("reward", delta.reward)
  for i, task in ipairs(delta.explained_by) do
    if i > MAX_EXPLAINED then break end
    put("  %-32s %.3f to %.3f  %4.1f %% of the difference", out.line(task.task_id), task.a, task.b, 100 * task.share)
  end
end

local function compare_status(args, result)
  if args.strict and (#result.warnings > 0 or not result.hash_match) then
    io.stderr:write "agentbox: bench compare: the two were not made alike\n"
    return 2
  end
  if args.fail_if_worse then
    for _, delta in ipairs(result.deltas) do
      local mean = delta.success.mean
      if not null(mean) and mean < 0 and delta.success.permutation.p < args.fail_if_worse then return 1 end
    end
  end
  return 0
end

---@async
---@param args table
---@return integer? status
---@return table? err
function M.compare(args)
  local suites = require "agentbox.suite"
  local a, b, err
  a, err = suites.read(args.a)
  if not a then return nil, err end
  b, err = suites.read(args.b)
  if not b then return nil, err end
  for path, one in pairs { [args.a] = a, [args.b] = b } do
    if type(one.models) ~= "table" then return nil, { code = "parse", msg = path .. ": not the report of a suite" } end
  end
  local result = suites.compare(a, b, { student_a = args.student_a, student_b = args.student_b })
  if args.json then
    put("%s", json.encode(result))
  else
    put("suite %s  hashes %s, seals %s", out.line(tostring(result.suite_id)), result.hash_match and "match" or "do not match",
      result.seal_match and "match" or "do not match")
    for _, warning in ipairs(result.warnings) do put("warning: %s", out.line(warning)) end
    for _, delta in ipairs(result.deltas) do put_delta(delta) end
  end
  return compare_status(args, result)
end

-- ---------------------------------------------------------------- listing

local MAX_DEPTH = 4

local function entry_of(path, kind)
  local name = kind == "suite" and "suite.json" or "bench.json"
  local doc, problem = require "agentbox.suite.result".read_json(path .. "/" .. name)
  if not doc then return { kind = kind, path = path, problem = problem.msg } end
  if kind == "suite" then
    return { kind = kind, path = path, id = doc.suite_id, version = doc.version, frozen = not null(doc.content_hash) }
  end
  local ids = {}
  for i, one in ipairs(doc.students or {}) do ids[i] = one.id end
  return { kind = kind, path = path, id = (doc.suite or {}).id, students = json.array(ids), subset = not null(doc.subset),
    state = null(doc.finished_at) and "unfinished" or "finished" }
end

local function walk(dir, depth, found)
  local fs = require "agentbox.fs"
  local is_result = fs.exists(dir .. "/bench.json")
  if fs.exists(dir .. "/suite.json") then
    found[#found + 1] = entry_of(dir, "suite")
    return true
  end
  if is_result then
    found[#found + 1] = entry_of(dir, "result")
    return true
  end
  if depth == 0 then return true end
  local entries, err = fs.list(dir)
  if not entries then return nil, err end
  for _, entry in ipairs(entries) do
    if entry.type == "dir" and entry.name:sub(1, 1) ~= "." then walk(dir .. "/" .. entry.name, depth - 1, found) end
  end
  return true
end

---@async
---@param args table
---@return integer? status
---@return table? err
function M.list(args)
  local found = {}
  local ok, err = walk(args.dir or ".", MAX_DEPTH, found)
  if not ok then return nil, err end
  for _, one in ipairs(found) do
    if args.json then
      put("%s", json.encode(one, { sorted = true }))
    elseif one.problem then
      put("%-7s %s  %s", one.kind, out.line(one.path), out.line(one.problem))
    elseif one.kind == "suite" then
      put("suite   %s  %s %s%s", out.line(one.path), out.line(tostring(one.id)), out.line(tostring(one.version)), one.frozen and "" or "  not frozen")
    else
      put("result  %s  %s  %s%s  %s", out.line(one.path), out.line(tostring(one.id)), out.line(table.concat(one.students, ", ")),
        one.subset and "  subset" or "", one.state)
    end
  end
  return 0
end

return M
