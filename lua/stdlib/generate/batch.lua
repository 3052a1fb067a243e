--- generate/batch.lua: candidates through the stages, many at once, until so many are accepted or a cap is reached.
local async = require "agentbox.async"
local err = require "agentbox.err"
local fs = require "agentbox.fs"
local index = require "agentbox.generate.index"
local journal = require "agentbox.generate.journal"
local json = require "agentbox.json"
local spend = require "agentbox.generate.spend"
local task_ = require "agentbox.task"
local workshop = require "agentbox.generate.workshop"

local M = {}

---@class agentbox.Candidate
---@field index integer
---@field spec { difficulty: string, family: string, constraints: string }
---@field draft? string
---@field task? agentbox.Task
---@field language agentbox.Language

---@class agentbox.GenerateCtx
---@field model agentbox.Model
---@field judge_model agentbox.Model
---@field language agentbox.Language
---@field opts table
---@field index agentbox.DedupIndex
---@field workshop agentbox.Workshop
---@field spend agentbox.Spend
---@field accepted agentbox.Task[]
local Ctx = {}
Ctx.__index = Ctx

local BYTES_PER_TOKEN, ASIDE = 2, 2000 -- at most: a prompt's tokens, and what the protocol adds

--- Asks a model, counted against the caps.
---@async
---@param signature agentbox.Signature
---@param prompt string
---@param session string
---@param model? agentbox.Model    # the teacher unless given
---@return string? text
---@return agentbox.Err?
function Ctx:say(signature, prompt, session, model)
  local size = (#prompt + #signature.instructions) // BYTES_PER_TOKEN + ASIDE
  local max = self.opts.max_tokens
  return self.spend:call(size, max, function()
    return signature:raw(model or self.model, prompt, { session = session, sampling = { max_tokens = max } })
  end)
end

--- Keeps an answer that was paid for.
---@async
---@param cand agentbox.Candidate
---@return true?
---@return agentbox.Err?
function Ctx:keep_draft(cand)
  return self.journal:add { event = "draft", index = cand.index, text = cand.draft, spent = self.spend:sums() }
end

--- A sandbox with the task's starter, or with its solution over it; the caller closes it.
---@async
---@param cand agentbox.Candidate
---@param which? "starter"|"solution"
---@return agentbox.Sandbox
function Ctx:sandbox(cand, which)
  local tried, problem = require "agentbox.generate.trial".open(cand.task, self.opts.sandbox)
  if not tried then error(problem, 0) end
  local box
  box, problem = tried:box(which == "solution" and cand.task.solution or nil)
  tried:close()
  if not box then error(problem, 0) end
  return box
end

local function rename(task, id)
  local fields = {}
  for key, value in pairs(task) do fields[key] = value end
  fields.task_id = id
  return fields
end

-- A name that nobody has: the model's own, made safe, with the candidate's number when it is taken.
local function place_of(self, cand)
  local name = task_.safe_name(cand.task.task_id)
  if fs.exists(self.out .. "/" .. name) then name = ("%s_%d"):format(name, cand.index) end
  return name
end

--- The last step, one at a time: not a duplicate of what was accepted meanwhile, written aside, put in place.
---@async
---@param cand agentbox.Candidate
---@return boolean?
---@return any
function Ctx:accept(cand)
  local turn <close> = self._accepting:acquire() -- luacheck: ignore
  if #self.accepted >= self.opts.target then return false, "the target was reached before it" end
  local same, likeness = nil, nil
  if self.opts.dedup then same, likeness = self.index:find(cand) end
  if same then return false, ("a duplicate of %s (%.2f alike)"):format(same, likeness) end
  local name = place_of(self, cand)
  cand.task = rename(cand.task, name)
  local aside = self.journal.dir .. "/new-" .. cand.index
  fs.remove(aside, true)
  local ok, problem = task_.save(cand.task, aside)
  if ok then ok, problem = fs.rename(aside, self.out .. "/" .. name) end
  if ok then ok, problem = fs.sync_dir(self.out) end
  if ok then cand.task, problem = task_.load(self.out .. "/" .. name) end
  if not ok or not cand.task then return nil, problem end
  self.index:add(cand)
  self.accepted[#self.accepted + 1] = cand.task
  return true
end

-- ---------------------------------------------------------------- one candidate

-- Runs the stages. true; false with the stage and the reason; nil and the error.
local function through(self, cand, report)
  for _, stage in ipairs(self.stages) do
    local ok, why, facts = stage.run(cand, self)
    if facts then report[stage.name] = facts end
    if ok == nil then return nil, why end
    if not ok then return false, stage.name, tostring(why or "rejected") end
  end
  return true
end

local function spec_of(self, i)
  local families, mix = self.opts.families, self.opts.difficulties
  return { family = families[(i - 1) % #families + 1], difficulty = mix[(i - 1) % #mix + 1], constraints = self.opts.constraints }
end

local function one(self, i)
  local cand = { index = i, spec = spec_of(self, i), draft = self.journal.drafts[i], language = self.language }
  local report = {}
  local ok, stage, why = through(self, cand, report)
  if ok == nil then return nil, stage end
  local line = { event = "end", index = i, accepted = ok, task_id = cand.task and cand.task.task_id or cand.id, stage = stage,
    reason = why, report = report, spent = self.spend:sums() }
  local kept, problem = self.journal:add(line)
  if not kept then return nil, problem end
  self.on_end(line)
  if ok then self.results:put { cand.task, report } end
  return true
end

-- ---------------------------------------------------------------- the batch

-- Indices that were begun and not ended first, then new ones; nil when there is nothing more to do.
local function next_index(self)
  if self.why then return nil end
  if #self.accepted + self.running >= self.opts.target then return nil, #self.accepted < self.opts.target end
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
      waiting[#waiting + 1] = require "agentbox.sys.fiber".current()
      require "agentbox.sys.fiber".park()
    end,
    wake = function()
      local all = waiting
      waiting = {}
      for _, fiber in ipairs(all) do fiber:wake() end
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

local function adopt(self)
  local tasks, bad = journal.accepted(self.out)
  if not tasks then return nil, bad end
  self.accepted, self.bad = tasks, bad
  for _, task in ipairs(tasks) do
    self.index:add { task = task, language = self.language }
    local made = task.metadata.generation
    local i = type(made) == "table" and math.tointeger(made.index)
    if i and not self.journal.ended[i] and i < self.journal.next then -- put in place just before the engine was killed
      local ok, problem = self.journal:add { event = "end", index = i, accepted = true, task_id = task.task_id }
      if not ok then return nil, problem end
    end
  end
  for i in pairs(self.journal.drafts) do self.todo[#self.todo + 1] = i end
  table.sort(self.todo)
  return true
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
    language = opts.language, stages = opts.stages, journal = kept, index = index.new(opts.dedup and opts.dedup.threshold or 1),
    workshop = workshop.new(opts.sandbox), spend = spend.new(opts.caps, opts.prices, kept.spent), accepted = {}, todo = {}, running = 0,
    results = results(), on_end = opts.on_end or function() end, _accepting = async.semaphore(1),
    sandbox_turns = async.semaphore(opts.sandbox_concurrency),
    moved = bell(),
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
---@return table
function Ctx:summary()
  local out = M.count(self.journal)
  out.accepted, out.target, out.why, out.bad = #self.accepted, self.opts.target, self.why, self.bad
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
  return { tried = tried, rejected = by_stage, spent = kept.spent }
end

--- Stops what runs and lets go. May be called twice.
function Ctx:close()
  if self._fiber then
    self._fiber:cancel()
    self._fiber:join()
  end
  self._fiber = nil
  self.workshop:close()
  self.journal:close()
end
Ctx.__close = Ctx.close

return M
