--- Where a page's trajectories come from: every file below a path, a row for each trajectory, and the way back from a
--- row to what was said.
local cut = require "agentbox.render.cut"
local err = require "agentbox.err"
local frame = require "agentbox.store.frame"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local lines = require "agentbox.store.lines"
local read = require "agentbox.store.read"
local result = require "agentbox.suite.result"
local row = require "agentbox.render.row"
local summary = require "agentbox.store.summary"

local M = {}

local MAX_DEPTH = 8
local SUITES = { suite = true, suite_snapshot = true }

-- A row knows where its line is, so that it can be read again for its body.
local function row_at(line, place)
  local one = row.of(line)
  one.model = place.student or one.model
  one.slot = ("%s\n%s\n%s"):format(one.run, one.model, summary.slot(cut.value(line.group), line.id))
  one.place = place
  return one
end

local function is_record(line)
  return json.is_object(line) and type(line.stop) == "table" and type(line.reward) == "table"
      and type(line.calls) == "table" and type(line.policy) == "table"
end

-- A line's record as far as a row needs it; one of another shape is read whole.
local function record_of(text, path)
  local object, whole = frame.read(text)
  local line = whole and json.decode(object, row.UNREAD)
  if is_record(line) then return line end
  local t = read.line(text, path)
  return t and t.line
end

--- Gives a row for each whole line of a file, from an offset on.
---@async
---@param file { path: string, student?: string }
---@param from integer
---@param take fun(one: table)
---@return integer? reached      # the offset of what comes next
---@return integer|agentbox.Err damaged
function M.scan(file, from, take)
  local source <close>, problem = lines.open(file.path, from)
  if not source then return nil, problem end
  local damaged, reached = 0, from
  for text, offset in source.next, source do
    local line = record_of(text, file.path)
    reached = offset + #text + 1
    if line then
      take(row_at(line, { path = file.path, offset = offset, student = file.student }))
    else
      damaged = damaged + 1
    end
  end
  return reached, damaged
end

-- Adds what lies below a folder: a benchmark's result has its records by model, and a model's name may have slashes.
local function add_below(dir, files, depth)
  local entries = depth < MAX_DEPTH and fs.list(dir) or {}
  for _, entry in ipairs(entries) do
    local path = dir .. "/" .. entry.name
    if entry.type == "dir" and not SUITES[entry.name] then
      local found = read.files(path)
      if found and found[1].lines then
        table.move(found, 1, #found, #files + 1, files)
      else
        add_below(path, files, depth + 1)
      end
    elseif entry.type == "file" and depth > 0 and entry.name:find "%.json$" and not read.is_ours(entry.name) then
      files[#files + 1] = { path = path, lines = false, maybe = true }
    end
  end
end

-- What is directly there, else what lies in folders below. Of a benchmark's result only what is below `models`.
local function files_of(path)
  path = path:gsub("(.)/+$", "%1")
  local stat, below = fs.stat(path), fs.stat(path .. "/models")
  local problem
  if not (below and below.type == "dir") then
    local files
    files, problem = read.files(path)
    if files or problem.code ~= "notfound" or not stat then return files, problem end
  end
  local found = {}
  add_below(below and path .. "/models" or path, found, below and 1 or 0)
  if #found == 0 then return nil, err.new("notfound", path .. ": no trajectories to render") end
  return found
end

-- The students of a result by the folder that their records are in: two may be of one model.
local function students_of(path)
  local doc = (fs.stat(path .. "/bench.json") or fs.stat(path .. "/report.json")) and result.read(path)
  local out = {}
  for _, student in ipairs(doc and doc.students or {}) do
    out[#out + 1] = { prefix = result.records(path, student) .. "/", id = student.id }
  end
  return out
end

local function student_at(students, path)
  for _, student in ipairs(students) do
    if path:sub(1, #student.prefix) == student.prefix then return student.id end
  end
end

--- The files below a path, each with the student it belongs to, in a benchmark's result.
---@async
---@nodiscard
---@param path string
---@return { path: string, lines: boolean, maybe?: boolean, student?: string }[]?
---@return agentbox.Err? err
function M.files(path)
  local files, problem = files_of(path)
  if not files then return nil, problem end
  local students = students_of((path:gsub("(.)/+$", "%1")))
  for _, file in ipairs(files) do file.student = student_at(students, file.path) end
  return files
end

--- Gives the rows of a document; one that only may be a trajectory counts as damaged when it is none.
---@async
---@param file { path: string, maybe?: boolean, student?: string }
---@param take fun(one: table)
---@return integer? damaged
---@return agentbox.Err? err
function M.document(file, take)
  local place = { path = file.path, student = file.student }
  local ok, problem = read.visit(file.path, function(t) take(row_at(t.line, place)) end)
  if ok then return 0 end
  if file.maybe then return 1 end
  return nil, problem
end

-- `PATH#ID` names one.
local function row_of_one(path)
  local t, problem = read.one(path)
  if not t then return nil, problem end
  return { row_at(t.line, { path = path }) }, 0
end

--- The rows of everything below a path, in the order written, and how many lines could not be read.
---
--- Returns nil, err: `notfound`, `io`, `denied`, `parse` (a document that is no trajectory).
---@async
---@nodiscard
---@param path string
---@param model? string   # only trajectories of this model
---@return table[]? rows
---@return integer|agentbox.Err damaged
function M.rows(path, model)
  if path:find("#", 1, true) and not fs.stat(path) then return row_of_one(path) end
  local files, problem = M.files(path)
  if not files then return nil, problem end
  local rows, damaged = {}, 0
  local function take(one)
    if not model or one.model == model then rows[#rows + 1] = one end
  end
  for _, file in ipairs(files) do
    local reached, lost
    if file.lines then
      reached, lost = M.scan(file, 0, take)
    else
      lost, problem = M.document(file, take)
      reached = lost
    end
    if not reached then return nil, problem or lost end
    damaged = damaged + lost
  end
  return rows, damaged
end

--- The trajectory of a row, read again.
---@async
---@nodiscard
---@param one table
---@return agentbox.Traj?
---@return agentbox.Err? err
function M.trajectory(one)
  local place = one.place
  if place.offset then return read.line_at(place.path, place.offset) end
  return read.one(place.path)
end

return M
