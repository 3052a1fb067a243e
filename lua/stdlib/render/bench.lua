--- What a page tells of a benchmark's result besides its trajectories: the figures of its report, and what it is
--- compared with.
local err = require "agentbox.err"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local suite = require "agentbox.suite"

local M = {}

local MAX_LISTED = 100

local function first(list, max)
  return json.array(table.move(list or {}, 1, math.min(#(list or {}), max), 1, {}))
end

local function is_result(path)
  return fs.stat(path .. "/bench.json") ~= nil or fs.stat(path .. "/report.json") ~= nil
end

-- A report.json alone, of an older version or somebody else's, is shown as far as it goes.
local function report_of(path)
  local report, problem = suite.report(path)
  if report then return report end
  return suite.read(path), problem
end

local MODEL = {
  "model_id", "success", "reward", "success_masked", "pass_at", "scored", "unscored", "missing", "planned", "valid",
  "failure", "tokens", "integrity", "wall_clock_s",
}

local function models_of(report)
  local out = json.array {}
  for i, one in ipairs(report.models or {}) do
    out[i] = json.object {}
    for _, name in ipairs(MODEL) do out[i][name] = one[name] end
  end
  return out
end

--- The part of a page that comes from a report; nil when the path is no result.
---@async
---@param path string
---@param other? string     # a result to compare with: differences are those of `path` less those of `other`
---@return table? bench
---@return agentbox.Err? err
function M.of(path, other)
  path = path:gsub("(.)/+$", "%1")
  if not is_result(path) then
    return nil, other and err.new("badarg", path .. ": only a benchmark's result can be compared") or nil
  end
  local report, problem = report_of(path)
  if not report then return nil, not fs.stat(path .. "/bench.json") and not other and nil or problem end
  local out = {
    suite = report.suite, suite_id = report.suite_id, version = report.suite_version, hash = report.suite_content_hash,
    subset = report.subset, n = report.n_per_task, seed = report.seed, started_at = report.started_at,
    problems = report.problems, valid = report.valid, leaderboard = report.leaderboard, models = models_of(report),
    tasks = first(report.tasks, 2000), failures = first(report.failures, MAX_LISTED),
    look_at = first((report.integrity or {}).look_at, MAX_LISTED), flagged = (report.integrity or {}).flagged,
  }
  if not other then return out end
  local before
  before, problem = report_of((other:gsub("(.)/+$", "%1")))
  if not before then return nil, problem end
  out.compare = suite.compare(before, report)
  out.compare.with = other:match "([^/]+)/*$" or other
  return out
end

return M
