--- `agentbox traj check PATH`.
local json = require "agentbox.json"
local out = require "agentbox.cli._out"

local M = {}

local function put(...)
  io.stdout:write(...)
end

local DRIFTS = { "first", "clean", "realign", "fork", "unknown" }

local function sorted_by_count(counts)
  local keys = {}
  for key in pairs(counts) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b)
    if counts[a] ~= counts[b] then return counts[a] > counts[b] end
    return a < b
  end)
  return keys
end

local function list_of(counts)
  local parts = {}
  for i, key in ipairs(sorted_by_count(counts)) do parts[i] = ("%d %s"):format(counts[key], out.line(key)) end
  return table.concat(parts, ", ")
end

local function percent(part, whole)
  return whole > 0 and ("%.1f %%"):format(100 * part / whole) or "-"
end

local function put_tokens(report)
  local parts = {}
  for _, class in ipairs(DRIFTS) do
    if report.drift[class] then parts[#parts + 1] = ("%d %s"):format(report.drift[class], class) end
  end
  if #parts == 0 then return end
  put("calls with token ids: ", table.concat(parts, ", "))
  if report.drift_rate then put((" (drift %.1f %%)"):format(100 * report.drift_rate)) end
  put(("; %s of prompt ids were in the call before\n"):format(percent(report.common, report.prompt)))
end

local function put_lag(report)
  local lags = {}
  for lag in pairs(report.lag) do lags[#lags + 1] = tonumber(lag) end
  if #lags == 0 then return end
  table.sort(lags)
  for i, lag in ipairs(lags) do lags[i] = ("%d: %d"):format(lag, report.lag[tostring(lag)]) end
  put("rollouts by versions behind the newest weights: ", table.concat(lags, ", "), "\n")
end

local function put_text(report)
  for _, problem in ipairs(report.problems) do
    put(("%s: %s: %s (rule %s)\n"):format(out.line(problem.id), out.line(problem.where), out.line(problem.msg),
      problem.rule))
  end
  if report.problem_count > #report.problems then
    put(("... and %d more\n"):format(report.problem_count - #report.problems))
  end
  local repeated = report.repeated_ids
  if repeated.count > 0 then
    put(("note: %d calls have a response id that the server gave before (first: %s)\n"):format(repeated.count,
      out.line(repeated.first)))
  end
  put(("for training: %d of %d"):format(report.trainable, report.trajectories))
  local removed = list_of(report.removed)
  put(removed ~= "" and "; kept from it: " .. removed or "", "\n")
  put_tokens(report)
  put_lag(report)
  put(("trajectories=%d groups=%d problems=%d\n"):format(report.trajectories, report.groups, report.problem_count))
end

-- A line for each trajectory that is kept from training, as it is met; with --json an object each, before the report.
local function removed_printer(args)
  if not args.removed then return nil end
  return function(t, why)
    if args.json then
      return put(json.encode(json.object({ id = t.id, task_id = t.task_id, removed = why }, { "id", "task_id" })), "\n")
    end
    put(("%s: not for training: %s\n"):format(out.line(t.id), out.line(table.concat(why, "; "))))
  end
end

--- Checks, prints, and gives the exit status.
---@async
---@param args table
---@return integer? status
---@return agentbox.Err? err
function M.run(args)
  local limit = args.max_drift or 1
  local report, problem = require "agentbox.store.check".check(args.path, { on_removed = removed_printer(args) })
  if not report then return nil, problem end
  if args.json then put(json.encode(report), "\n") else put_text(report) end
  local drifts = report.drift_rate and report.drift_rate > limit
  if drifts then
    io.stderr:write(("agentbox: traj check: %.1f %% of the calls drift, more than %.1f %%\n")
      :format(100 * report.drift_rate, 100 * limit))
  end
  return report.problem_count == 0 and not drifts and 0 or 1
end

return M
