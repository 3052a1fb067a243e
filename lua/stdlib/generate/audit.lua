--- generate/audit.lua: a judge's verdicts on tasks that exist, one line each in a file.
---
--- A line is on the disk before the next question is asked, and says by which judge, rubric and settings it came about: the same call
--- again asks only about tasks that are new, were changed, or were judged by other rules.
local async = require "agentbox.async"
local err = require "agentbox.err"
local frame = require "agentbox.store.frame"
local fs = require "agentbox.fs"
local hash = require "agentbox.hash"
local journal = require "agentbox.generate.journal"
local json = require "agentbox.json"
local judge = require "agentbox.generate.judge"
local language = require "agentbox.generate.language"
local log = require "agentbox.store.log"
local model_ = require "agentbox.model"
local schema = require "agentbox.schema"
local spend = require "agentbox.generate.spend"

local M = {}

local OPTIONS = {
  model = { "any", required = true }, votes = { "integer", default = 1, min = 1, max = 15 },
  min_score = { "number", default = 0.65, min = 0, max = 1 }, rubric = { "string" }, out = { "string", required = true },
  concurrency = { "integer", default = 8, min = 1 }, max_tokens = { "integer", default = 8192, min = 1 }, on_row = { "function" },
  caps = { "record", fields = { calls = { "integer", min = 0 }, tokens = { "integer", min = 0 }, cost = { "number", min = 0 } } },
  prices = { "record", fields = { prompt = { "number" }, completion = { "number" } } },
}

---@class agentbox.Audit
---@field rows table[]        # one for each task, in their order: task_id, path, ok, llm_score, errors, reasons, votes, agreement, ...
---@field good integer
---@field asked integer       # tasks that were judged now
---@field agreement number    # mean share of the votes on the greater side
---@field kappa? number       # agreement of the votes beyond chance
---@field spent table

local ASIDE, BYTES_PER_TOKEN = 2000, 2

-- Under which rules a row came about.
local function key_of(task, opts)
  return hash.sha256(json.encode({ task.hash, opts.model.name, opts.votes, opts.min_score, opts.rubric or judge.RUBRIC, opts.max_tokens }))
end

local function support_of(task)
  local found = language.find(tostring(task.metadata.language or "python"))
  return found and found.support or {}
end

local function row_of(task, key, verdict, opts)
  local row = json.object { key = key, task_id = task.task_id, path = task.dir, ok = verdict.accept, llm_score = verdict.score }
  row.errors = json.array { verdict.why }
  row.reasons, row.fixes = verdict.reasons, verdict.fixes
  row.votes, row.yes, row.unreadable, row.agreement = verdict.votes, verdict.yes, verdict.unreadable, verdict.agreement
  row.judge, row.min_score = opts.model.name, opts.min_score
  return row
end

local function one(self, task, key)
  local opts = self.opts
  local question = judge.payload(task, support_of(task))
  local verdict, problem = judge.ask(opts, question, function(sig, text, vote)
    return self.spend:call((#text + #sig.instructions) // BYTES_PER_TOKEN + ASIDE, opts.max_tokens, function()
      local sampling = { max_tokens = opts.max_tokens, seed = opts.votes > 1 and vote or nil }
      return sig:raw(opts.model, text, { session = ("audit-%s-%d"):format(task.task_id, vote), sampling = sampling })
    end)
  end)
  if not verdict then return nil, problem end
  local row = row_of(task, key, verdict, opts)
  local entry
  entry, problem = self.log:append { line = frame.close(json.encode(row)) }
  if not entry then return nil, problem end
  if opts.on_row then opts.on_row(row, true) end
  return row
end

local function summary(self, tasks)
  local out = { rows = {}, good = 0, asked = self.asked, agreement = 0, spent = self.spend:sums() }
  for i, task in ipairs(tasks) do
    local row = self.rows[i]
    out.rows[i] = row
    if row.ok then out.good = out.good + 1 end
    out.agreement = out.agreement + row.agreement / #tasks
    assert(row.task_id == task.task_id)
  end
  out.kappa = judge.kappa(out.rows)
  return out
end

local function open(opts)
  local ok, problem = fs.mkdir(opts.out:match "^(.*)/[^/]*$" or ".", true)
  if not ok and problem.code ~= "exists" then return nil, problem end
  local lock
  lock, problem = fs.lock(opts.out)
  if not lock then return nil, problem end
  local known = {}
  ok, problem = journal.each(opts.out, function(row) known[row.key or ""] = row end)
  local file
  if ok then file, problem = log.open { path = function() return opts.out end } end
  if not file then
    lock:close()
    return nil, problem
  end
  return known, nil, { lock = lock, log = file }
end

--- Judges the tasks. What a cap or the infrastructure ended is an error; what was judged until then is in the file.
---@async
---@param tasks agentbox.Task[]
---@param given table
---@return agentbox.Audit?
---@return agentbox.Err?
function M.run(tasks, given)
  local opts = schema.options(given, OPTIONS, "generate.judge", 2)
  local problem
  opts.model, problem = model_.resolve(opts.model)
  if not opts.model then return nil, problem end
  local known, why, held = open(opts)
  if not known then return nil, why end
  local _ <close> = setmetatable({}, { __close = function()
    held.log:close()
    held.lock:close()
  end })
  local self = { opts = opts, log = held.log, spend = spend.new(opts.caps or {}, opts.prices), rows = {}, asked = 0 }
  async.each(tasks, function(task, i)
    if problem then return end
    local key = key_of(task, opts)
    local row = known[key]
    if row then
      if opts.on_row then opts.on_row(row, false) end
    else
      self.asked = self.asked + 1
      local failed
      row, failed = one(self, task, key)
      problem = problem or failed
    end
    self.rows[i] = row
  end, { limit = opts.concurrency })
  if problem then return nil, err.wrap(problem, "judging") end
  return summary(self, tasks)
end

return M
