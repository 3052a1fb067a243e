--- sandbox: the task proves itself. Its starter fails because tests fail, its solution passes, again and again, in another
--- order and on another day, with its tests untouched; doing nothing and a plain cheat earn nothing; its tests notice when
--- something is wrong in the solution.
local err = require "agentbox.err"
local json = require "agentbox.json"
local schema = require "agentbox.schema"
local trial = require "agentbox.generate.trial"

local MOVED = "+200d"

-- Raised inside of checks: a rejection with its reason.
local function reject(reason) error({ reject = reason }, 0) end
local function must(value, problem)
  if value == nil then error(problem, 0) end
  return value
end

local function run(ctx, tried, box, more)
  local opts = { workspace = tried.workspace, timeout_s = tried.task.verifier.timeout_s }
  for key, value in pairs(more or {}) do opts[key] = value end
  return must(ctx.language.run(box, tried.task, opts))
end

local function starter_fails(ctx, tried, facts)
  local box <close> = must(tried:box())
  local report = run(ctx, tried, box)
  facts.starter = report.why
  if report.kind == "passed" then reject "the starter passes already" end
  if report.kind == "broken" then reject("the starter fails for the wrong reason: " .. report.why) end
end

-- libfaketime, where the sandbox has it and the language's programs are linked dynamically.
local function moved_clock(ctx, box)
  if not ctx.language.dynamic then return nil end
  local found = must(box:exec("ls /usr/lib/*/faketime/libfaketime.so.1 2>/dev/null"))
  local path = found.stdout:match "^(%S+)"
  return path and { LD_PRELOAD = path, FAKETIME = MOVED, FAKETIME_DONT_FAKE_MONOTONIC = "1" }
end

local function check_pass(report, how)
  if report.kind ~= "passed" then reject(("the solution does not pass%s: %s"):format(how, report.why)) end
end

-- The tests are the starter's: a solution brings none, and none is changed by running.
local function brings_no_tests(ctx, task)
  for _, path in ipairs(schema.names(task.solution)) do
    if ctx.language.is_test(path) then reject("the solution brings a test of its own: " .. path) end
  end
end

local function tests_untouched(ctx, tried, box)
  for _, path in ipairs(schema.names(tried.task.files)) do
    if ctx.language.is_test(path) then
      local bytes = box:read(tried.workspace .. "/" .. path, { max_bytes = 64 << 20 })
      if bytes ~= tried.task.files[path].bytes then reject("its tests are changed when they run: " .. path) end
    end
  end
end

local function solution_passes(ctx, tried, facts)
  local box <close> = must(tried:box(tried.task.solution))
  local first = run(ctx, tried, box)
  check_pass(first, "")
  facts.solution = ("%s, %d times of %d"):format(first.why, ctx.opts.repeats, ctx.opts.repeats)
  for n = 2, ctx.opts.repeats do check_pass(run(ctx, tried, box, { seed = n }), " in random order") end
  local env = moved_clock(ctx, box)
  facts.clock = env and "moved by " .. MOVED or "not moved"
  if env then check_pass(run(ctx, tried, box, { env = env }), " on another day") end
  tests_untouched(ctx, tried, box)
  return first.duration_s
end

local function reward_of(tried, files)
  local verdict, problem = tried:verdict(files)
  if verdict then return verdict.success and 1 or 0, verdict.text end
  if err.class(problem) == "sandbox" then error(problem, 0) end
  reject("the verifier cannot judge it: " .. tostring(problem.msg))
end

-- What two plain cheats leave: code that ends the program well, and tests that ask for nothing.
local function cheats(ctx, task)
  local leaves, blunts = {}, {}
  for path, file in pairs(task.solution) do leaves[path] = { bytes = ctx.language.cheat(path), mode = file.mode } end
  for path, file in pairs(task.files) do
    if ctx.language.is_test(path) then blunts[path] = { bytes = ctx.language.blunt(path, file.bytes), mode = file.mode } end
  end
  for path, file in pairs(ctx.language.plants) do blunts[path] = file end
  return leaves, blunts
end

local function verdicts(ctx, tried)
  local good, why = reward_of(tried, tried.task.solution)
  if good ~= 1 then reject("the verifier does not accept the solution: " .. tostring(why)) end
  if reward_of(tried, {}) ~= 0 then reject "an agent that does nothing is rewarded" end
  local leaves, blunts = cheats(ctx, tried.task)
  if reward_of(tried, leaves) ~= 0 then reject "an agent that only ends the program is rewarded" end
  if reward_of(tried, blunts) ~= 0 then reject "an agent that only takes the tests' teeth out is rewarded" end
end

-- A mutant may run forever: the time of the whole tests, with room, is enough for one that does not.
local MUTANT_TIMES, MUTANT_LEAST_S = 10, 5

local function mutation(ctx, tried, facts, took_s)
  if ctx.opts.mutants == 0 then return end
  local texts = {}
  for path, file in pairs(tried.task.solution) do texts[path] = file.bytes end
  local mutants = must(ctx.language.mutants(texts, { seed = 1, max = ctx.opts.mutants, workshop = ctx.workshop }))
  if #mutants == 0 then return end
  local box <close> = must(tried:box(tried.task.solution))
  local survived, timeout_s = json.array {}, math.min(tried.task.verifier.timeout_s, math.max(MUTANT_LEAST_S, took_s * MUTANT_TIMES))
  for _, one in ipairs(mutants) do
    local path = tried.workspace .. "/" .. one.path
    must(box:write(path, one.text))
    if run(ctx, tried, box, { timeout_s = timeout_s }).kind == "passed" then survived[#survived + 1] = one.what end
    must(box:write(path, texts[one.path]))
  end
  facts.mutation = { score = 1 - #survived / #mutants, of = #mutants, noticed = #mutants - #survived, survived = survived }
  if facts.mutation.score < ctx.opts.min_mutation then
    reject(("the tests notice %d of %d faults put into the solution"):format(#mutants - #survived, #mutants))
  end
end

local function checks(cand, ctx, facts)
  brings_no_tests(ctx, cand.task)
  local tried <close> = must(trial.open(cand.task, ctx.opts.sandbox))
  starter_fails(ctx, tried, facts)
  local took_s = solution_passes(ctx, tried, facts)
  verdicts(ctx, tried)
  mutation(ctx, tried, facts, took_s)
end

return function(cand, ctx)
  local turn <close> = ctx.sandbox_turns:acquire() -- luacheck: ignore
  local facts = {}
  local ok, problem = pcall(checks, cand, ctx, facts)
  if ok then return true, nil, facts end
  if type(problem) == "table" and problem.reject then return false, problem.reject, facts end
  if err.is(problem) and (problem.code == "task" or problem.code == "parse") then return false, problem.msg, facts end
  if err.is(problem) then return nil, problem end
  error(problem, 0)
end
