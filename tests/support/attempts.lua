--- Attempts made by hand, as reading records gives them, and the result that they belong to.
local json = require "agentbox.json"

local M = {}

--- A row; `fields` says what differs from a plain success.
function M.row(model, task, index, fields)
  local row = {
    model = model, task = task, index = index, attempt = 0, id = ("%s/%s/%d"):format(model, task, index), scored = true, success = true,
    reward = 1.0, status = "success", stop = "final_answer", steps = 2, tool_calls = 2, calls = 3, prompt = 100, cached = 40,
    completion = 10, told = true, duration_s = 1.5, timing = { boot = 100, model = 900, tool = 200, score = 250 }, total_ms = 1500,
    marks = {}, suspicious = false,
  }
  for key, value in pairs(fields or {}) do row[key] = value end
  row.path = ("models/%s/trajectories/r#%s"):format(model, row.id)
  return row
end

M.FAILED = { success = false, reward = 0.0, status = "failed", class = "policy", kind = { key = "1\0boom", exit_code = 1, head = "boom", class = "policy" } }
M.BROKEN = { success = false, scored = false, status = "error", stop = "model_error", class = "model_server",
  kind = { key = "model_server\0refused", head = "refused", class = "model_server" } }
M.BROKEN.reward = nil

--- Rows of one student: `successes` by task, of `n` attempts each.
function M.rows(model, successes, n)
  local rows, tasks = {}, {}
  for task in pairs(successes) do tasks[#tasks + 1] = task end
  table.sort(tasks)
  for _, task in ipairs(tasks) do
    for index = 0, n - 1 do
      local row = M.row(model, task, index, index >= successes[task] and M.FAILED or nil)
      rows[#rows + 1] = row
    end
  end
  return rows
end

--- A row without a score.
function M.broken(model, task, index)
  local row = M.row(model, task, index, M.BROKEN)
  row.reward = nil
  return row
end

--- What bench.json says of a result of these students and tasks.
function M.doc(students, tasks, n, fields)
  local doc = {
    schema = "agentbox.bench/1", report_id = "r-1", agentbox_version = "0", started_at = "2026-01-01T00:00:00.000000Z",
    suite = { id = "s", name = "S", version = "1.0.0", content_hash = ("a"):rep(64), integrity = "ok" },
    tasks = tasks, n = n, seed = 42, max_errors = 0.1, students = {},
  }
  for i, id in ipairs(students) do doc.students[i] = { id = id, dir = id, run_id = "r", described = { name = "m" } } end
  for key, value in pairs(fields or {}) do doc[key] = value end
  doc.students = json.array(doc.students)
  return doc
end

return M
