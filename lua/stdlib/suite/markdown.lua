--- A report for people, in Markdown. Whatever somebody else named (tasks, models, suites) is written so that it can be
--- neither markup nor a row of a table.
local json = require "agentbox.json"

local M = {}

local MAX_TASKS, MAX_LISTED = 200, 50

--- Text of others as plain text of Markdown and HTML.
---@param value any
---@return string
function M.plain(value)
  local text = require "agentbox.cli._out".line(tostring(value))
  text = text:gsub("[&<>]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;" })
  return (text:gsub("[\\`*_{}%[%]()#+!|~$]", "\\%0"))
end

local plain = M.plain

local function number(value, format)
  if value == nil or value == json.null then return "–" end
  return (format or "%.3f"):format(value)
end

local function interval(one, format)
  if not one or one.estimate == json.null then return "–" end
  if one.low == json.null then return number(one.estimate, format) end
  return ("%s [%s, %s]"):format(number(one.estimate, format), number(one.low, format), number(one.high, format))
end

local function put(out, text, ...) out[#out + 1] = select("#", ...) > 0 and text:format(...) or text end

local function put_table(out, head, rows)
  put(out, "| " .. table.concat(head, " | ") .. " |")
  put(out, "|" .. (" --- |"):rep(#head))
  for _, row in ipairs(rows) do put(out, "| " .. table.concat(row, " | ") .. " |") end
  put(out, "")
end

local function subset_mark(report)
  if report.subset == json.null then return "" end
  return (" (subset: %d of %d tasks)"):format(report.subset.tasks, report.subset.of)
end

local function put_head(out, report)
  put(out, "# %s %s%s", plain(report.suite.name ~= json.null and report.suite.name or report.suite_id), plain(report.suite_version),
    subset_mark(report))
  put(out, "")
  put(out, "- suite: `%s`, content hash `%s` (%s)", plain(report.suite_id), plain(report.suite_content_hash), plain(report.suite.integrity))
  if report.suite.seal ~= json.null then put(out, "- seal: `%s`", plain(report.suite.seal)) end
  put(out, "- attempts of a task: %d; agentbox %s; %s to %s", report.n_per_task, plain(report.agentbox_version), plain(report.started_at),
    plain(report.finished_at))
  put(out, "- intervals: %g %%, whole tasks drawn again %d times", report.level * 100, report.resamples)
  put(out, "- to be believed: **%s**", report.valid and (#report.problems == 0 and "yes" or "with care") or "no")
  for _, problem in ipairs(report.problems) do put(out, "  - %s", plain(problem)) end
  put(out, "")
end

local function model_by_id(report, id)
  for _, one in ipairs(report.models) do
    if one.model_id == id then return one end
  end
end

local function put_leaderboard(out, report)
  put(out, "## Leaderboard%s\n", subset_mark(report))
  local rows, n = {}, report.n_per_task
  for i, row in ipairs(report.leaderboard) do
    local one = model_by_id(report, row.model_id)
    local versus = row.versus_next
    rows[i] = {
      tostring(row.rank), plain(row.model_id) .. (row.valid and "" or " **(not valid)**"), interval(one.success), interval(one.reward),
      interval(one.pass_at[#one.pass_at]), number(row.mean_steps, "%.2f"), number(row.mean_duration_s, "%.2f"),
      ("%d of %d"):format(row.scored, one.planned), tostring(row.unscored), number(row.cost, "%.4f"),
      versus ~= json.null and ("p = %.3g"):format(versus.p) or "–",
    }
  end
  put_table(out, { "rank", "model", "success", "reward", "pass@" .. n, "steps", "duration s", "scored", "unscored", "cost",
    "against the next" }, rows)
end

local function counts(map)
  local parts = {}
  for name, value in pairs(map) do parts[#parts + 1] = ("%s %s"):format(plain(name), tostring(value)) end
  return #parts > 0 and table.concat(parts, ", ") or "none"
end

local TIMES = { "boot", "seed", "model", "tool", "score", "other" }

local function put_time(out, time)
  if time.total_ms <= 0 then return end
  local parts = {}
  for i, part in ipairs(TIMES) do parts[i] = ("%s %.1f %%"):format(part, 100 * time[part .. "_ms"] / time.total_ms) end
  put(out, "- time of rollouts: %.1f s: %s", time.total_ms / 1000, table.concat(parts, ", "))
end

local function put_tokens(out, tokens)
  put(out, "- tokens: %d calls, %d prompt (%d cached), %d completion; %s for a success", tokens.calls, tokens.prompt, tokens.cached,
    tokens.completion, number(tokens.per_success, "%.0f"))
  if tokens.cost ~= json.null then put(out, "- cost: %.4f, %s for a success", tokens.cost, number(tokens.cost_per_success, "%.4f")) end
end

local function put_passes(out, one)
  local parts = {}
  for i, entry in ipairs(one.pass_at) do parts[i] = ("pass@%d %s"):format(entry.k, interval(entry)) end
  if #parts > 0 then put(out, "- %s", table.concat(parts, "; ")) end
end

local function put_model(out, one)
  put(out, "## %s\n", plain(one.model_id))
  put(out, "- attempts: %d of %d, %d scored; by status: %s", one.n, one.planned, one.scored, counts(one.aggregate.by_status))
  put(out, "- infrastructure: unscored %s; made again %s", counts(one.infrastructure.unscored), counts(one.infrastructure.retried))
  put(out, "- success %s, reward %s; with suspicious attempts taken as failures %s", interval(one.success), interval(one.reward),
    interval(one.success_masked))
  put_passes(out, one)
  put_tokens(out, one.tokens)
  put_time(out, one.time_ms)
  put(out, "- suspicious: %d attempts, %d of them successes (%s)", one.integrity.flagged, one.integrity.flagged_successes,
    counts(one.integrity.marks))
  put(out, "")
end

-- The tasks that say most first: unsolved and half-solved before those that everybody solves.
local function put_tasks(out, report)
  put(out, "## Tasks%s\n", subset_mark(report))
  local head, rows = { "task", "difficulty", "discrimination", "flaky for" }, {}
  for i = 1, #report.models do head[#head + 1] = plain(report.models[i].model_id) end
  for i = 1, math.min(#report.tasks, MAX_TASKS) do
    local task, flaky = report.tasks[i], {}
    for j, id in ipairs(task.flaky) do flaky[j] = plain(id) end
    local row = { plain(task.task_id), number(task.difficulty, "%.2f"), number(task.discrimination, "%.2f"), table.concat(flaky, ", ") }
    for _, one in ipairs(report.models) do
      local result = one.by_task[i]
      row[#row + 1] = result.scored > 0 and ("%d/%d"):format(result.successes, result.scored) or "–"
    end
    rows[i] = row
  end
  put_table(out, head, rows)
  if #report.tasks > MAX_TASKS then put(out, "%d more tasks are in report.json.\n", #report.tasks - MAX_TASKS) end
end

local function put_failures(out, report)
  if #report.failures == 0 then return end
  put(out, "## What fails alike\n")
  local rows = {}
  for i, one in ipairs(report.failures) do
    rows[i] = { tostring(one.n), one.class, one.exit_code and tostring(one.exit_code) or "–", plain(one.head:gsub("%s+", " "):sub(1, 120)),
      plain(one.task_id), "`" .. one.fingerprint .. "`" }
  end
  put_table(out, { "n", "whose", "exit", "what was said", "as in", "" }, rows)
end

local function put_listed(out, report)
  local list = report.integrity.look_at
  if #list == 0 then return end
  put(out, "## To look at\n")
  local rows = {}
  for i = 1, math.min(#list, MAX_LISTED) do
    local one = list[i]
    rows[i] = { plain(one.model_id), plain(one.task_id), one.success and "yes" or "no", table.concat(one.marks, ", "), plain(one.path) }
  end
  put_table(out, { "model", "task", "success", "marks", "trajectory" }, rows)
  if report.integrity.listed_of > MAX_LISTED then
    put(out, "%d of %d; attempts.csv has all.\n", MAX_LISTED, report.integrity.listed_of)
  end
end

--- The report as Markdown.
---@param report table
---@return string
function M.text(report)
  local out = {}
  put_head(out, report)
  put_leaderboard(out, report)
  for _, one in ipairs(report.models) do put_model(out, one) end
  put_tasks(out, report)
  put_failures(out, report)
  put_listed(out, report)
  put(out, "%s.", plain(report.pass_at_k_definition))
  return table.concat(out, "\n") .. "\n"
end

return M
