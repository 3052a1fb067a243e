--- The writing side of exports: trajectories in, documents or lines out, nothing half written.
local document = require "agentbox.formats._document"
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local fs = require "agentbox.sys.fs"
local groups = require "agentbox.export.groups"
local json = require "agentbox.json"
local parts = require "agentbox.export.parts"
local read = require "agentbox.store.read"
local sink = require "agentbox.sys.sink"

local M = {}

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
      fiber.yield() -- others have a turn, and what this one left is collected while the cache still has it
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
  local extension = job.format.extension
  parts.sweep(job.out, function(name) return name:sub(-#extension) == extension end)
  local made <close> = parts.new()
  local taken, files, out = {}, job.result.files, sink.new()
  ok, problem = feed(job, inputs, function(t)
    local doc = take(job, t)
    if not doc then return end
    local path = file_name(job, t, taken)
    local file, bad = made:open(path)
    if file then ok, bad = document.write(file, out, doc, job.format.layout) end
    if bad then job.failed = err.wrap(bad, path) end
    files[#files + 1] = path
  end)
  if not ok then return nil, problem end
  return made:settle()
end

-- Everything that `each` feeds, as the documents of lines; `put_line` gives nil and an error when it cannot.
local function write_lines(job, each, put_line)
  local function put(doc)
    job.lines = job.lines + 1
    local ok, bad = put_line(doc)
    if not ok then job.failed = job.failed or err.wrap(bad, job.out) end
  end
  local function put_all(doc)
    if not job.format.many then return put(doc) end
    for _, one in ipairs(doc) do put(one) end
  end
  local function put_group(doc, why, reason, group)
    if why then job.failed = job.failed or err.new("badarg", why) end
    if reason then table.insert(job.result.skipped, { id = group.id, task_id = group.task_id, reason = reason }) end
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
  local dir, own = job.out:match "^(.*)/([^/]*)$"
  parts.sweep(dir == "" and "/" or dir or ".", function(name) return name == (own or job.out) end)
  local made <close> = parts.new()
  local file, problem = made:open(job.out)
  if not file then return nil, problem end
  local lines = sink.new(file)
  local ok, bad = write_lines(job, function(emit) return feed(job, inputs, emit) end, function(doc)
    return lines:put(doc, "\n")
  end)
  if not ok then return nil, bad end
  ok, bad = lines:flush()
  if not ok then return nil, err.wrap(bad, job.out) end
  if job.lines == 0 or job.result.written == 0 then return true end
  table.insert(job.result.files, job.out)
  return made:settle()
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
  local ok, problem = write_lines(job, each, function(doc)
    lines[#lines + 1] = (json.type(doc) == "raw" and doc:text() or json.encode(doc)) .. "\n"
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
  return fs.write(job.out, document.text(doc, job.format.layout)) -- which moves a whole file to its name
end

return M
