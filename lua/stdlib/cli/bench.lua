--- `agentbox bench`: suites of tasks, run with several models, compared honestly.
local M = { name = "bench", summary = "make suites of tasks, run models on them, compare" }

local out = require "agentbox.cli._out"

local function usage(msg) return nil, { code = "usage", msg = "bench: " .. msg } end
local function suites() return require "agentbox.suite" end

-- "name=command" as a check of the environment.
local function checks_of(list)
  local checks = {}
  for i, text in ipairs(list or {}) do
    local name, command = text:match "^([^=]+)=(.+)$"
    if not name then return usage(("--setup-check %s: must read NAME=COMMAND"):format(out.line(text))) end
    checks[i] = { name = name, command = command }
  end
  return #checks > 0 and checks or nil
end

local function prices_of(path)
  if not path then return nil end
  return require "agentbox.cli._traj_stats".read_prices(path)
end

local function create(args)
  local checks, bad = checks_of(args.setup_check)
  if bad then return nil, bad end
  local prices, wrong = prices_of(args.prices)
  if wrong then return nil, wrong end
  for _, name in ipairs { "from_tasks", "suite_id", "name" } do
    if not args[name] then return usage(("--%s is needed"):format((name:gsub("_", "-")))) end
  end
  for _, name in ipairs { "n", "concurrency" } do
    if args[name] and args[name] < 1 then return usage(("--%s must be at least 1"):format(name)) end
  end
  local suite, err = suites().create {
    tasks = args.from_tasks, dest = args.dest, suite_id = args.suite_id, name = args.name, version = args.version,
    description = args.description, concurrency = args.concurrency, n_per_task = args.n, seed = args.seed, setup_checks = checks,
    prices = prices, replace = args.replace, agent = { max_steps = args.max_steps },
    sandbox = { image = args.image or "host", limits = { network_disabled = not args.network } },
  }
  if not suite then return nil, err end
  local fs = require "agentbox.fs"
  io.stdout:write(("suite %s %s: %d tasks\ncontent hash %s\nseal %s\n%s\n"):format(out.line(suite.manifest.suite_id),
    out.line(suite.manifest.version), #suite.tasks, suite.manifest.content_hash, suite.manifest.metadata.agentbox.hash,
    out.line(fs.realpath(args.dest) or args.dest)))
  return 0
end

local function freeze(args)
  local suite, err = suites().freeze(args.suite)
  if not suite then return nil, err end
  io.stdout:write(("content hash %s\nseal %s\n"):format(suite.manifest.content_hash, suite.manifest.metadata.agentbox.hash))
  return 0
end

local function told(check)
  local function put(text, ...) io.stdout:write(text:format(...), "\n") end
  if check.integrity == "ok" then put("content hash ok: %s", check.got)
  elseif check.integrity == "none" then put "no content hash: not frozen; agentbox bench freeze makes one"
  else put("content hash differs: expected %s, got %s", out.line(check.expected), check.got) end
  if not check.sealed then put "no seal: modes, image, tools, prompts and library are not covered; agentbox bench freeze makes one"
  elseif #check.differs == 0 then put("seal ok: %s", check.seal)
  else put("seal differs in: %s", table.concat(check.differs, ", ")) end
  if #check.unpinned > 0 then put("images without a digest here: %s", out.line(table.concat(check.unpinned, ", "))) end
  for _, key in ipairs(check.unknown) do
    io.stderr:write("agentbox: bench: suite.json: unknown key ", out.line(key), " means nothing\n")
  end
end

local function validate(args)
  local suite, err = suites().load(args.suite)
  if not suite then return nil, err end
  local check
  check, err = suites().check(suite)
  if not check then return nil, err end
  local strict = args.strict and (check.integrity == "none" or #check.differs > 0)
  local fine = check.integrity ~= "differs" and not strict
  if args.json then
    check.ok, check.suite_id, check.tasks = fine, suite.manifest.suite_id, #suite.tasks
    io.stdout:write(require "agentbox.json".encode(check, { sorted = true }), "\n")
  else
    io.stdout:write(("suite %s %s: %d tasks\n"):format(out.line(suite.manifest.suite_id), out.line(suite.manifest.version), #suite.tasks))
    told(check)
  end
  return fine and 0 or 2
end

local RUN = {
  { "-o --out", "DIR", "the folder of the result", default = "bench-results/latest" },
  { "--student", "ID=MODEL@URL", "a model (repeatable); MODEL may be scripted:FILE, lua:FILE or mock, without a URL", repeats = true },
  { "--models-file", "FILE", "models in JSON or YAML: a list `models`" },
  { "-m --model", "NAME", "one model of --base-url" },
  { "--model-id", "ID", "its name in reports" },
  { "--base-url", "URL", "the model server of --model" },
  { "--api-key", "KEY", "key of all models that have none; better in the environment as OPENAI_API_KEY" },
  { "--mock", "run the suite with a mock that answers once" },
  { "--disable-thinking", "ask servers for answers without thinking (chat_template_kwargs.enable_thinking)" },
  { "-c --concurrency", "N", "rollouts of each student at once (default: the suite's)", integer = true },
  { "--jobs", "N", "students at once (default: all)", integer = true },
  { "--n", "N", "attempts of each task (default: the suite's)", integer = true },
  { "--seed", "N", "seed (default: the suite's)", integer = true },
  { "--limit", "N", "a subset: the first N tasks", integer = true },
  { "--task", "GLOB", "a subset: tasks whose id matches (repeatable)", repeats = true },
  { "--strict", "refuse when the suite, or what would run, differs from what was frozen" },
  { "--no-probe", "do not ask the servers before the run" },
  { "--probe", "ask the servers before the run, which is done anyway" },
  { "--min-success-rate", "RATE", "exit status 1 when the best model stays below", number = true },
  { "--attempts", "N", "attempts at one place when the infrastructure fails", integer = true, default = 3 },
  { "--max-errors", "X", "attempts without a score beyond which the run fails: a share below 1, or a number", number = true, default = 0.1 },
  { "--image", "NAME", "sandbox image instead of the suite's" },
  { "--backend", "NAME", "what makes sandboxes: native, docker, podman or none" },
  { "--network", "let the sandboxes reach the network, whatever the suite says" },
  { "--prices", "FILE", "a price table instead of the suite's" },
  { "--max-creating", "N", "sandboxes of a student being created at once", integer = true },
  { "--max-commands", "N", "turns of tool calls of a student at once", integer = true },
  { "--resume", "go on with the result in --out: only what is missing is run" },
  { "--retry-errors", "with --resume: also make again what failed in all its attempts" },
  { "--save-trajectories", "write AgentBox's JSON of each rollout beside the record, which is done anyway" },
  { "--no-save-trajectories", "keep the record only" },
  { "--json", "print the report as one JSON object" },
}

local STATUS = "Exit status: 0 done; 1 below --min-success-rate; 2 bad usage or input, or refused by --strict; 3 a server did not "
    .. "answer the probe, or too many attempts have no score; 130 interrupted."

M.commands = {
  {
    name = "create", summary = "make a frozen suite of a folder of tasks",
    description = "Copies every task below --from-tasks into DEST, writes suite.json with defaults that the flags change, and "
        .. "freezes it. The layout is the Python AgentBox's, which reads it too.",
    arguments = { { "dest", "the suite's folder; must be empty, or a suite with --replace" } },
    options = {
      { "--from-tasks", "DIR", "tasks: folders with a task.json, and .json files" },
      { "--suite-id", "ID", "its id" },
      { "--name", "NAME", "its name" },
      { "--version", "VERSION", "its version", default = "1.0.0" },
      { "--description", "TEXT", "what it is about" },
      { "--concurrency", "N", "rollouts at once", integer = true, default = 8 },
      { "--n", "N", "attempts of each task", integer = true, default = 1 },
      { "--seed", "N", "seed", integer = true, default = 42 },
      { "--max-steps", "N", "turns that may use tools", integer = true, default = 40 },
      { "--image", "NAME", "sandbox image", default = "host" },
      { "--network", "let the sandboxes reach the network" },
      { "--setup-check", "NAME=COMMAND", "run before each agent begins; when it fails there is no score (repeatable)", repeats = true },
      { "--prices", "FILE", "a price table for this suite, in JSON or YAML" },
      { "--replace", "replace the suite that is there" },
    },
    run = create,
  },
  {
    name = "freeze", summary = "store the hashes of a suite in its suite.json",
    description = "Computes AgentBox's content hash and the seal over everything that decides a result, and stores both.",
    arguments = { { "suite", "a suite's folder" } }, run = freeze,
  },
  {
    name = "validate", summary = "check a suite against its hashes",
    description = "Reads every task and compares with the stored hashes. Exit status: 0 as frozen, or not frozen; 2 when something "
        .. "differs. With --strict also 2 when the suite is not frozen, or when the seal differs.",
    arguments = { { "suite", "a suite's folder" } },
    options = { { "--strict", "an unfrozen suite and a differing seal are failures" }, { "--json", "print one JSON object" } },
    run = validate,
  },
  {
    name = "run", summary = "run a suite with one or several models",
    description = "Runs every task of SUITE with every student, N attempts each, students side by side. What the infrastructure "
        .. "spoils is made again and never counted as a failure. Students come from --student, --models-file and --model, else from "
        .. "`students` in agentbox.yaml. A run that was stopped or killed goes on with --resume.",
    arguments = { { "suite", "a suite's folder; a resumed run knows its own", args = "?" } }, options = RUN, epilog = STATUS,
    run = function(args) return require "agentbox.cli._bench_run".run(args) end,
  },
  {
    name = "show", summary = "a result on one screen",
    description = "Shows the leaderboard, what each model did, and what fails alike. REPORT is report.json or the result's folder.",
    arguments = { { "report", "a report.json, or the folder of a result" } },
    options = {
      { "--out", "FILE", "write the report as Markdown" },
      { "--csv", "FILE", "write the attempts as CSV" },
      { "--junit", "FILE", "write JUnit XML" },
      { "--traj-dir", "DIR", "make the report anew from the records of this result" },
      { "--level", "P", "level of the intervals", number = true, default = 0.95 },
      { "--json", "print the report as one JSON object" },
    },
    run = function(args) return require "agentbox.cli._bench_show".show(args) end,
  },
  {
    name = "compare", summary = "two results, task by task",
    description = "Compares B with A for each model that both have, or --student-a of A with --student-b of B: differences with "
        .. "intervals over tasks, sign and permutation test, size of the effect, and the tasks that explain it.",
    arguments = { { "a", "a report.json or a result" }, { "b", "another one, or the same" } },
    options = {
      { "--student-a", "ID", "this model of A" }, { "--student-b", "ID", "with this model of B" },
      { "--strict", "exit status 2 when the two were not made alike" },
      { "--fail-if-worse", "P", "exit status 1 when B is worse with a p below P", number = true },
      { "--json", "print the comparison as one JSON object" },
    },
    run = function(args) return require "agentbox.cli._bench_show".compare(args) end,
  },
  {
    name = "list", summary = "the suites and results below a folder",
    arguments = { { "dir", "a folder", args = "?" } }, options = { { "--json", "print one JSON object a line" } },
    run = function(args) return require "agentbox.cli._bench_show".list(args) end,
  },
}

return M
