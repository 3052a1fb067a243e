--- `agentbox generate`: tasks made by a model and proved by sandboxes.
local M = { name = "generate", summary = "make tasks with a model, and check tasks" }

local function usage(msg) return nil, { code = "usage", msg = "generate: " .. msg } end

-- ---------------------------------------------------------------- settings

-- A flag, then the file's section, then the default. A switch has two flags.
local function setting(args, name, config, key, default)
  if args[name] ~= nil then return args[name] end
  if args["no_" .. name] then return false end
  local value, err = config:get(key)
  if err then return nil, err end
  if value == nil then return default end
  return value
end

local function teacher_of(args, config)
  local teacher, err = config:get "teacher"
  if err then return nil, err end
  teacher = teacher or {}
  local name = args.model or teacher.model
  if not name then return usage "a teacher is needed: --model, or teacher.model in agentbox.yaml" end
  local script = name:match "^lua:(.+)$"
  if script then
    local chunk, msg = loadfile(script, "t")
    if not chunk then return usage(msg) end
    return require "agentbox.model".resolve(chunk())
  end
  return require "agentbox.model".configured {
    model = name, base_url = args.base_url or teacher.base_url, api_key = args.api_key or teacher.api_key,
    timeout_s = teacher.timeout_s or 180, extra_body = teacher.extra_body, temperature = args.temperature or teacher.temperature or 0.7,
  }
end

-- One family a line; blank lines and those that begin with # do not count.
local function families_of(args)
  if not args.constraints_file then return nil end
  local text, err = require "agentbox.fs".read_text(args.constraints_file)
  if not text then return nil, { code = "usage", msg = ("generate: %s: %s"):format(args.constraints_file, err.msg) } end
  local list = {}
  for line in text:gmatch "[^\n]+" do
    local bare = line:match "^%s*(.-)%s*$"
    if bare ~= "" and bare:sub(1, 1) ~= "#" then list[#list + 1] = bare end
  end
  return list
end

local function judge_of(args, config, model)
  local on, err = setting(args, "llm_judge", config, "generate.llm_judge", true)
  if not on then return nil, err end
  local judge = model
  if args.judge_model then
    judge, err = teacher_of({ model = args.judge_model, base_url = args.base_url, api_key = args.api_key, temperature = 0.3 }, config)
    if not judge then return nil, err end
  end
  local least
  least, err = setting(args, "min_score", config, "generate.min_score", 0.65)
  if err then return nil, err end
  return { model = judge, min_score = least, votes = args.votes or 1 }
end

local function pipeline_of(args, config)
  local generate = require "agentbox.generate"
  local lang, why = require "agentbox.generate.language".find(args.domain or "python")
  if not lang then return usage(why) end
  local model, err = teacher_of(args, config)
  if not model then return nil, err end
  local families, judge, max_tokens
  families, err = families_of(args)
  if not err then judge, err = judge_of(args, config, model) end
  if not err then max_tokens, err = setting(args, "max_tokens", config, "generate.max_tokens", 8192) end
  if err then return nil, err end
  local stages = generate.two_stage()
  if args.no_docker_qc then stages:remove "sandbox" end
  if args.no_static_qc then stages:remove "static" end
  return generate.pipeline {
    model = model, language = lang, stages = stages, judge = judge, dedup = not args.no_dedup, families = families,
    difficulties = args.difficulty and { args.difficulty } or nil, constraints = args.constraints, max_tokens = max_tokens,
    min_mutation = args.min_mutation, sandbox = args.backend and { backend = args.backend } or nil,
  }
end

-- ---------------------------------------------------------------- batches

local function line_of(line)
  local out = require "agentbox.cli._out"
  local id = line.task_id and " " .. out.line(line.task_id) or ""
  if line.accepted then return ("OK   %d%s"):format(line.index, id) end
  return ("FAIL %d%s: %s: %s"):format(line.index, id, line.stage, out.line(line.reason))
end

local function report(args, run, out)
  local sum = run:summary()
  local clean = require "agentbox.cli._out".line
  for _, bad in ipairs(sum.bad) do io.stderr:write("agentbox: generate: not counted: ", clean(bad), "\n") end
  if args.json then
    io.stdout:write(require "agentbox.json".encode(sum, { sorted = true }), "\n")
  else
    io.stdout:write(("generated %d/%d → %s\n"):format(sum.accepted, sum.target, clean(out)))
  end
  if sum.why and sum.accepted < sum.target then io.stderr:write("agentbox: generate: ", clean(sum.why), "\n") end
  if sum.accepted >= sum.target then return 0 end
  local failure = run.failure
  return failure and failure.code ~= "limit" and 3 or 1
end

local function prices_of(args)
  if not args.price then return nil end
  local prompt, completion = args.price:match "^([%d.]+),([%d.]+)$"
  if not tonumber(prompt) or not tonumber(completion) then return nil, "--price wants two numbers: PROMPT,COMPLETION" end
  return { prompt = tonumber(prompt), completion = tonumber(completion) }
end

local function batch(args)
  local config, err = require "agentbox.config".load()
  if not config then return nil, err end
  local factory
  factory, err = pipeline_of(args, config)
  if not factory then return nil, err end
  local target, concurrency, boxes, bad
  target, err = setting(args, "target", config, "generate.target", 20)
  if not err then concurrency, err = setting(args, "concurrency", config, "generate.concurrency", 8) end
  if not err then boxes, err = setting(args, "docker_concurrency", config, "generate.docker_concurrency", 8) end
  if err then return nil, err end
  for name, value in pairs { target = target, concurrency = concurrency, ["docker-concurrency"] = boxes } do
    if value < 1 then return usage(("--%s must be at least 1"):format(name)) end
  end
  local prices
  prices, bad = prices_of(args)
  if bad then return usage(bad) end
  local run <close>, failed = factory:start { -- luacheck: ignore
    target = target, concurrency = concurrency, sandbox_concurrency = boxes, out = args.out, max_rounds = args.max_rounds or 12,
    caps = { calls = args.max_calls, tokens = args.total_tokens, cost = args.max_cost }, prices = prices,
    on_end = not args.json and function(line) io.stdout:write(line_of(line), "\n") io.stdout:flush() end or nil,
  }
  if not run then return nil, failed end
  while run.results:take() do end -- luacheck: ignore
  return report(args, run, args.out)
end

local function one(args)
  local generate, fs = require "agentbox.generate", require "agentbox.fs"
  local stats, err = generate.stats(args.out)
  if not stats then return nil, err end
  args.target, args.concurrency, args.docker_concurrency = stats.accepted + 1, 1, 1
  args.max_rounds = math.max(1, (stats.tried + (args.max_retries or 2) + 1) / args.target)
  local status, failed = batch(args)
  if failed and not fs.exists(args.out) then return nil, failed end
  return status, failed
end

-- ---------------------------------------------------------------- looking

local function stats(args)
  local found, err = require "agentbox.generate".stats(args.dir)
  if not found then return nil, err end
  local json = require "agentbox.json"
  if args.json then
    io.stdout:write(json.encode(found, { sorted = true }), "\n")
    return 0
  end
  io.stdout:write(("accepted  %d\ntried     %d\n"):format(found.accepted, found.tried))
  for _, stage in ipairs(require "agentbox.schema".names(found.rejected)) do
    io.stdout:write(("rejected  %d by %s\n"):format(found.rejected[stage], require "agentbox.cli._out".line(stage)))
  end
  io.stdout:write(("spent     %d calls, %d tokens\n"):format(found.spent.calls or 0, found.spent.tokens or 0))
  return 0
end

local function validate(args)
  local tasks, err = require "agentbox.task".dir(args.dir)
  if not tasks then return nil, err end
  if #tasks == 0 then return usage("no tasks in " .. args.dir) end
  local clean, good = require "agentbox.cli._out".line, 0
  for _, task in ipairs(tasks) do
    local ok, why = require "agentbox.generate".validate(task, { language = args.domain })
    if ok == nil and why.code ~= "task" then return nil, why end
    good = good + (ok and 1 or 0)
    local reason = type(why) == "table" and why.msg or tostring(why)
    io.stdout:write(ok and "OK   " or "FAIL ", clean(task.task_id), ok and "" or ": " .. clean(reason), "\n")
    io.stdout:flush()
  end
  io.stdout:write(("%d of %d tasks stand\n"):format(good, #tasks))
  return good == #tasks and 0 or 1
end

-- ---------------------------------------------------------------- the command line

local JSON = { "--json", "print JSON" }

local function options(own)
  local list = table.move(own, 1, #own, 1, {})
  for _, option in ipairs {
    { "-m --model", "NAME", "the teacher: a server's model, or lua:FILE that returns a model; default: teacher.model" },
    { "--base-url", "URL", "of its server" }, { "--api-key", "KEY", "its key; better in agentbox.yaml as ${NAME}" },
    { "--temperature", "X", "of the teacher; default: teacher.temperature, else 0.7", number = true },
    { "-o --out", "DIR", "where tasks go; what the batch knows is in DIR.state", default = "generated/tasks" },
    { "--domain", "LANGUAGE", "python, javascript, go, c, shell or a module's name (default: python)" },
    { "--difficulty", "TEXT", "what the teacher is told; default: easy, easy, medium by turns" },
    { "--constraints", "TEXT", "what the teacher is told besides" },
    { "--max-tokens", "N", "of one answer; default: generate.max_tokens, else 8192", integer = true },
    { "--llm-judge", "let a model judge (default: generate.llm_judge, else yes)" }, { "--no-llm-judge", "do not" },
    { "--judge-model", "NAME", "another model than the teacher, on the same server" },
    { "--votes", "N", "of the judge; the majority decides (default: 1)", integer = true },
    { "--min-score", "X", "of the judge; default: generate.min_score, else 0.65", number = true },
    { "--no-docker-qc", "do not try tasks in sandboxes" }, { "--no-static-qc", "do not look at stubs and assertions" },
    { "--two-stage", "stubs are made from a solution; always so" },
    { "--min-mutation", "X", "share of faults in the solution that the tests must notice (default: 0.5)", number = true },
    { "--backend", "NAME", "of the sandboxes" }, JSON,
  } do list[#list + 1] = option end
  return list
end

local VALIDATE = {
  description = "Takes each task of DIR through the sandbox's checks: the starter fails because tests fail, the solution passes "
      .. "again and again, idleness and a plain cheat earn nothing, the tests notice faults.",
  arguments = { { "dir", "a folder of tasks" } },
  options = { { "--domain", "LANGUAGE", "of tasks that do not say; default: python" } }, run = validate,
}

local function validating(name, summary)
  local command = { name = name, summary = summary }
  for key, value in pairs(VALIDATE) do command[key] = value end
  return command
end

M.commands = {
  {
    name = "one", summary = "make one task",
    description = "Makes one more task in DIR; a candidate that is rejected is followed by another, --max-retries times.",
    options = options { { "--max-retries", "N", "candidates after the first (default: 2)", integer = true } }, run = one,
  },
  {
    name = "batch", summary = "make many tasks",
    description = "Makes tasks until DIR has so many. A batch that was stopped or killed goes on when it is started again.",
    options = options {
      { "-n --target", "N", "tasks wanted in DIR; default: generate.target, else 20", integer = true },
      { "-c --concurrency", "N", "candidates at once; default: generate.concurrency, else 8", integer = true },
      { "--docker-concurrency", "N", "in sandboxes at once; default: generate.docker_concurrency, else 8", integer = true },
      { "--constraints-file", "FILE", "families of tasks, one a line" }, { "--no-dedup", "keep tasks that are nearly the same" },
      { "--max-rounds", "N", "give up after N times the target candidates (default: 12)", number = true },
      { "--max-calls", "N", "of models, in all", integer = true }, { "--total-tokens", "N", "of models, in all", integer = true },
      { "--max-cost", "X", "by --price, in all", number = true }, { "--price", "IN,OUT", "of a million tokens, prompt and completion" },
    },
    run = batch,
  },
  validating("validate-sandbox", "prove the tasks of a folder in sandboxes"),
  validating("validate-docker", "the same, as AgentBox called it"),
  {
    name = "stats", summary = "what a batch came to",
    description = "Counts of DIR: accepted, tried, rejected by stage, spent.",
    arguments = { { "dir", "the output directory of a batch" } }, options = { JSON }, run = stats,
  },
}

return M
