--- Exports: a registry of formats by name, and the conversion of files to files.
---
--- A format is a module `agentbox.formats.NAME` (an overlay may add one): `convert(t, opts)` makes a document of one
--- trajectory, a pure function of its record, and tells what it had to leave out.
local err = require "agentbox.err"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local os_ = require "agentbox.sys.os"
local read = require "agentbox.store.read"

local M = {}

local BUILT_IN = { "agentbox", "jsonl", "canonical", "art", "openai" }

---@class agentbox.Format
---@field api integer
---@field name string
---@field summary string
---@field extension string
---@field never? string[]                    # what no document of this form can hold
---@field lines? boolean                      # one compact line for each; otherwise a document of its own
---@field layout? { indent?: integer, ascii?: boolean }
---@field options? table<string, string[]|"boolean"|"number">   # the first of a list is the default
---@field convert fun(t: agentbox.Traj, opts: table): any?, string[], string?
---@field group_key? fun(t: agentbox.Traj): string
---@field join? fun(key: string, docs: table[], exceptions: table[]): table
---@field exception? fun(t: agentbox.Traj, reason: string): table

--- The built-in formats, in the order that help lists them.
---@return { name: string, summary: string, options: table }[]
function M.formats()
  local list = {}
  for i, name in ipairs(BUILT_IN) do
    local format = require("agentbox.formats." .. name)
    list[i] = { name = name, summary = format.summary, options = format.options or {} }
  end
  return list
end

--- Finds a format by name.
---
--- Returns nil, err (`badarg`) if there is none of that name, or it is broken.
---@nodiscard
---@param name string
---@return agentbox.Format?
---@return agentbox.Err? err
function M.format(name)
  local known = table.concat(BUILT_IN, ", ")
  if type(name) ~= "string" or not name:find "^%a[%w_-]*$" then
    return nil, err.new("badarg", ("unknown format %s; known: %s"):format(tostring(name), known))
  end
  local module = "agentbox.formats." .. name
  local ok, format = pcall(require, module)
  if ok and type(format) == "table" and format.api == 1 then return format end
  if not ok and not tostring(format):find("module '" .. module .. "' not found", 1, true) then
    return nil, err.new("badarg", ("format %s: %s"):format(name, tostring(format)))
  end
  return nil, err.new("badarg", ("unknown format %s; known: %s"):format(name, known))
end

local function option_problem(name, value, allowed)
  if type(allowed) == "table" then
    for _, one in ipairs(allowed) do
      if value == one then return nil end
    end
    return ("%s must be %s, not %s"):format(name, table.concat(allowed, " or "), tostring(value))
  end
  if type(value) ~= allowed then return ("%s must be a %s"):format(name, allowed) end
end

-- The format's options with their defaults; unknown ones are refused.
local function options_for(format, given)
  local known, out = format.options or {}, {}
  for name, allowed in pairs(known) do
    if type(allowed) == "table" then out[name] = allowed[1] end
  end
  for name, value in pairs(given or {}) do
    if not known[name] then
      return nil, err.new("badarg", ("format %s has no option %s"):format(format.name, name))
    end
    local problem = option_problem(name, value, known[name])
    if problem then return nil, err.new("badarg", problem) end
    out[name] = value
  end
  return out
end

local function encode(format, doc, lines)
  if lines then return json.encode(doc) .. "\n" end
  return json.encode(doc, format.layout)
end

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

---@class agentbox.ExportResult
---@field written integer
---@field skipped { id: string, task_id: string, reason: string }[]
---@field losses { what: string, count: integer, first: string }[]
---@field files string[]

-- What one conversion keeps between trajectories.
local function new_job(format, opts, options)
  return {
    format = format, options = options, out = opts.out, groups = {}, result = { written = 0, skipped = {}, losses = {}, files = {} },
  }
end

local function skip(job, t, reason)
  table.insert(job.result.skipped, { id = t.id, task_id = t.task_id, reason = reason })
end

local function group_of(job, t)
  local key = job.format.group_key(t)
  local group = job.groups[key]
  if not group then
    group = { key = key, docs = {}, exceptions = {} }
    job.groups[key], job.groups[#job.groups + 1] = group, group
  end
  return group
end

-- Converts one trajectory; a loss under `strict` ends the job.
local function take(job, t)
  local doc, losses, reason = job.format.convert(t, job.options)
  if doc and job.strict and #losses > 0 then
    job.failed = err.new("badarg", ("format %s cannot carry all of %s: %s"):format(job.format.name, t.id, table.concat(losses, "; ")))
    return nil
  end
  if job.grouped then
    local group = group_of(job, t)
    if doc then table.insert(group.docs, json.raw(json.encode(doc)))
    elseif job.format.exception then table.insert(group.exceptions, job.format.exception(t, reason)) end
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
    end)
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

-- One document for each trajectory, in a folder.
local function to_folder(job, inputs)
  local ok, problem = fs.mkdir(job.out, true)
  if not ok then return nil, problem end
  local taken = {}
  return feed(job, inputs, function(t)
    local doc = take(job, t)
    if not doc then return end
    local path = file_name(job, t, taken)
    local done, bad = fs.write(path, encode(job.format, doc, false))
    if not done then job.failed = bad end
    table.insert(job.result.files, path)
  end)
end

local function write_lines(job, inputs, file)
  local function put(doc)
    local ok, msg = file:write(encode(job.format, doc, true))
    if not ok then job.failed = job.failed or err.new("io", msg) end
  end
  local ok, problem = feed(job, inputs, function(t)
    local doc = take(job, t)
    if doc and not job.grouped then put(doc) end
  end)
  if not ok then return nil, problem end
  for _, group in ipairs(job.groups) do put(job.format.join(group.key, group.docs, group.exceptions)) end
  return not job.failed, job.failed
end

-- Everything into one file: written beside its name and moved there when it is whole.
local function to_lines(job, inputs)
  local part = ("%s.part-%d"):format(job.out, os_.pid())
  local file, msg = io.open(part, "wb")
  if not file then return nil, err.new("io", msg) end
  local ok, problem = write_lines(job, inputs, file)
  local closed, cannot = file:close()
  if ok and not closed then ok, problem = nil, err.new("io", cannot) end
  if ok then ok, problem = fs.rename(part, job.out) end
  if not ok then
    os.remove(part)
    return nil, problem
  end
  table.insert(job.result.files, job.out)
  return true
end

-- A single document for a single trajectory.
local function to_document(job, inputs)
  local found = {}
  local ok, problem = feed(job, inputs, function(t)
    if #found == 1 then
      job.failed = err.new("badarg", "more than one trajectory: name a folder (ending in /) or a .jsonl file to write")
    end
    found[1] = found[1] or t
  end)
  if not ok then return nil, problem end
  local doc = found[1] and take(job, found[1])
  if not doc then return job.failed == nil, job.failed end
  table.insert(job.result.files, job.out)
  return fs.write(job.out, encode(job.format, doc, false))
end

local function writer_for(format, opts)
  local lines = format.lines or opts.out:find "%.jsonl$" ~= nil
  if opts.out:find "/$" or (fs.stat(opts.out) or {}).type == "dir" then
    if format.lines then return nil end
    return to_folder
  end
  return lines and to_lines or to_document
end

--- Converts trajectories to a file, or to a folder with a file each.
---
--- `out` ends in `.jsonl`: lines (for `art` one group a line, where unscored rollouts are exceptions); ends in `/` or is
--- a folder: a document for each; otherwise one document for the one trajectory there is. Nothing is half written.
---
--- Raises on nothing. Returns nil, err: `badarg` for an unknown format or option, or a loss under `strict`; `notfound`,
--- `parse`, `io`, `full` from the files.
---@async
---@nodiscard
---@param opts { input: string|string[], format: string, out: string, strict?: boolean, options?: table }
---@return agentbox.ExportResult?
---@return agentbox.Err? err
function M.convert(opts)
  local format, problem = M.format(opts.format)
  if not format then return nil, problem end
  local options, bad = options_for(format, opts.options)
  if not options then return nil, bad end
  local inputs = type(opts.input) == "table" and opts.input or { opts.input }
  local write = writer_for(format, opts)
  if not write then
    return nil, err.new("badarg", ("format %s writes lines: name a file, not a folder"):format(format.name))
  end
  local job = new_job(format, opts, options)
  job.strict = opts.strict
  job.grouped = write == to_lines and format.join ~= nil
  if write == to_folder then job.out = opts.out:gsub("(.)/+$", "%1") end
  local ok, failed = write(job, inputs)
  if not ok then return nil, failed end
  return job.result
end

--- The loss report as text, one fact a line; what the format never carries, then what of these trajectories was left out.
---@param name string
---@param result agentbox.ExportResult
---@return string
function M.report(name, result)
  local out, reasons = {}, {}
  local never = (M.format(name) or {}).never
  if never and result.written > 0 then out[1] = ("%s never carries: %s"):format(name, table.concat(never, "; ")) end
  for _, loss in ipairs(result.losses) do
    out[#out + 1] = ("%s leaves out: %s (%d of %d)"):format(name, loss.what, loss.count, result.written)
  end
  for _, one in ipairs(result.skipped) do
    if not reasons[one.reason] then
      reasons[one.reason] = { n = 0, first = one.id }
      reasons[#reasons + 1] = one.reason
    end
    reasons[one.reason].n = reasons[one.reason].n + 1
  end
  for _, reason in ipairs(reasons) do
    out[#out + 1] = ("skipped %d: %s (first: %s)"):format(reasons[reason].n, reason, reasons[reason].first)
  end
  return #out > 0 and table.concat(out, "\n") .. "\n" or ""
end

return M
