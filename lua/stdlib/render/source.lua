--- Where a page's trajectories come from: every file below a path, a row for each trajectory, and the way back from a
--- row to what was said.
local cut = require "agentbox.render.cut"
local err = require "agentbox.err"
local frame = require "agentbox.store.frame"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local lines = require "agentbox.store.lines"
local read = require "agentbox.store.read"
local row = require "agentbox.render.row"
local summary = require "agentbox.store.summary"

local M = {}

local MAX_DEPTH = 8

-- A row knows where its line is, so that it can be read again for its body.
local function add(rows, line, place, model)
  local one = row.of(line)
  if model and one.model ~= model then return end
  one.slot = ("%s\n%s\n%s"):format(one.run, one.model, summary.slot(cut.value(line.group), line.id))
  one.place = place
  rows[#rows + 1] = one
end

local function add_lines(rows, file, model)
  local source <close>, problem = lines.open(file.path)
  if not source then return nil, problem end
  local damaged = 0
  for text, offset in source.next, source do
    local object, whole = frame.read(text)
    local line = whole and json.decode(object, row.UNREAD)
    local known = json.is_object(line) and type(line.stop) == "table" and type(line.reward) == "table"
        and type(line.calls) == "table" and type(line.policy) == "table"
    local place = { path = file.path, offset = offset }
    if known then
      add(rows, line, place, model)
    else
      local t = read.line(text, file.path)
      if t then add(rows, t.line, place, model) else damaged = damaged + 1 end
    end
  end
  return damaged
end

-- Adds the documents below a folder that are no part of a suite: a benchmark's result has them by model, and a model's
-- name may have slashes.
local function add_documents(dir, files, depth)
  local entries = depth < MAX_DEPTH and fs.list(dir) or {}
  for _, entry in ipairs(entries) do
    local path = dir .. "/" .. entry.name
    if entry.type == "dir" and entry.name ~= "suite" then
      local found = read.files(path)
      if found and found[1].lines then
        table.move(found, 1, #found, #files + 1, files)
      else
        add_documents(path, files, depth + 1)
      end
    elseif entry.type == "file" and depth > 0 and entry.name:find "%.json$" and not read.is_ours(entry.name) then
      files[#files + 1] = { path = path, lines = false, maybe = true }
    end
  end
end

-- What is directly there, else what lies in folders below.
local function files_of(path)
  local files, problem = read.files(path)
  if files or problem.code ~= "notfound" then return files, problem end
  if not fs.stat(path) then return nil, problem end
  files = {}
  add_documents((path:gsub("(.)/+$", "%1")), files, 0)
  if #files == 0 then return nil, err.new("notfound", path .. ": no trajectories to render") end
  return files
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
  local files, problem = files_of(path)
  if not files then return nil, problem end
  local rows, damaged = {}, 0
  for _, file in ipairs(files) do
    local lost, ok
    if file.lines then
      lost, problem = add_lines(rows, file, model)
      ok, damaged = lost, damaged + (lost or 0)
    else
      ok, problem = read.visit(file.path, function(t) add(rows, t.line, { path = file.path }, model) end)
    end
    if not ok and file.maybe then
      ok, damaged = true, damaged + 1
    end
    if not ok then return nil, problem end
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
