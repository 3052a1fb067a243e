--- Checks what is stored: every line and its sum, the rules of each record, and what holds between records: ids,
--- attempts, groups, the cursor, events. Memory does not grow with what is checked.
local audit = require "agentbox.store.audit"
local events = require "agentbox.store.check_events"
local frame = require "agentbox.store.frame"
local fs = require "agentbox.sys.fs"
local groups = require "agentbox.store.check_groups"
local json = require "agentbox.json"
local lines = require "agentbox.store.lines"
local parse = require "agentbox.record.parse"
local read = require "agentbox.store.read"
local sieve = require "agentbox.sys.sieve"
local summary = require "agentbox.store.summary"

local M = {
  --- Problems beyond this many are counted and not listed.
  MAX_LISTED = 1000,
}

local SIEVE_BITS = 27
local MAX_SUSPECTS = 100000

---@class agentbox.CheckProblem
---@field id string
---@field rule integer|string   # the number of an invariant, or the letter of an acceptance invariant
---@field where string
---@field msg string

---@class agentbox.CheckReport
---@field trajectories integer
---@field groups integer
---@field bytes integer
---@field problem_count integer
---@field problems agentbox.CheckProblem[]          # at most MAX_LISTED
---@field by_rule table<string, integer>            # problems by rule
---@field trainable integer                         # that may be used for training
---@field removed table<string, integer>            # why others may not, and how many
---@field drift table<string, integer>              # calls by class
---@field drift_rate number?                        # of calls that go on from another: realign and fork
---@field drift_by_task table<string, { calls: integer, drifted: integer }>
---@field common integer                            # prompt ids that the server had seen in the call before
---@field prompt integer                            # prompt ids in all
---@field lag table<string, integer>                # rollouts by versions between their oldest weights and the newest
---@field repeated_ids { count: integer, first?: string }   # calls whose response id the server had given before in the run

local function new_report()
  return {
    trajectories = 0, groups = 0, bytes = 0, problem_count = 0, problems = json.array {}, by_rule = json.object {},
    trainable = 0, removed = json.object {}, drift = json.object {}, drift_by_task = json.object {}, common = 0,
    prompt = 0, lag = json.object {}, repeated_ids = { count = 0 },
  }
end

local function bump(counts, key)
  counts[key] = (counts[key] or 0) + 1
end

local function add(self, id, rule, where, msg)
  local report = self.report
  report.problem_count = report.problem_count + 1
  bump(report.by_rule, tostring(rule))
  if #report.problems < M.MAX_LISTED then
    table.insert(report.problems, { id = id, rule = rule, where = where, msg = msg })
  end
end

-- ---------------------------------------------------------------- between records

local function name_key(line)
  return ("%s\0%s\0%d"):format(line.run, line.id, line.attempt)
end

-- Something that should be there once was perhaps there before: the second reading tells.
local function once(self, key)
  if self.sieve:add(key) and self.suspect_count < MAX_SUSPECTS and not self.suspects[key] then
    self.suspects[key], self.suspect_count = true, self.suspect_count + 1
  end
end

local function each_response_id(line, fn)
  for _, call in ipairs(line.calls) do
    local id = call.response_id
    if id and id ~= json.null then fn(call, table.concat({ line.run, tostring(call.model), id }, "\0"), id) end
  end
end

local function check_between(self, t)
  local line = t.line
  once(self, "n" .. name_key(line))
  each_response_id(line, function(_, key) once(self, "r" .. key) end)
  local slot, attempt = summary.of(line).slot, line.attempt
  self.sieve:add(("s%s\0%s\0%d"):format(line.run, slot, attempt))
  groups.note_line(self.sieve, line.run, line.id)
  if attempt > 0 and not self.sieve:has(("s%s\0%s\0%d"):format(line.run, slot, attempt - 1)) then
    add(self, t.id, 13, "attempt",
      ("attempt %d is there, and attempt %d is not before it"):format(attempt, attempt - 1))
  end
end

-- The second reading, of what the first one suspects: who else had a key before.
local function had(self, key, owner)
  if not self.suspects[key] then return nil end
  local first = self.firsts[key]
  self.firsts[key] = first or owner
  return first
end

local function confirm(self, line)
  local name = name_key(line)
  if had(self, "n" .. name, line.id) then add(self, line.id, 13, "id", "this id and attempt was written before") end
  local repeated = self.report.repeated_ids
  each_response_id(line, function(call, key, id)
    if had(self, "r" .. key, line.id) then
      repeated.count = repeated.count + 1
      repeated.first = repeated.first or ("%s: calls[%d]: %s"):format(line.id, call.i, id)
    end
  end)
end

-- ---------------------------------------------------------------- sums

local function count_tokens(self, t, entries)
  local report, task = self.report, tostring(t.task_id)
  local by_task = report.drift_by_task[task]
  if not by_task then
    by_task = { calls = 0, drifted = 0 }
    report.drift_by_task[task] = by_task
  end
  for _, entry in ipairs(entries) do
    bump(report.drift, tostring(entry.drift))
    report.common, report.prompt = report.common + entry.keep, report.prompt + (entry.prompt or 0)
    if entry.drift ~= "first" and entry.drift ~= "unknown" then
      by_task.calls = by_task.calls + 1
      if entry.drift ~= "clean" then by_task.drifted = by_task.drifted + 1 end
    end
  end
end

local function count_use(self, t)
  local report, use = self.report, t.line.use
  if use.rl then
    report.trainable = report.trainable + 1
  else
    local seen = {}
    for _, why in ipairs(use.why) do
      local rule = why:gsub("^call %d+: ", "")
      if not seen[rule] then bump(report.removed, rule) end
      seen[rule] = true
    end
  end
  if t.version_max and t.version_min then
    self.newest = math.max(self.newest or t.version_max, t.version_max)
    bump(report.lag, tostring(self.newest - t.version_min))
  end
  if self.on_removed and not use.rl then self.on_removed(t, use.why) end
end

-- ---------------------------------------------------------------- files

local function check_traj(self, t)
  self.report.trajectories = self.report.trajectories + 1
  check_between(self, t)
  local entries = audit.check(t, function(rule, where, msg) add(self, t.id, rule, where, msg) end)
  count_tokens(self, t, entries)
  if json.is_object(t.line.use) then count_use(self, t) end
end

-- Damage is named by its place once.
local function add_damage(self, damage, path)
  local where = damage.where or path
  local msg = damage.msg:sub(1, #where + 2) == where .. ": " and damage.msg:sub(#where + 3) or damage.msg
  add(self, "-", 12, where, msg)
end

-- A damaged line is a problem of its own, and the lines behind it are read all the same.
local function check_lines(self, path)
  local file <close>, problem = lines.open(path)
  if not file then return nil, problem end
  local n = 0
  for text in file.next, file do
    n = n + 1
    self.report.bytes = self.report.bytes + #text + 1
    if text ~= "" then
      local t, damage = read.line(text, path, n)
      if t then check_traj(self, t) else add_damage(self, damage, path) end
    end
  end
  return true
end

local function check_document(self, path)
  local ok, problem = read.visit(path, function(t) check_traj(self, t) end)
  if ok then return true end
  if problem.code ~= "parse" then return nil, problem end
  add_damage(self, problem, path)
  return true
end

-- Reads the lines again for what was suspected.
local function confirm_lines(self, path)
  local file <close>, problem = lines.open(path)
  if not file then return nil, problem end
  for text in file.next, file do
    local object, whole = frame.read(text)
    local line = whole and parse.parse(object)
    if line then confirm(self, line) end
  end
  return true
end

-- ---------------------------------------------------------------- all

-- What a run has beside its lines. Of one that goes on, only what was there before its lines were read.
local function sizes_beside(run_dir)
  local sizes = {}
  for _, name in ipairs { "groups", "events" } do
    local stat = fs.stat(("%s/%s.jsonl"):format(run_dir, name))
    sizes[name] = stat and stat.size or 0
  end
  return sizes
end

local function check_beside(self, run_dir, sizes)
  local function found(...) add(self, ...) end
  local n, problem = groups.check(run_dir, sizes.groups, self.sieve, found)
  if not n then return nil, problem end
  self.report.groups = self.report.groups + n
  local doc = json.decode(fs.read(run_dir .. "/run.json") or "")
  local run = json.is_object(doc) and tostring(doc.run) or ""
  return events.check(run_dir, sizes.events, function(id) return groups.has_line(self.sieve, run, id) end, found)
end

local function check_files(self, files)
  local run_dirs, beside = {}, {}
  for _, file in ipairs(files) do
    if file.run_dir then beside[file.run_dir] = beside[file.run_dir] or sizes_beside(file.run_dir) end
    local ok, problem = (file.lines and check_lines or check_document)(self, file.path)
    if not ok then return nil, problem end
    if file.run_dir and run_dirs[#run_dirs] ~= file.run_dir then table.insert(run_dirs, file.run_dir) end
  end
  for _, run_dir in ipairs(run_dirs) do
    local ok, problem = check_beside(self, run_dir, beside[run_dir])
    if not ok then return nil, problem end
  end
  if self.suspect_count == 0 then return true end
  for _, file in ipairs(files) do
    local ok, problem = true, nil
    if file.lines then ok, problem = confirm_lines(self, file.path) end
    if not ok then return nil, problem end
  end
  return true
end

---@class agentbox.CheckOpts
---@field on_removed? fun(t: agentbox.Traj, why: string[])   # each one that may not be trained on

--- Checks every trajectory below a path, and the groups of each run.
---
--- Returns nil, err if there is none to check: `notfound`, `io`, `denied`. Damage is a problem of the report.
---@async
---@nodiscard
---@param path string
---@param opts? agentbox.CheckOpts
---@return agentbox.CheckReport?
---@return agentbox.Err? err
function M.check(path, opts)
  local files, problem = read.files(path)
  if not files then return nil, problem end
  local self = {
    report = new_report(), sieve = sieve.new(SIEVE_BITS), suspects = {}, suspect_count = 0, firsts = {},
    on_removed = opts and opts.on_removed,
  }
  local ok
  ok, problem = check_files(self, files)
  if not ok then return nil, problem end
  local report, drifted, calls = self.report, 0, 0
  for _, counts in pairs(report.drift_by_task) do drifted, calls = drifted + counts.drifted, calls + counts.calls end
  report.drift_rate = calls > 0 and drifted / calls or nil
  return report
end

return M
