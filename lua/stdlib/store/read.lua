--- Reads trajectories back from whatever holds them:
---
---     a run folder, or a folder of run folders   every segment, in the order written
---     a .jsonl file                              records or AgentBox lines
---     a .json file                               AgentBox's document
---     a folder of .json files                    each AgentBox document in it, by name
local blobs = require "agentbox.store.blobs"
local err = require "agentbox.err"
local foreign = require "agentbox.store.foreign"
local frame = require "agentbox.store.frame"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local lines = require "agentbox.store.lines"
local parse = require "agentbox.record.parse"
local planes = require "agentbox.store.planes"
local rows = require "agentbox.store.rows"
local traj = require "agentbox.traj"

local M = {}

local function damaged(path, n, msg)
  local where = n and ("%s:%d"):format(path, n) or path
  return nil, err.new("parse", ("%s: %s"):format(where, msg), { where = where })
end

local function blob_reader(run_dir)
  return function(id) return blobs.read(run_dir, id) end
end

--- One line of a file as a trajectory.
---
--- Returns nil, err (`parse`) when it is damaged.
---@async
---@nodiscard
---@param text string     # with or without its line feed
---@param path string     # of its file, beside which blobs and planes are
---@param n? integer      # of the line, for the error
---@param reads? "messages"|"columns"|"planes"|"line"   # what of it is looked at: calls and tool runs stay text then
---@return agentbox.Traj?
---@return agentbox.Err? err
function M.line(text, path, n, reads)
  local whole = frame.check(text)
  if whole == false then return damaged(path, n, "the line does not have its recorded sum") end
  if not text:find('^%s*{%s*"schema"') then
    local t, problem = foreign.read(frame.read(text) or text)
    if not t then return damaged(path, n, problem.msg) end
    return t
  end
  if not whole then return damaged(path, n, "a record without its sum: changed, or not written by agentbox") end
  local line, problem, columns = parse.parse(text, reads)
  local packed = line and reads and reads ~= "messages" and json.type(line.calls) == "raw"
  if packed and line.calls:has '{"p":[' then -- packed lists are put back
    reads = nil
    line, problem, columns = parse.parse(text)
  end
  if not line then return damaged(path, n, problem.msg) end
  local run_dir = path:match "^(.*)/[^/]*$" or "."
  if json.type(line.calls) ~= "raw" then
    local ok, lost = planes.expand(line.calls, run_dir)
    if not ok then return damaged(path, n, lost.msg) end
  end
  local t = traj.new(line, { read_blob = blob_reader(run_dir) }, columns)
  if reads == "line" then t.text = text:sub(1, text:byte(-1) == 10 and -2 or -1) end
  return t
end

-- An iterator over the lines of a file. A last line without its line feed is one that is being written, or that a
-- crash left, and no trajectory yet; a whole document on a single line is one.
local function lines_of(path, reads)
  local file, problem = lines.open(path)
  if not file then return nil, problem end
  local n = 0
  return function()
    repeat
      local text, bad = file:next()
      n = n + 1
      if not text then
        local rest = n == 1 and not bad and file:rest()
        file:close()
        if rest and json.decode(rest) ~= nil then return M.line(rest, path, n, reads) end
        return nil, bad
      end
      if text ~= "" then return M.line(text, path, n, reads) end
    until false
  end
end

-- An iterator over the single document of a file.
local function document_of(path, reads)
  local text, problem = fs.read(path)
  if not text then return nil, problem end
  if text:find('"agentbox.trajectory/', 1, true) then return lines_of(path, reads) end
  local t, bad = foreign.read(text)
  if not t then return damaged(path, nil, bad.msg) end
  return function()
    local once = t
    t = nil
    return once
  end
end

local OURS = { ["report.json"] = true, ["run.json"] = true, ["cursor.json"] = true, ["progress.json"] = true,
  ["bench.json"] = true, ["model_report.json"] = true }

--- Whether a file of that name is written beside trajectories and is none.
---@param name string
---@return boolean
function M.is_ours(name) return OURS[name] == true end

local function by_name(dir)
  local entries, problem = fs.list(dir)
  if not entries then return nil, problem end
  local kinds = { segments = {}, runs = {}, documents = {} }
  for _, entry in ipairs(entries) do
    local path = dir .. "/" .. entry.name
    if entry.name:find "^trajectories%-%d+%.jsonl$" then
      table.insert(kinds.segments, path)
    elseif entry.type == "dir" and fs.stat(path .. "/run.json") then
      table.insert(kinds.runs, path)
    elseif entry.name:find "%.json$" and not OURS[entry.name] then
      table.insert(kinds.documents, path)
    end
  end
  return kinds
end

-- Adds the files below a folder, each with what opens it.
local function add_folder(dir, files)
  local kinds, problem = by_name(dir)
  if not kinds then return nil, problem end
  local list, open = kinds.segments, lines_of
  if #list == 0 and #kinds.runs > 0 then
    for _, run in ipairs(kinds.runs) do
      local ok, bad = add_folder(run, files)
      if not ok then return nil, bad end
    end
    return true
  end
  if #list == 0 then list, open = kinds.documents, document_of end
  local run_dir = #kinds.segments > 0 and dir or nil
  for _, path in ipairs(list) do
    files[#files + 1] = { path = path, open = open, lines = run_dir ~= nil, run_dir = run_dir }
  end
  return true
end

--- The files that hold what is below a path, each with the run folder it belongs to, if any.
---
--- Returns nil, err: `notfound`, `invalid`, `io`, `denied`.
---@async
---@nodiscard
---@param path string
---@return { path: string, lines: boolean, run_dir: string? }[]?
---@return agentbox.Err? err
function M.files(path)
  local stat, problem = fs.stat(path)
  if not stat then return nil, problem end
  if stat.type ~= "dir" and stat.type ~= "file" then
    return nil, err.new("invalid", ("%s is a %s, not a file or folder"):format(path, stat.type))
  end
  if stat.type == "file" then
    local in_lines = path:find "%.jsonl$" ~= nil
    return { { path = path, lines = in_lines, open = in_lines and lines_of or document_of } }
  end
  local files = {}
  local ok, bad = add_folder((path:gsub("(.)/+$", "%1")), files)
  if not ok then return nil, bad end
  if #files == 0 then return nil, err.new("notfound", path .. ": no trajectories in this folder") end
  return files
end

-- `PATH#ID` as path and id; a path that is there as it stands has no id.
local function selected(path)
  if fs.stat(path) then return path, nil end
  local base, id = path:match "^(.*)#([^#]*)$"
  return base or path, id
end

-- An iterator over the trajectories of files: the next one, nil at the end, or nil and the damage.
local function reader(files, id, reads)
  local i, next_line = 0, nil
  return function()
    while true do
      if not next_line then
        i = i + 1
        if not files[i] then return nil end
        local bad
        next_line, bad = files[i].open(files[i].path, reads)
        if not next_line then return nil, bad end
      end
      local t, bad = next_line()
      if bad then return nil, bad end
      if not t then next_line = nil
      elseif id == nil or t.id == id or t.run_id == id then return t end
    end
  end
end

local function open(path, reads)
  local base, id = selected(path)
  local files, problem = M.files(base)
  if not files then return nil, problem end
  return reader(files, id, reads)
end

--- Iterates over every trajectory below a path, in the order written; damage raises its error. `PATH#ID` selects
--- by id or run id.
---@async
---@param path string
---@return fun(): agentbox.Traj?
function M.each(path)
  local next_one, problem = open(path)
  if not next_one then error(problem, 0) end
  return function()
    local t, bad = next_one()
    if bad then error(bad, 0) end
    return t
  end
end

--- Calls `fn` with every trajectory below a path, until it returns false.
---
--- Returns nil, err when something cannot be read: `notfound`, `parse`, `io`, `denied`.
---@async
---@nodiscard
---@param path string
---@param fn fun(t: agentbox.Traj): boolean?
---@param reads? "messages"|"columns"|"planes"|"line"   # what of them is looked at, when it is not everything
---@return boolean? ok
---@return agentbox.Err? err
function M.visit(path, fn, reads)
  local next_one, problem = open(path, reads)
  if not next_one then return nil, problem end
  while true do
    local t, bad = next_one()
    if bad then return nil, bad end
    if not t or fn(t) == false then return true end
  end
end

-- The rows below a path whose id begins with a text, each with its run folder; nil when the path holds no run.
local function rows_with(base, prefix)
  local files, problem = M.files(base)
  if not files then return nil, problem end
  local found, last = {}, nil
  for _, file in ipairs(files) do
    if not file.run_dir then return nil end
    if file.run_dir ~= last then
      local known = rows.open(file.run_dir)
      for _, row in ipairs(known:find(prefix)) do
        row.run_dir = file.run_dir
        found[#found + 1] = row
      end
      known:close()
    end
    last = file.run_dir
  end
  return found
end

local function several(path, found)
  local ids = {}
  for i = 1, math.min(#found, 3) do ids[i] = found[i].id end
  if #found > 3 then ids[4] = "..." end
  return nil, err.new("exists", ("%s: %d trajectories: %s"):format(path, #found, table.concat(ids, ", ")))
end

-- The one whose id is `id`, or the only one whose id begins with it.
local function by_id(base, id, path)
  local found, problem = rows_with(base, id)
  if not found then return nil, problem end
  local exact = {}
  for _, row in ipairs(found) do
    if row.id == id then exact[#exact + 1] = row end
  end
  if #exact == 1 then found = exact end
  if #found > 1 then return several(path, found) end
  if #found == 0 then return nil end
  return M.at(found[1].run_dir, found[1].segment, found[1].offset)
end

--- The one trajectory at a path; `PATH#ID` picks one of several. In a run's folder the beginning of an id will do when
--- no other one begins so.
---@async
---@nodiscard
---@param path string
---@return agentbox.Traj?
---@return agentbox.Err? err
function M.one(path)
  local base, id = selected(path)
  if id then
    local t, problem = by_id(base, id, path)
    if t or problem then return t, problem end
  end
  local found, n = nil, 0
  local ok, problem = M.visit(path, function(t) found, n = found or t, n + 1 end)
  if not ok then return nil, problem end
  if n == 0 then return nil, err.new("notfound", path .. ": no such trajectory") end
  if n > 1 then return nil, err.new("exists", ("%s holds %d trajectories; name one: %s#ID"):format(path, n, path)) end
  return found
end

--- The trajectory whose line begins at a place that the store named when it was written.
---@async
---@nodiscard
---@param run_dir string
---@param segment integer
---@param offset integer
---@param reads? "messages"|"columns"|"planes"|"line"   # what of it is looked at, when it is not everything
---@return agentbox.Traj?
---@return agentbox.Err? err
function M.at(run_dir, segment, offset, reads)
  return M.line_at(rows.segment_path(run_dir, segment), offset, reads)
end

--- The trajectory whose line begins at an offset of a file.
---@async
---@nodiscard
---@param path string
---@param offset integer
---@param reads? "messages"|"columns"|"planes"|"line"   # what of it is looked at, when it is not everything
---@return agentbox.Traj?
---@return agentbox.Err? err
function M.line_at(path, offset, reads)
  local file <close>, problem = lines.open(path, offset)
  if not file then return nil, problem end
  local text, bad = file:next()
  if not text then return damaged(path, nil, bad and bad.msg or ("no line at byte %d"):format(offset)) end
  return M.line(text, ("%s@%d"):format(path, offset), nil, reads)
end

return M
