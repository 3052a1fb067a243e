--- generate/batch.lua: candidates through the stages, many at once, until so many are accepted or a cap is reached.
local Ctx = require "agentbox.generate.ctx"
local async = require "agentbox.async"
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local fs = require "agentbox.fs"
local index = require "agentbox.generate.index"
local journal = require "agentbox.generate.journal"
local json = require "agentbox.json"
local review = require "agentbox.generate.review"
local spend = require "agentbox.generate.spend"
local spread = require "agentbox.generate.spread"
local task_ = require "agentbox.task"
local workshop = require "agentbox.generate.workshop"

local M = {}

-- ---------------------------------------------------------------- one candidate

-- Runs the stages. true; false with the stage and the reason; nil and the error.
local function through(self, cand)
  for _, stage in ipairs(self.stages) do
    local ok, why, facts = stage.run(cand, self)
    if facts then cand.report[stage.name] = facts end
    if ok == nil then return nil, why end
    if not ok then return false, stage.name, tostring(why or "rejected") end
  end
  return true
end

local function one(self, i)
  local spec = self.journal.specs[i]
  if spec then self.spread:seen(spec, true) else spec = self.spread:next(i) end
  local cand = { index = i, spec = spec, language = self.language, report = {} }
  local ok, stage, why = through(self, cand)
  if ok == nil then return nil, stage end
  local line = { event = "end", index = i, accepted = ok, task_id = cand.task and cand.task.task_id or cand.id, stage = stage,
    reason = why, report = cand.report, spec = spec, spent = self.spend:sums() }
  if not ok and cand.task then line.task = task_.to_inline(cand.task) end
  local kept, problem = self.journal:add(line)
  if not kept then return nil, problem end
  self.spread:ended(spec, ok)
  self.on_end(line)
  if ok then self.results:put { cand.task, cand.report } end
  return true
end

-- ---------------------------------------------------------------- the batch

-- Indices that were begun and not ended first, then new ones; nil when there is nothing more to do.
local function next_index(self)
  if self.why then return nil end
  if self.accepted + self.running >= self.opts.target then return nil, self.accepted < self.opts.target end
  if #self.todo > 0 then return table.remove(self.todo, 1) end
  if self.journal.next > self.opts.target * self.opts.max_rounds then
    if self.running == 0 then self.why = ("%d candidates were tried"):format(self.journal.next - 1) end
    return nil, self.running > 0
  end
  self.journal.next = self.journal.next + 1
  return self.journal.next - 1
end

local function work(self)
  while true do
    local i, wait = next_index(self)
    if i then
      self.running = self.running + 1
      local ok, problem = one(self, i)
      self.running = self.running - 1
      self.moved:wake()
      if not ok then
        self.why = self.why or problem.msg
        self.failure = self.failure or problem
      end
    elseif wait then
      self.moved:wait()
    else
      return
    end
  end
end

-- Fibers that wait until something has ended.
local function bell()
  local waiting = {}
  return {
    wait = function()
      waiting[#waiting + 1] = fiber.current()
      fiber.park()
    end,
    wake = function()
      local all = waiting
      waiting = {}
      for _, one_waiting in ipairs(all) do one_waiting:wake() end
    end,
  }
end

-- A queue without a bound between the batch and who takes its results.
local function results()
  local list, rung = {}, bell()
  return {
    put = function(_, value)
      list[#list + 1] = value
      rung.wake()
    end,
    take = function(_)
      while #list == 0 do rung.wait() end
      return table.remove(list, 1)
    end,
  }
end

-- A task that is there already: it counts unless a reviewer rejected it; another like it is a duplicate either way.
local function adopt_task(self, task, name, decisions)
  if self.opts.dedup then self.index:add({ task = task, language = self.language }, name) end
  local made = task.metadata.generation
  local i = type(made) == "table" and math.tointeger(made.index)
  if i and not self.journal.ended[i] and i < self.journal.next then -- put in place just before the engine was killed
    self._found[#self._found + 1] = { event = "end", index = i, accepted = true, task_id = task.task_id }
  end
  if review.decision(decisions, name, task.hash) ~= "reject" then self.accepted = self.accepted + 1 end
end

local function adopt(self)
  local decisions, problem = review.decisions(self.out)
  if not decisions then return nil, problem end
  local bad
  bad, problem = journal.accepted(self.out, function(task, name) adopt_task(self, task, name, decisions) end)
  if not bad then return nil, problem end
  self.bad = bad
  for _, line in ipairs(self._found) do
    local ok, failed = self.journal:add(line)
    if not ok then return nil, failed end
  end
  for n, parent in ipairs(self.opts.parents or {}) do
    if self.opts.dedup then self.index:add({ task = parent, language = self.language }, "\0" .. n) end
  end
  for _, ended in pairs(self.journal.ended) do self.spread:seen(ended, ended.accepted) end
  for i in pairs(self.journal.answers) do self.todo[#self.todo + 1] = i end
  table.sort(self.todo)
  return true
end

-- What the index reads again: a task in the output directory, or one of those that are varied.
local function fetcher(opts)
  return function(name)
    local parent = math.tointeger(tonumber(name:match "^%z(%d+)$"))
    if parent then return opts.parents[parent] end
    local dir = opts.out .. "/" .. name
    return fs.exists(dir) and task_.load(dir) or nil
  end
end

local function has(stages, name)
  for _, stage in ipairs(stages) do
    if stage.name == name then return true end
  end
  return false
end

--- Starts a batch in the running scope; `results:take()` gives `{ task, report }` as they are accepted, then false.
---@async
---@param opts table     # checked by generate.lua
---@return agentbox.GenerateCtx?
---@return agentbox.Err?
function M.start(opts)
  local kept, problem = journal.open(opts.out)
  if not kept then
    if problem.code == "busy" then problem = err.new("busy", ("another batch writes to %s"):format(opts.out)) end
    return nil, problem
  end
  local self = setmetatable({
    opts = opts, out = opts.out, model = opts.model, judge_model = opts.judge and opts.judge.model or opts.model,
    language = opts.language, stages = opts.stages, journal = kept, spread = spread.new(opts), two_stage = has(opts.stages, "strip"),
    index = index.new(opts.dedup and opts.dedup.threshold or 1, fetcher(opts)), workshop = workshop.new(opts.sandbox),
    spend = spend.new(opts.caps, opts.prices, kept.spent), accepted = 0, todo = {}, running = 0, _found = {},
    results = results(), on_end = opts.on_end or function() end, _accepting = async.semaphore(1),
    sandbox_turns = async.semaphore(opts.sandbox_concurrency), moved = bell(), summary = M.summary, close = M.close,
  }, Ctx)
  local ok
  ok, problem = adopt(self)
  if not ok then
    self:close()
    return nil, problem
  end
  self._fiber = async.spawn(function()
    local list = {}
    for n = 1, opts.concurrency do list[n] = n end
    local fine, raised = pcall(async.each, list, function() work(self) end)
    if not fine then -- a lab's stage raised
      self.failure = err.is(raised) and raised or err.new("defect", tostring(raised))
      self.why = self.why or self.failure.msg
    end
    self.results:put(false)
  end)
  return self
end

--- How it stands: accepted, tried, rejected by stage, spent, why it stopped short.
---@param self agentbox.GenerateCtx
---@return table
function M.summary(self)
  local out = M.count(self.journal)
  out.accepted, out.target, out.why, out.bad = self.accepted, self.opts.target, self.why, self.bad
  return out
end

--- The counts that a journal gives.
---@param kept agentbox.Journal
---@return table
function M.count(kept)
  local by_stage, tried = json.object {}, 0
  for _, line in pairs(kept.ended) do
    tried = tried + 1
    if not line.accepted and line.stage then by_stage[line.stage] = (by_stage[line.stage] or 0) + 1 end
  end
  return { tried = tried, rejected = by_stage, spent = kept.spent, coverage = spread.coverage(kept.ended) }
end

--- Stops what runs and lets go. May be called twice.
---@param self agentbox.GenerateCtx
function M.close(self)
  if self._fiber then
    self._fiber:cancel()
    self._fiber:join()
  end
  self._fiber = nil
  self.workshop:close()
  self.journal:close()
end

Ctx.__close = M.close

return M
