--- Exports: a registry of formats by name, and the conversion of files to files.
---
--- A format is a module `agentbox.formats.NAME` (an overlay may add one): `convert(t, opts)` makes a document of one
--- trajectory, a pure function of its record, and tells what it had to leave out.
local err = require "agentbox.err"
local filter = require "agentbox.export.filter"
local fs = require "agentbox.sys.fs"
local ranks = require "agentbox.export.ranks"
local write = require "agentbox.export.write"

local M = {}

local BUILT_IN = {
  "agentbox", "jsonl", "canonical", "art", "trl", "verl", "skyrl", "verifiers", "prime_rl", "slime", "openrlhf", "openai",
  "sharegpt", "prompt_completion", "preference", "pretokenized",
}

---@class agentbox.Format
---@field api integer
---@field name string
---@field summary string
---@field extension string
---@field never? string[]                    # what no document of this form can hold
---@field reads? "messages"|"columns"|"planes"|"line"   # what it looks at, when that is not the whole record: the rest stays text
---@field lines? boolean                      # one compact line for each; otherwise a document of its own
---@field many? boolean                       # `convert` (with groups, `join`) gives a list: a line for each element
---@field keep_docs? boolean                  # `join` gets what `convert` made, not its JSON; nothing is written without it
---@field layout? { indent?: integer, ascii?: boolean }
---@field options? table<string, string[]|"boolean"|"number">   # the first of a list is the default
---@field convert fun(t: agentbox.Traj, opts: table): any?, string[], string?
---@field join? fun(key: string, docs: table[], exceptions: table[], opts: table, size?: integer): table?, string?, string?   # nil, what is wrong; or why it is skipped
---@field exception? fun(t: agentbox.Traj, reason: string): table   # what an unfit one leaves in its group

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
  local known = table.concat(BUILT_IN, ", "):gsub("_", "-")
  if type(name) ~= "string" or not name:find "^%a[%w_-]*$" then
    return nil, err.new("badarg", ("unknown format %s; known: %s"):format(tostring(name), known))
  end
  name = name:gsub("-", "_")
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
  local known, names, out = format.options or {}, {}, {}
  for name, allowed in pairs(known) do
    names[#names + 1] = name
    if type(allowed) == "table" then out[name] = allowed[1] end
  end
  for name, value in pairs(given or {}) do
    if not known[name] then
      table.sort(names)
      return nil, err.new("badarg", ("format %s has no option %s; it has %s"):format(
        format.name, name, #names > 0 and table.concat(names, ", ") or "none"))
    end
    local problem = option_problem(name, value, known[name])
    if problem then return nil, err.new("badarg", problem) end
    out[name] = value
  end
  return out
end

---@class agentbox.ExportResult
---@field written integer
---@field skipped { id: string, task_id: string, reason: string }[]
---@field losses { what: string, count: integer, first: string }[]
---@field files string[]

local function writer_for(format, opts)
  local lines = format.lines or opts.out:find "%.jsonl$" ~= nil
  if opts.out:find "/$" or (fs.stat(opts.out) or {}).type == "dir" then
    if format.lines then return nil end
    return write.to_folder
  end
  return lines and write.to_lines or write.to_document
end

--- Converts trajectories to a file, or to a folder with a file each.
---
--- `out` ends in `.jsonl`: lines (for `art` one group a line, where unscored rollouts are exceptions); ends in `/`
--- or is a folder: a document for each; otherwise one document for the one trajectory there is. Nothing is half
--- written.
---
--- `filter` leaves trajectories out before they are converted; the result says which rule took which.
---
--- Raises on nothing. Returns nil, err: `badarg` for an unknown format or option, or a loss under `strict`; `notfound`,
--- `parse`, `io`, `full` from the files.
---@async
---@nodiscard
---@param opts { input: string|string[], format: string, out: string, strict?: boolean, options?: table, filter?: agentbox.ExportFilter }
---@return agentbox.ExportResult?
---@return agentbox.Err? err
function M.convert(opts)
  local format, problem = M.format(opts.format)
  if not format then return nil, problem end
  local options, bad = options_for(format, opts.options)
  if not options then return nil, bad end
  local inputs = type(opts.input) == "table" and opts.input or { opts.input }
  local to = writer_for(format, opts)
  if not to then
    return nil, err.new("badarg", ("format %s writes lines: name a file, not a folder"):format(format.name))
  end
  local job = write.new_job(format, opts, options)
  job.ranks, problem = ranks.read(inputs)
  if problem then return nil, problem end
  job.filter, problem = filter.new(opts.filter, inputs, job.ranks)
  if problem then return nil, problem end
  job.reads = format.reads
  if opts.filter and (opts.filter.max_tokens or opts.filter.dedupe) then job.reads = nil end -- they look at calls and messages
  job.grouped = to == write.to_lines and format.join ~= nil
  if to == write.to_folder then job.out = opts.out:gsub("(.)/+$", "%1") end
  local ok, failed = to(job, inputs)
  if not ok then return nil, failed end
  return job.result
end

--- Converts trajectories at hand: the lines that `convert` would write of them. What a ranking gave them stays theirs.
---
--- Returns nil, err (`badarg`) for an unknown format or option, or a loss under `strict`.
---@nodiscard
---@param opts { format: string, trajectories: agentbox.Traj[], strict?: boolean, options?: table }
---@return string[]? lines     # JSON texts, each with a line feed
---@return agentbox.Err|agentbox.ExportResult result
function M.lines(opts)
  local format, problem = M.format(opts.format)
  if not format then return nil, problem end
  local options, bad = options_for(format, opts.options)
  if not options then return nil, bad end
  local job = write.new_job(format, { strict = opts.strict, out = format.name }, options)
  job.grouped = format.join ~= nil
  local lines
  lines, problem = write.to_list(job, opts.trajectories)
  if not lines then return nil, problem end
  return lines, job.result
end

--- The loss report as text, one fact a line: what the format never carries, then what of these trajectories was left
--- out.
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
