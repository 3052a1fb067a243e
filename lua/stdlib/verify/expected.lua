--- verify/expected.lua: the tests that must have passed, and whether a report says that they did.
local json = require "agentbox.json"
local schema = require "agentbox.schema"

local M = {}

---@class agentbox.Expected
---@field ids table<string, { may_skip: boolean }>   # exact ids
---@field names string[]                             # `file::test` whose parameters could not be known
---@field skip_files table<string, boolean>          # test files that skip by themselves
---@field count integer

---@param list string[]
---@return agentbox.Expected
function M.from_list(list)
  local ids = {}
  for _, id in ipairs(list) do ids[id] = { may_skip = false } end
  return { ids = ids, names = {}, skip_files = {}, count = #list }
end

--- From what collecting in an untouched sandbox reported.
---@param report table
---@return agentbox.Expected
function M.from_report(report)
  local out = { ids = {}, names = {}, skip_files = {}, count = 0 }
  for _, id in ipairs(report.ids or {}) do
    out.ids[id] = { may_skip = report.items[id] == true }
    out.count = out.count + 1
  end
  for i, name in ipairs(report.names or {}) do out.names[i] = name end
  for _, file in ipairs(report.skips or {}) do out.skip_files[file] = true end
  out.count = out.count + #out.names
  return out
end

local function file_of(id) return (id:match("^(.-)::") or id) end

--- A test that the task marks as one that may be skipped, or whose own file skips it.
local function skipped_by_task(want, id, may_skip, outcome)
  if outcome[1] ~= "skipped" and outcome[1] ~= "xfailed" then return false end
  if may_skip then return true end
  local file, where = file_of(id), outcome[2]
  return outcome[1] == "skipped" and want.skip_files[file] == true and type(where) == "string"
    and where:sub(-#file) == file
end

local function met(want, id, may_skip, outcomes)
  local outcome = outcomes[id]
  if not outcome then return false, "did not run" end
  if outcome[1] == "passed" or skipped_by_task(want, id, may_skip, outcome) then return true end
  return false, outcome[1]
end

local function met_name(want, name, outcomes)
  local seen = false
  for id in pairs(outcomes) do
    if id == name or id:sub(1, #name + 1) == name .. "[" then
      local ok, why = met(want, id, false, outcomes)
      if not ok then return false, why end
      seen = true
    end
  end
  return seen, "did not run"
end

--- How many tests passed.
---@param report table
---@return integer
function M.count_passed(report)
  local n = 0
  for _, outcome in pairs(report.outcomes) do
    if outcome[1] == "passed" then n = n + 1 end
  end
  return n
end

--- Ids that failed, for the record; at most a hundred.
---@param report? table
---@return string[]
function M.failed_ids(report)
  local out = json.array {}
  for id, outcome in pairs(report and report.outcomes or {}) do
    if outcome[1] == "failed" and #out < 100 then out[#out + 1] = id end
  end
  table.sort(out)
  return out
end

--- How many expectations a report meets, and the first that it does not, in words.
---@param want agentbox.Expected
---@param report table
---@return integer met
---@return string? unmet
function M.check(want, report)
  local outcomes, n, unmet = report.outcomes, 0, nil
  local function count(name, ok, why)
    if ok then n = n + 1 else unmet = unmet or ("%s: %s"):format(name, why) end
  end
  for _, id in ipairs(schema.names(want.ids)) do count(id, met(want, id, want.ids[id].may_skip, outcomes)) end
  for _, name in ipairs(want.names) do count(name, met_name(want, name, outcomes)) end
  if M.count_passed(report) == 0 then return 0, unmet or "no test passed" end
  return n, unmet
end

return M
