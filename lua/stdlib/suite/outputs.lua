--- Writes what is read of a result: report.json, REPORT.md, junit.xml, attempts.csv and each student's model_report.json.
local csv = require "agentbox.suite.csv"
local fs = require "agentbox.fs"
local json = require "agentbox.json"
local junit = require "agentbox.suite.junit"
local markdown = require "agentbox.suite.markdown"
local report = require "agentbox.suite.report"
local result = require "agentbox.suite.result"

local M = {}

local function write_models(dir, doc, whole)
  for i, student in ipairs(doc.students) do
    local folder = ("%s/models/%s"):format(dir, student.dir)
    local ok, problem = fs.mkdir(folder, true)
    if not ok and problem.code ~= "exists" then return nil, problem end
    ok, problem = fs.write(folder .. "/model_report.json", json.encode(whole.models[i], { indent = 2 }) .. "\n")
    if not ok then return nil, problem end
  end
  return true
end

--- Makes the report of a result anew and writes every form of it.
---@async
---@param dir string
---@param opts? agentbox.ReportOpts
---@return table? report
---@return agentbox.Err? err
function M.write(dir, opts)
  local doc, problem = result.read(dir)
  if not doc then return nil, problem end
  local rows
  rows, problem = report.rows(dir, doc)
  if not rows then return nil, problem end
  local whole = report.build(doc, rows, opts)
  local ok
  ok, problem = write_models(dir, doc, whole)
  if not ok then return nil, problem end
  for name, text in pairs {
    ["report.json"] = json.encode(whole, { indent = 2 }) .. "\n", ["REPORT.md"] = markdown.text(whole),
    ["junit.xml"] = junit.text(whole, rows), ["attempts.csv"] = csv.text(rows),
  } do
    ok, problem = fs.write(("%s/%s"):format(dir, name), text)
    if not ok then return nil, problem end
  end
  return whole
end

return M
