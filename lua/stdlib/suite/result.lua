--- The folder of a result. `bench.json` says what was run, before anything is; the records are below `models/`; the
--- reports are made of both and can be made again at any time.
---
---     OUT/bench.json                            what was asked for: suite, seals, students, subset
---     OUT/suite_snapshot/                       the suite as it was run
---     OUT/models/ID/trajectories/RUN/           the record of one student, a run like any other
---     OUT/models/ID/model_report.json           its part of the report
---     OUT/report.json, REPORT.md, junit.xml, attempts.csv
local err = require "agentbox.err"
local fs = require "agentbox.fs"
local json = require "agentbox.json"
local put = require "agentbox.suite.put"

local M = {}

M.SCHEMA = "agentbox.bench/1"
local MAX_BYTES = 256 << 20

local function read_json(path)
  local text, problem = fs.read(path, MAX_BYTES)
  if not text then return nil, problem end
  local doc
  doc, problem = json.decode(text)
  if problem or not json.is_object(doc) then
    return nil, err.new("parse", ("%s: %s"):format(path, problem and problem.msg or "must hold an object"))
  end
  return doc
end

M.read_json = read_json

---@param dir string
---@param doc table
---@return true?
---@return agentbox.Err? err
function M.write(dir, doc) return fs.write(dir .. "/bench.json", json.encode(doc, { indent = 2 }) .. "\n") end

--- What a result was made with. The folder of a result that the Python AgentBox made has no bench.json; what can be
--- known is taken from its report.
---@async
---@param dir string
---@return table?
---@return agentbox.Err? err   # `notfound` when there is no result
function M.read(dir)
  local path = dir .. "/bench.json"
  if fs.exists(path) then
    local doc, problem = read_json(path)
    if doc and doc.schema ~= M.SCHEMA then return nil, err.new("parse", path .. ": not a result of this program") end
    return doc, problem
  end
  if not fs.exists(dir .. "/report.json") then
    return nil, err.new("notfound", dir .. ": no result here: neither bench.json nor report.json")
  end
  return M.foreign(dir)
end

-- Where a student of the Python AgentBox has its documents: its id is a path there.
local function foreign_student(report)
  local id = report.model_id
  return json.object { id = id, dir = id, path = ("models/%s/trajectories"):format(id), described = report.model_config_public }
end

--- The same from an AgentBox report.
---@async
---@param dir string
---@return table?
---@return agentbox.Err? err
function M.foreign(dir)
  local report, problem = read_json(dir .. "/report.json")
  if not report then return nil, problem end
  local students, tasks, n = json.array {}, json.array {}, 1
  for _, one in ipairs(report.models or {}) do
    students[#students + 1] = foreign_student(one)
    for i, task in ipairs(one.by_task or {}) do
      tasks[i], n = task.task_id, math.max(n, task.n or 1)
    end
  end
  local doc = json.object {}
  put(doc, "schema", M.SCHEMA, "report_id", report.report_id, "foreign", true)
  doc.suite = json.object { id = report.suite_id, version = report.suite_version, content_hash = report.suite_content_hash }
  put(doc, "tasks", tasks, "n", n, "students", students, "seed", 42)
  put(doc, "agentbox_version", report.agentbox_version, "started_at", report.started_at, "run_tags", report.run_tags)
  return doc
end

--- The folder of a student's records, as it is and as links below the result name it.
---@param dir string
---@param student table    # of bench.json
---@return string path
---@return string shown
function M.records(dir, student)
  local shown = student.path or ("models/%s/trajectories/%s"):format(student.dir, student.run_id)
  return dir .. "/" .. shown, shown
end

return M
