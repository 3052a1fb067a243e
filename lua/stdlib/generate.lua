--- generate.lua: task factories. A pipeline asks a teacher for a solution with tests, makes a task of it and proves that it is
--- good for something before it is kept.
---
---     local factory = ab.generate.pipeline { model = model, language = "python", judge = { min_score = 0.65 } }
---     for task, report in factory:batch { target = 20, concurrency = 8, out = "generated/tasks" } do
---       print(task.task_id, report.sandbox.mutation.score)
---     end
---
--- What each stage does: docs/generation.md.
local batch = require "agentbox.generate.batch"
local corpus = require "agentbox.generate.corpus"
local err = require "agentbox.err"
local journal = require "agentbox.generate.journal"
local language = require "agentbox.generate.language"
local model_ = require "agentbox.model"
local schema = require "agentbox.schema"
local signature = require "agentbox.generate.signature"
local stages_ = require "agentbox.generate.stages"
local task_ = require "agentbox.task"

local M = {}

--- What tasks are about, one after another, unless families are given.
M.FAMILIES = { "text processing", "data structures", "algorithms", "validation of input", "aggregation of records",
  "paths and names", "a package of several files", "a state machine" }

local PIPELINE = {
  model = { "any", required = true }, language = { "string|table", default = "python" }, stages = { "table" },
  judge = { "record", fields = { model = { "any" }, min_score = { "number", default = 0.65, min = 0, max = 1 },
    votes = { "integer", default = 1, min = 1, max = 15 }, rubric = { "string" } } },
  dedup = { "record|boolean", fields = { threshold = { "number", default = 0.85, min = 0.05, max = 1 } } },
  corpus = { "record", fields = { paths = { "list", of = { "string" }, required = true }, words = { "integer", default = 13, min = 3, max = 64 },
    max_share = { "number", default = 0.1, min = 0, max = 1 } } },
  solver = { "record", fields = { model = { "any", required = true }, attempts = { "integer", default = 4, min = 1, max = 64 },
    min_rate = { "number", default = 0, min = 0, max = 1 }, max_rate = { "number", default = 1, min = 0, max = 1 },
    max_steps = { "integer", default = 20, min = 1 }, timeout_s = { "number", default = 600, min = 1 },
    tools = { "string|list", default = "structured" } } },
  families = { "list", of = { "string" } }, difficulties = { "list", of = { "string" } }, mix = { "map", of = { "number", min = 0 } },
  seeds = { "list", of = { "string" } }, seed = { "integer" }, constraints = { "string", default = "" },
  parents = { "list" }, how = { "string", enum = { "vary", "evolve" } },
  min_asserts = { "integer", default = 3, min = 0 }, strict_paths = { "boolean", default = false },
  repeats = { "integer", default = 3, min = 1, max = 50 },
  mutants = { "integer", default = 8, min = 0, max = 200 }, min_mutation = { "number", default = 0.5, min = 0, max = 1 },
  sandbox = { "map" }, max_tokens = { "integer", default = 8192, min = 1 },
}

local BATCH = {
  target = { "integer", default = 20, min = 1 }, concurrency = { "integer", default = 8, min = 1 },
  sandbox_concurrency = { "integer", default = 4, min = 1 }, out = { "string", required = true },
  max_rounds = { "number", default = 12, min = 1 }, prices = { "record", fields = { prompt = { "number" }, completion = { "number" } } },
  caps = { "record", fields = { calls = { "integer", min = 0 }, tokens = { "integer", min = 0 }, cost = { "number", min = 0 } } },
  on_end = { "function" },
}

--- Declares what a model is to answer; see generate/signature.lua.
---@param given table
---@return agentbox.Signature
function M.signature(given) return signature.new(given) end

--- The built-in stages, to be edited with before, after, replace and remove: a whole solution, from which the starter is made.
--- Those that ask for something which the pipeline does not have (a judge, a corpus, a solver) are left out when it is made.
---@return agentbox.Stages
function M.two_stage() return stages_.new() end

--- The same for a teacher that writes starter and solution itself.
---@return agentbox.Stages
function M.one_stage() return stages_.new(true) end

--- A language that is not built in, as a table; see generate/language.lua.
---@param given table
---@return agentbox.Language
function M.language(given) return language.define(given) end

---@class agentbox.Pipeline
---@field opts table
local Pipeline = {}
Pipeline.__index = Pipeline

local function drop(list, name)
  for i, stage in ipairs(list) do
    if stage.name == name then table.remove(list, i) end
  end
end

-- Models and languages, whatever they were given as.
local function resolve(clean)
  local problem
  clean.language, problem = language.find(clean.language)
  if not clean.language then return problem end
  for _, owner in ipairs { clean, clean.judge or {}, clean.solver or {} } do
    if owner.model ~= nil then
      owner.model, problem = model_.resolve(owner.model)
      if not owner.model then return problem.msg end
    end
  end
end

local function parents_of(clean)
  if not clean.parents then return nil end
  if not clean.how then return "`parents` needs `how`: vary or evolve" end
  if #clean.parents == 0 then return "`parents` is empty" end
  for i, one in ipairs(clean.parents) do
    local task, problem = task_.resolve(one)
    if not task then return problem.msg end
    clean.parents[i] = task
  end
end

-- Difficulties by weight: a map of them, or a list in which each counts as often as it stands there.
local function mix_of(clean)
  local mix = clean.mix or clean.difficulties or { "easy", "easy", "medium" }
  local sum = 0
  for _, weight in pairs(mix) do sum = sum + (type(weight) == "number" and weight or 1) end
  return mix, sum > 0
end

--- Makes a pipeline. Raises on unknown options.
---@async
---@param opts table    # model is required; docs/generation.md has them all
---@return agentbox.Pipeline
function M.pipeline(opts)
  local clean = schema.options(opts, PIPELINE, "generate.pipeline")
  local problem = resolve(clean) or parents_of(clean)
  if problem then error("generate.pipeline: " .. problem, 2) end
  local some
  clean.mix, some = mix_of(clean)
  if not some then error("generate.pipeline: mix: all weights are 0", 2) end
  if clean.corpus then
    local read, bad = corpus.read(clean.corpus)
    if not read then error("generate.pipeline: " .. bad.msg, 2) end
    clean.corpus = read
  end
  if clean.dedup == nil or clean.dedup == true then clean.dedup = { threshold = 0.85 } end
  clean.families = clean.families and #clean.families > 0 and clean.families or M.FAMILIES
  clean.sandbox = clean.sandbox or {}
  local given = clean.stages or M.two_stage()
  clean.stages = table.move(given, 1, #given, 1, {})
  if not clean.judge then drop(clean.stages, "judge") end
  if not clean.dedup then drop(clean.stages, "dedup") end
  if not clean.corpus then drop(clean.stages, "contamination") end
  if not clean.solver then drop(clean.stages, "solve") end
  return setmetatable({ opts = clean }, Pipeline)
end

--- Starts a batch and gives its handle: `results:take()`, `summary()`, `close()`. A batch that was stopped or killed goes on
--- when it is started again with the same `out`.
---@async
---@param opts table
---@return agentbox.GenerateCtx?
---@return agentbox.Err?
function Pipeline:start(opts)
  local all = {}
  for key, value in pairs(self.opts) do all[key] = value end
  for key, value in pairs(schema.options(opts, BATCH, "pipeline:start")) do all[key] = value end
  all.caps, all.out = all.caps or {}, (#all.out > 1 and all.out:gsub("/+$", "") or all.out)
  return batch.start(all)
end

--- Iterates over tasks as they are accepted, each with its report; raises when the infrastructure failed.
---@async
---@param opts table    # target, concurrency, out, caps, ...
---@return fun(): agentbox.Task?, table?
---@return nil
---@return nil
---@return agentbox.GenerateCtx   # closed when the loop is left
function Pipeline:batch(opts)
  local run, problem = self:start(opts)
  if not run then error(problem, 2) end
  local function step()
    local result = run.results:take()
    if result then return result[1], result[2] end
    if run.failure and run.failure.code ~= "limit" then error(run.failure, 0) end
  end
  return step, nil, nil, run
end

--- The rejected candidates of an output directory, in their order; `task` is there when a candidate came as far as being one.
---@async
---@param out string
---@return { index: integer, task_id?: string, stage: string, reason: string, report: table, task?: table }[]? rejects
---@return agentbox.Err? err
function M.rejects(out)
  local list = {}
  local ok, problem = journal.each(journal.path(out), function(line)
    if line.event == "end" and not line.accepted then list[#list + 1] = line end
  end)
  if not ok then return nil, problem end
  table.sort(list, function(a, b) return a.index < b.index end)
  return list
end

--- Counts of an output directory: accepted, tried, rejected by stage, spent, and the coverage of families and difficulties.
---@async
---@param out string
---@return table? stats
---@return agentbox.Err? err
function M.stats(out)
  local kept, problem = journal.read(out)
  if not kept then return nil, problem end
  local count, bad = 0
  bad, problem = journal.accepted(out, function() count = count + 1 end)
  if not bad then return nil, problem end
  local stats = batch.count(kept)
  stats.accepted, stats.bad = count, bad
  return stats
end

--- Has tasks that exist judged, one line each in a file; see generate/audit.lua.
---@async
---@param tasks agentbox.Task[]
---@param opts table    # model, votes, min_score, rubric, out, concurrency, max_tokens, caps, prices, on_row
---@return agentbox.Audit? audit
---@return agentbox.Err? err
function M.judge(tasks, opts) return require "agentbox.generate.audit".run(tasks, opts) end

--- Takes a task that exists through the sandbox's checks.
---@async
---@param what string|table
---@param opts? { language?: string|table, sandbox?: table, repeats?: integer, mutants?: integer, min_mutation?: number }
---@return boolean? ok
---@return string|agentbox.Err|nil reason
---@return table? facts
function M.validate(what, opts)
  local task, problem = task_.resolve(what)
  if not task then return nil, problem end
  local clean = schema.options(opts, { language = { "string|table" }, sandbox = { "map" }, repeats = { "integer", default = 3 },
    mutants = { "integer", default = 8 }, min_mutation = { "number", default = 0.5 } }, "generate.validate")
  local lang, why = language.find(clean.language or task.metadata.language or "python")
  if not lang then return nil, err.new("task", task.task_id .. ": " .. why) end
  if not next(task.solution) then return false, "it has no solution/ to try" end
  clean.sandbox = clean.sandbox or {}
  local shop <close> = require "agentbox.generate.workshop".new(clean.sandbox)
  local ctx = { language = lang, opts = clean, workshop = shop, sandbox_turns = require "agentbox.async".semaphore(1) }
  return require "agentbox.generate.stages.sandbox"({ task = task }, ctx)
end

return M
