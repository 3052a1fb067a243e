--- generate/ctx.lua: what a stage may use: models within the caps, sandboxes, the index, and acceptance.
local fs = require "agentbox.fs"
local index = require "agentbox.generate.index"
local json = require "agentbox.json"
local task_ = require "agentbox.task"

---@class agentbox.Candidate
---@field index integer
---@field spec agentbox.Spec
---@field draft? string
---@field task? agentbox.Task
---@field language agentbox.Language
---@field report table<string, table>    # facts of the stages so far

---@class agentbox.GenerateCtx
---@field model agentbox.Model
---@field judge_model agentbox.Model
---@field language agentbox.Language
---@field opts table
---@field index agentbox.DedupIndex
---@field workshop agentbox.Workshop
---@field spend agentbox.Spend
---@field accepted integer
---@field two_stage boolean      # stubs are made from the solution
---@field journal agentbox.Journal
local Ctx = {}
Ctx.__index = Ctx

local BYTES_PER_TOKEN, ASIDE = 2, 2000 -- at most: a prompt's tokens, and what the protocol adds

--- Asks a model, counted against the caps. An answer that was paid for before a crash is not asked for again.
---@async
---@param cand agentbox.Candidate
---@param signature agentbox.Signature
---@param prompt string
---@param session string            # a name of this question, of its own within the candidate
---@param model? agentbox.Model     # the teacher unless given
---@param seed? integer             # for the model's sampling
---@return string? text
---@return agentbox.Err?
function Ctx:say(cand, signature, prompt, session, model, seed)
  local known = self.journal.answers[cand.index]
  if known and known[session] then return known[session] end
  local size = (#prompt + #signature.instructions) // BYTES_PER_TOKEN + ASIDE
  local max = self.opts.max_tokens
  local text, problem = self.spend:call(size, max, function()
    return signature:raw(model or self.model, prompt, { session = session, sampling = { max_tokens = max, seed = seed } })
  end)
  if not text then
    self:keep_spent()
    return nil, problem
  end
  local ok
  ok, problem = self.journal:add { event = "answer", index = cand.index, session = session, text = text, spec = cand.spec,
    spent = self.spend:sums() }
  if not ok then return nil, problem end
  return text
end

--- Keeps what was spent where no answer is kept.
---@async
function Ctx:keep_spent() self.journal:add { event = "spent", spent = self.spend:sums() } end

--- A model whose calls count against the caps: for whatever asks by itself, as a rollout does. `failure` is its last error.
---@param model agentbox.Model
---@return agentbox.Model
function Ctx:counted(model)
  local spend, max = self.spend, self.opts.max_tokens
  local function keep() self:keep_spent() end
  local out = setmetatable({}, { __index = model })
  function out:complete(request) -- luacheck: ignore self
    local size = #json.encode { request.messages, request.tools or json.null } // BYTES_PER_TOKEN + ASIDE
    local sampling = { max_tokens = max }
    for name, value in pairs(request.sampling or {}) do sampling[name] = value end
    local asked = setmetatable({ sampling = sampling }, { __index = request })
    local response, problem = spend:call(size, sampling.max_tokens, function()
      local answer, bad = model:complete(asked)
      return answer, answer or bad
    end)
    keep()
    if response then return response end
    out.failure = problem
    return nil, problem
  end
  function out:close() end -- luacheck: ignore self
  return out
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

-- A name that nobody has: the model's own, made safe, with the candidate's number when it is taken.
local function place_of(self, cand)
  local name = task_.safe_name(cand.task.task_id)
  if fs.exists(self.out .. "/" .. name) then name = ("%s_%d"):format(name, cand.index) end
  return name
end

-- The task under its final name, with what the stages found out about it.
local function final(cand, name)
  local fields, metadata, made = {}, json.object {}, json.object {}
  for key, value in pairs(cand.task) do fields[key] = value end
  for key, value in pairs(cand.task.metadata) do metadata[key] = value end
  for key, value in pairs(metadata.generation or {}) do made[key] = value end
  local judge, sandbox, solve = cand.report.judge, cand.report.sandbox, cand.report.solve
  local static = cand.report.static
  for key, value in pairs(static and static.difficulty or {}) do metadata[key] = value end
  metadata.signature_hash = index.signature_of(cand.task, cand.language)
  if judge then made.judge = json.object { model = judge.model, score = judge.score, agreement = judge.agreement, reasons = judge.reasons } end
  if sandbox and sandbox.mutation then made.mutation_score = sandbox.mutation.score end
  if solve then made.pass_rate, made.solver = solve.pass_rate, solve.model end
  metadata.generation = made
  fields.task_id, fields.metadata = name, metadata
  return fields
end

-- Writes the folder aside and puts it in place.
local function put(self, cand, name)
  local aside = self.journal.dir .. "/new-" .. cand.index
  fs.remove(aside, true)
  local ok, problem = task_.save(final(cand, name), aside)
  if ok then ok, problem = fs.rename(aside, self.out .. "/" .. name) end
  if ok then ok, problem = fs.sync_dir(self.out) end
  if not ok then return nil, problem end
  return task_.load(self.out .. "/" .. name)
end

--- The last step, one at a time: not a duplicate of what was accepted meanwhile, written aside, put in place.
---@async
---@param cand agentbox.Candidate
---@return boolean?
---@return any
function Ctx:accept(cand)
  local turn <close> = self._accepting:acquire() -- luacheck: ignore
  if self.accepted >= self.opts.target then return false, "the target was reached before it" end
  local same, likeness = nil, nil
  if self.opts.dedup then same, likeness = self.index:find(cand) end
  if same then return false, ("a duplicate of %s (%.2f alike)"):format(same, likeness) end
  local task, problem = put(self, cand, place_of(self, cand))
  if not task then return nil, problem end
  cand.task = task
  if self.opts.dedup then self.index:add(cand) end
  self.accepted = self.accepted + 1
  return true
end

return Ctx
