--- generate/review.lua: what people decide about the tasks of a batch, beside what its gates decided.
---
--- The queue is the batch's own output and journal: tasks in the output directory under the names of their folders, rejected
--- candidates that came as far as being a task as `@NUMBER`. Decisions are lines in `OUT.state/decisions.jsonl`, appended under a
--- lock and synced; the last one of a name counts, and only for the task that it was made about: one that was changed since is undecided.
local async = require "agentbox.async"
local err = require "agentbox.err"
local frame = require "agentbox.store.frame"
local fs = require "agentbox.fs"
local journal = require "agentbox.generate.journal"
local json = require "agentbox.json"
local log = require "agentbox.store.log"
local task_ = require "agentbox.task"
local text_ = require "agentbox.text"
local time = require "agentbox.time"

local M = {}

local LOCK_WAIT_S, LOCK_POLL_S = 30, 0.01
local MAX_REASON = 2000

---@class agentbox.ReviewItem
---@field name string                        # of the folder, or @NUMBER
---@field accepted boolean                   # by the gates
---@field task agentbox.Task
---@field index? integer
---@field stage? string                      # which gate rejected it
---@field reason? string
---@field report table                       # facts of the gates
---@field decision? "accept"|"reject"        # of a person
---@field decided? { reason?: string, who?: string, at: string }

local function path_of(out) return journal.state(out) .. "/decisions.jsonl" end

--- The decisions of an output directory by name, the last one of each.
---@async
---@param out string
---@return table<string, table>? decisions
---@return agentbox.Err? err
function M.decisions(out)
  local by_name = {}
  local ok, problem = journal.each(path_of(out), function(line) by_name[line.name] = line end)
  if not ok then return nil, problem end
  return by_name
end

--- What was decided about a task as it is now.
---@param decisions table<string, table>
---@param name string
---@param hash string
---@return "accept"|"reject"|nil
function M.decision(decisions, name, hash)
  local line = decisions[name]
  return line and line.hash == hash and line.decision or nil
end

-- ---------------------------------------------------------------- the queue

local DUPLICATES = { dedup = true, accept = true } -- another one is there already

-- The journal's ends: facts of accepted tasks by their name, rejected candidates in their order.
local function ends_of(out)
  local accepted, rejected = {}, {}
  local ok, problem = journal.each(journal.path(out), function(line)
    if line.event ~= "end" then return end
    if line.accepted and line.task_id then accepted[line.task_id] = line end
    if not line.accepted and line.task and not DUPLICATES[line.stage] then rejected[#rejected + 1] = line end
  end)
  if not ok then return nil, problem end
  table.sort(rejected, function(a, b) return a.index < b.index end)
  return accepted, rejected
end

local function decide_item(item, decisions)
  item.decision = M.decision(decisions, item.name, item.task.hash)
  item.decided = item.decision and decisions[item.name]
  return item
end

local function rejected_item(line)
  local task = task_.resolve(line.task)
  if not task then return nil end
  return { name = "@" .. line.index, accepted = false, task = task, index = line.index, stage = line.stage, reason = line.reason,
    report = line.report or {} }
end

--- Calls fn with every item of the queue: the accepted by name, then the rejected by number.
---@async
---@param out string
---@param fn fun(item: agentbox.ReviewItem)
---@return true?
---@return agentbox.Err?
function M.each(out, fn)
  if not fs.exists(out) then return nil, err.new("notfound", out .. ": no such output directory") end
  local decisions, problem = M.decisions(out)
  if not decisions then return nil, problem end
  local ends, rejected = ends_of(out)
  if not ends then return nil, rejected end
  local bad
  bad, problem = journal.accepted(out, function(task, name)
    local line = ends[name] or {}
    fn(decide_item({ name = name, accepted = true, task = task, index = line.index, report = line.report or {} }, decisions))
  end)
  if not bad then return nil, problem end
  for _, line in ipairs(rejected) do
    local item = rejected_item(line)
    if item then fn(decide_item(item, decisions)) end
  end
  return true
end

--- One item of the queue by its name.
---@async
---@param out string
---@param name string
---@return agentbox.ReviewItem?
---@return agentbox.Err? err     # `notfound`
function M.find(out, name)
  local found
  local ok, problem = M.each(out, function(item)
    if item.name == name then found = item end
  end)
  if not ok then return nil, problem end
  if found then return found end
  return nil, err.new("notfound", ("there is no %s in %s to review"):format(name, out))
end

-- ---------------------------------------------------------------- deciding

local function locked(dir)
  local until_s = time.monotonic() + LOCK_WAIT_S
  while true do
    local lock, problem = fs.lock(dir .. "/review.lock")
    if lock or problem.code ~= "busy" then return lock, problem end
    if time.monotonic() > until_s then return nil, err.new("busy", "another process keeps " .. dir .. "/review.lock") end
    async.sleep(LOCK_POLL_S)
  end
end

local function append(out, lines)
  local lock <close>, problem = locked(journal.state(out))
  if not lock then return nil, problem end
  local file
  file, problem = log.open { path = function() return path_of(out) end }
  if not file then return nil, problem end
  for _, line in ipairs(lines) do
    local entry
    entry, problem = file:append { line = frame.close(json.encode(line)) }
    if not entry then break end
  end
  file:close()
  if problem then return nil, problem end
  return true
end

--- Decides about items. All names are looked up before anything is written; what is written is on the disk when this returns.
---@async
---@param out string
---@param names string[]
---@param decision "accept"|"reject"
---@param reason? string       # a rejection needs one
---@return true?
---@return agentbox.Err? err   # `notfound`, `badarg`, `busy`
function M.decide(out, names, decision, reason)
  if decision ~= "accept" and decision ~= "reject" then return nil, err.new("badarg", "a decision is accept or reject") end
  if decision == "reject" and not (reason and reason:find "%S") then return nil, err.new("badarg", "a rejection needs a reason") end
  local wanted, lines = {}, {}
  for _, name in ipairs(names) do wanted[name] = true end
  local ok, problem = M.each(out, function(item)
    if not wanted[item.name] then return end
    wanted[item.name] = nil
    lines[#lines + 1] = { event = "decision", name = item.name, hash = item.task.hash, decision = decision,
      reason = reason and text_.cut(text_.scrub(reason), MAX_REASON), who = os.getenv "USER", at = time.iso(time.now()) }
  end)
  if not ok then return nil, problem end
  local missing = next(wanted)
  if missing then return nil, err.new("notfound", ("there is no %s in %s to review"):format(missing, out)) end
  return append(out, lines)
end

-- ---------------------------------------------------------------- what came of it

local function named(task, taken)
  local name = task_.safe_name(task.task_id)
  local free, n = name, 2
  while taken[free] do free, n = ("%s_%d"):format(name, n), n + 1 end
  taken[free] = true
  if free == task.task_id then return task end
  local raw = task_.to_inline(task)
  raw.task_id = free
  return task_.resolve(raw)
end

--- The tasks that stand after review: what the gates accepted and nobody rejected, and what somebody accepted all the same.
---@async
---@param out string
---@param opts? { undecided?: "keep"|"drop" }     # keep unless given
---@return agentbox.Task[]? tasks
---@return agentbox.Err? err
function M.set(out, opts)
  local drop = opts and opts.undecided == "drop"
  local tasks, taken = {}, {}
  local ok, problem = M.each(out, function(item)
    local undecided = item.decision == nil and item.accepted and not drop
    if item.decision == "accept" or undecided then tasks[#tasks + 1] = named(item.task, taken) end
  end)
  if not ok then return nil, problem end
  return tasks
end

--- Saves a set: a folder for each task, or with a name that ends in .jsonl one file of lines. What is there already is not touched.
---@async
---@param tasks agentbox.Task[]
---@param to string
---@return true?
---@return agentbox.Err? err     # `exists`
function M.save(tasks, to)
  if fs.exists(to) then return nil, err.new("exists", to .. " is there already") end
  if to:find "%.jsonl$" then return task_.save_lines(tasks, to) end
  local aside = to:gsub("/+$", "") .. ".part"
  fs.remove(aside, true)
  local ok, problem = fs.mkdir(aside, true)
  for _, task in ipairs(ok and tasks or {}) do
    ok, problem = task_.save(task, aside .. "/" .. task.task_id)
    if not ok then break end
  end
  if ok then ok, problem = fs.rename(aside, (to:gsub("/+$", ""))) end
  return ok, problem
end

return M
