--- The writing side of exports: trajectories in, documents or lines out, nothing half written.
local document = require "agentbox.formats._document"
local err = require "agentbox.err"
local fs = require "agentbox.sys.fs"
local groups = require "agentbox.export.groups"
local json = require "agentbox.json"
local os_ = require "agentbox.sys.os"
local read = require "agentbox.store.read"

local M = {}

local function line_of(doc) return json.type(doc) == "raw" and doc:text() or json.encode(doc) end

-- Losses as "what (of which, and how often)", in the order first met.
local function tally(losses, list, t)
  for _, what in ipairs(list) do
    local entry = losses[what]
    if not entry then
      entry = { what = what, count = 0, first = t.id }
      losses[what], losses[#losses + 1] = entry, entry
    end
    entry.count = entry.count + 1
  end
end

--- What one conversion keeps between trajectories.
---@param format agentbox.Format
---@param opts table
---@param options table
---@return table job
function M.new_job(format, opts, options)
  return {
    format = format, options = options, out = opts.out, strict = opts.strict, groups = groups.new(format, options),
    lines = 0,
    result = { written = 0, skipped = json.array {}, losses = json.array {}, files = json.array {} },
  }
end

local function skip(job, t, reason)
  table.insert(job.result.skipped, { id = t.id, task_id = t.task_id, reason = reason })
end

-- Converts one trajectory; a loss under `strict` ends the job.
local function take(job, t)
  local rank = job.ranks and job.ranks[t.id]
  if rank then t:with_reward(rank.reward or nil, rank.independent) end
  local out_of = job.filter and job.filter(t)
  if out_of then
    if job.grouped then job.groups:leave(t) end
    return skip(job, t, out_of)
  end
  local doc, losses, reason = job.format.convert(t, job.options)
  if doc and job.strict and #losses > 0 then
    local what = table.concat(losses, "; ")
    job.failed = err.new("badarg", ("format %s cannot carry all of %s: %s"):format(job.format.name, t.id, what))
    return nil
  end
  if job.grouped then
    local surplus = job.groups:add(t, doc, reason)
    if surplus then return skip(job, t, surplus) end
  end
  if not doc then return skip(job, t, reason) end
  tally(job.result.losses, losses, t)
  job.result.written = job.result.written + 1
  return doc
end

-- Feeds every input to `emit` until it fails.
local function feed(job, inputs, emit)
  for _, path in ipairs(inputs) do
    local ok, problem = read.visit(path, function(t)
      emit(t)
      return job.failed == nil
    end, job.reads)
    if not ok then return nil, problem end
    if job.failed then return nil, job.failed end
  end
  return true
end

local function file_name(job, t, taken)
  local safe = require("agentbox.store.name").safe
  local stem = ("%s/%s_%s"):format(job.out, safe(t.task_id), safe(t.id:sub(1, 8)))
  local path, n = stem .. job.format.extension, 1
  while taken[path] do
    n = n + 1
    path = ("%s_%d%s"):format(stem, n, job.format.extension)
  end
  taken[path] = true
  return path
end

local function part_of(path) return ("%s.part-%d"):format(path, os_.pid()) end

-- Gives the parts their names, or removes them all when something failed.
local function settle(paths, ok, problem)
  for _, path in ipairs(paths) do
    if ok then ok, problem = fs.rename(part_of(path), path) end
    if not ok then os.remove(part_of(path)) end
  end
  return ok, problem
end

--- One document for each trajectory, in a folder: none of them has its name before all are there.
---@async
---@nodiscard
---@param job table
---@param inputs string[]
---@return boolean? ok
---@return agentbox.Err? err
function M.to_folder(job, inputs)
  local ok, problem = fs.mkdir(job.out, true)
  if not ok then return nil, problem end
  local taken, files = {}, job.result.files
  ok, problem = feed(job, inputs, function(t)
    local doc = take(job, t)
    if not doc then return end
    local path = file_name(job, t, taken)
    local done, bad = fs.write(part_of(path), document(doc, job.format.layout))
    if not done then job.failed = bad end
    files[#files + 1] = path
  end)
  if ok and job.failed then ok, problem = nil, job.failed end
  return settle(files, ok, problem)
end

-- Everything that `each` feeds, as lines without their line feed; `put_line` gives nil and a message when it cannot.
local function write_lines(job, each, put_line)
  local function put(doc)
    job.lines = job.lines + 1
    local ok, msg = put_line(line_of(doc))
    if not ok then job.failed = job.failed or err.new("io", ("%s: %s"):format(job.out, msg)) end
  end
  local function put_all(doc)
    if not job.format.many then return put(doc) end
    for _, one in ipairs(doc) do put(one) end
  end
  local function put_group(doc, why, reason, group)
    if why then job.failed = job.failed or err.new("badarg", why) end
    if reason then table.insert(job.result.skipped, { id = group.key, task_id = group.task_id, reason = reason }) end
    if doc then put_all(doc) end
  end
  local ok, problem = each(function(t)
    local doc = take(job, t)
    if job.grouped then job.groups:flush(put_group)
    elseif doc then put_all(doc) end
  end)
  if not ok then return nil, problem end
  job.groups:flush(put_group, true)
  return not job.failed, job.failed
end

--- Everything into one file: written beside its name and moved there when it is whole. Of an export that holds no
--- trajectory no file is left, and one that was there before stays.
---@async
---@nodiscard
---@param job table
---@param inputs string[]
---@return boolean? ok
---@return agentbox.Err? err
function M.to_lines(job, inputs)
  local there = fs.stat(job.out)
  if there and there.type ~= "file" then
    return nil, err.new("invalid", ("%s: is a %s, not a file"):format(job.out, there.type))
  end
  local file, msg = io.open(part_of(job.out), "wb")
  if not file then return nil, err.new("io", msg) end
  local ok, problem = write_lines(job, function(emit) return feed(job, inputs, emit) end, function(line)
    return file:write(line, "\n")
  end)
  local closed, cannot = file:close()
  if ok and not closed then ok, problem = nil, err.new("io", ("%s: %s"):format(job.out, cannot)) end
  local something = job.lines > 0 and job.result.written > 0
  if not ok or not something then
    os.remove(part_of(job.out))
    return ok, problem
  end
  table.insert(job.result.files, job.out)
  return settle(job.result.files, ok, problem)
end

--- The lines of trajectories at hand.
---@param job table
---@param list agentbox.Traj[]
---@return string[]? lines   # each with its line feed
---@return agentbox.Err? err
function M.to_list(job, list)
  local lines = {}
  local function each(emit)
    for _, t in ipairs(list) do emit(t) end
    return true
  end
  local ok, problem = write_lines(job, each, function(line)
    lines[#lines + 1] = line .. "\n"
    return true
  end)
  if not ok then return nil, problem end
  return lines
end

--- A single document for a single trajectory.
---@async
---@nodiscard
---@param job table
---@param inputs string[]
---@return boolean? ok
---@return agentbox.Err? err
function M.to_document(job, inputs)
  local found = {}
  local ok, problem = feed(job, inputs, function(t)
    if #found == 1 then
      job.failed = err.new("badarg", "more than one trajectory: write into a folder (ending in /) or a .jsonl file")
    end
    found[1] = found[1] or t
  end)
  if not ok then return nil, problem end
  local doc = found[1] and take(job, found[1])
  if not doc then return job.failed == nil, job.failed end
  if job.format.many or job.format.keep_docs then
    return nil, err.new("badarg", ("format %s writes lines: name a file that ends in .jsonl"):format(job.format.name))
  end
  table.insert(job.result.files, job.out)
  return fs.write(job.out, document(doc, job.format.layout)) -- which moves a whole file to its name
end

return M
