--- `agentbox generate`: tasks made by a model and proved by sandboxes.
local M = { name = "generate", summary = "make tasks with a model, and check tasks" }

local JSON = { "--json", "print JSON" }

-- Nothing of a command is loaded before it is called.
local function lazily(module, name)
  return function(args) return require("agentbox.cli." .. module)[name](args) end
end

-- Groups of options, in the order of the help.
local function options(...)
  local list = {}
  for _, group in ipairs { ... } do table.move(group, 1, #group, #list + 1, list) end
  return list
end

local TEACHER = {
  { "-m --model", "NAME", "the teacher: a server's model, or lua:FILE that returns a model; default: teacher.model" },
  { "--base-url", "URL", "of its server" }, { "--api-key", "KEY", "its key; better in agentbox.yaml as ${NAME}" },
  { "--temperature", "X", "of the teacher; default: teacher.temperature, else 0.7", number = true },
  { "--max-tokens", "N", "of one answer; default: teacher.max_tokens, generate.max_tokens, else 8192", integer = true },
  { "-o --out", "DIR", "where tasks go; what the batch knows is in DIR.state", default = "generated/tasks" },
}

local ABOUT = {
  { "--domain", "LANGUAGE", "python, javascript, go, c, shell or a module's name (default: python)" },
  { "--difficulty", "TEXT", "what the teacher is told; default: easy, easy, medium by turns" },
  { "--mix", "LIST", "difficulties by weight, as in easy=5,medium=3,hard=2" },
  { "--constraints", "TEXT", "what the teacher is told besides" },
  { "--constraints-file", "FILE", "families of tasks, one a line" },
  { "--seeds", "FILE", "ideas to begin with, one a line" },
  { "--seed", "N", "of the order of families and ideas, and of the teacher's sampling", integer = true },
}

local JUDGE = {
  { "--judge-model", "NAME", "another model than the teacher; default: judge.model" },
  { "--votes", "N", "of the judge; the majority decides; default: generate.votes, else 1", integer = true },
  { "--min-score", "X", "of the judge; default: generate.min_score, else 0.65", number = true },
  { "--rubric", "FILE", "what the judge goes by, in place of the built-in one" },
}

local GATES = options({
  { "--llm-judge", "let a model judge (default: generate.llm_judge, else yes)" }, { "--no-llm-judge", "do not" } }, JUDGE, {
  { "--docker-qc", "try tasks in sandboxes; always so" }, { "--no-docker-qc", "do not try tasks in sandboxes" },
  { "--static-qc", "look at stubs and assertions; always so" }, { "--no-static-qc", "do not look at stubs and assertions" },
  { "--two-stage", "stubs are made from a solution; always so" },
  { "--no-two-stage", "the teacher writes the stubs itself, beside the solution" },
  { "--dspy", "means nothing here, as --no-dspy: signatures are built in" }, { "--no-dspy", "the same" },
  { "--min-asserts", "N", "in the tests (default: 3)", integer = true },
  { "--strict-paths", "the description must name a file, imports must be there" },
  { "--repeats", "N", "times that the solution must pass (default: 3)", integer = true },
  { "--mutants", "N", "faults put into the solution (default: 8)", integer = true },
  { "--min-mutation", "X", "share of faults in the solution that the tests must notice (default: 0.5)", number = true },
  { "--corpus", "PATH", "reject what stands in these files (repeatable)", repeats = true },
  { "--max-share", "X", "of a task that may stand in the corpus (default: 0.1)", number = true },
  { "--solver", "NAME", "a student that tries each task: an id in students, or a model on the teacher's server" },
  { "--attempts", "N", "of the student (default: 4)", integer = true },
  { "--min-rate", "X", "reject what it solves less often (default: 0)", number = true },
  { "--max-rate", "X", "reject what it solves more often (default: 1)", number = true },
  { "--backend", "NAME", "of the sandboxes" },
})

local CAPS = {
  { "--max-calls", "N", "of models, in all", integer = true }, { "--total-tokens", "N", "of models, in all", integer = true },
  { "--max-cost", "X", "by --price, in all", number = true }, { "--price", "IN,OUT", "of a million tokens, prompt and completion" },
}

local BATCH = options(TEACHER, {
  { "-n --target", "N", "tasks wanted in DIR; default: generate.target, else 20", integer = true },
  { "-c --concurrency", "N", "candidates at once; default: generate.concurrency, else 8", integer = true },
  { "--docker-concurrency", "N", "in sandboxes at once; default: generate.docker_concurrency, else 8", integer = true },
  { "--dedup", "keep no two that are nearly the same; always so" }, { "--no-dedup", "keep tasks that are nearly the same" },
  { "--max-rounds", "N", "give up after N times the target candidates (default: 12)", number = true },
}, CAPS, ABOUT, GATES, { JSON })

local TASKS = { { "dir", "a folder of tasks" } }

local function validating(name, summary)
  return {
    name = name, summary = summary,
    description = "Takes each task of DIR through the sandbox's checks: the starter fails because tests fail, the solution passes "
        .. "again and again, idleness and plain cheats earn nothing, the tests notice faults.",
    arguments = TASKS, options = { { "--domain", "LANGUAGE", "of tasks that do not say; default: python" },
      { "--no-network", "sandboxes have none; always so" } },
    run = lazily("_generate_check", "sandbox"),
  }
end

local function from(how, summary, description)
  return {
    name = how, summary = summary, description = description, arguments = { { "tasks", "a task or a folder of tasks" } }, options = BATCH,
    run = function(args) return require "agentbox.cli._generate_batch".from(how)(args) end,
  }
end

-- ---------------------------------------------------------------- review

local OUT_DIR = { "dir", "the output directory of a batch" }
local NAMES = { "names", "folders in DIR, or @NUMBER of a rejected candidate", args = "+" }
local STATES = { "all", "undecided", "accepted", "rejected" }

local function deciding(name, summary, reason)
  return {
    name = name, summary = summary,
    description = "Keeps the decision in DIR.state; it is on the disk when this returns. It holds for the task as it is now: one that is "
        .. "changed later is undecided again. The last decision counts.",
    arguments = { OUT_DIR, NAMES }, options = { { "--reason", "TEXT", reason } },
    run = function(args) return require "agentbox.cli._generate_review".deciding(name)(args) end,
  }
end

local REVIEW = {
  name = "review", summary = "let people decide about the tasks of a batch",
  commands = {
    {
      name = "list", summary = "list tasks with what gates and people said",
      description = "Lists the tasks in DIR and the rejected candidates that came as far as being a task, as @NUMBER.",
      arguments = { OUT_DIR }, options = { { "--state", "STATE", "all, undecided, accepted or rejected (by people)", choices = STATES,
        default = "all" }, { "--json", "print one JSON object a line" } },
      run = lazily("_generate_review", "list"),
    },
    {
      name = "show", summary = "show one: its files, what each gate found",
      arguments = { OUT_DIR, { "name", "a folder in DIR, or @NUMBER of a rejected candidate" } }, options = { JSON },
      run = lazily("_generate_review", "show"),
    },
    deciding("accept", "let tasks stand, also such as a gate rejected", "why"),
    deciding("reject", "take tasks out of the set; a batch that goes on makes up for them", "why; needed"),
    {
      name = "html", summary = "write the queue as one page",
      description = "Writes a page that needs no server: source beside tests, what each gate found, the judge's reasons. It runs no "
          .. "script; what models wrote is text in it and nothing else.",
      arguments = { OUT_DIR }, options = { { "-o --out", "FILE", "where", default = "review.html" },
        { "--state", "STATE", "all, undecided, accepted or rejected (by people)", choices = STATES, default = "all" },
        { "--limit", "N", "tasks on the page, those that need a decision first", integer = true, default = 200 } },
      run = lazily("_generate_review", "html"),
    },
    {
      name = "save", summary = "write the tasks that stand as a set",
      description = "Writes what the gates accepted and nobody rejected, and what somebody accepted: as folders, or as lines when OUT ends "
          .. "in .jsonl. OUT must not be there.",
      arguments = { OUT_DIR }, options = { { "-o --out", "OUT", "a folder, or a file that ends in .jsonl", default = "generated/set" },
        { "--undecided", "WHAT", "keep or drop what nobody decided about", choices = { "keep", "drop" }, default = "keep" } },
      run = lazily("_generate_review", "save"),
    },
  },
}

M.commands = {
  {
    name = "one", summary = "make one task",
    description = "Makes one more task in DIR; a candidate that is rejected is followed by another, --max-retries times.",
    options = options(TEACHER, { { "--max-retries", "N", "candidates after the first (default: 2)", integer = true } }, CAPS, ABOUT, GATES,
      { JSON }),
    run = lazily("_generate_batch", "one"),
  },
  {
    name = "batch", summary = "make many tasks",
    description = "Makes tasks until DIR has so many. A batch that was stopped or killed goes on when it is started again.",
    options = BATCH, run = lazily("_generate_batch", "batch"),
  },
  from("vary", "make tasks like some that exist",
    "Makes tasks of the same skill and difficulty as TASKS, by turns, about something else; like a batch otherwise."),
  from("evolve", "make harder tasks from some that exist",
    "Makes harder tasks that grow out of TASKS, by turns; like a batch otherwise."),
  {
    name = "validate-llm", summary = "let a model judge the tasks of a folder",
    description = "Judges each task of DIR by a rubric and writes one line each to --out. The same call again asks only about tasks that "
        .. "are new, were changed, or were judged by another model or other rules. Exit status 1 when one is rejected.",
    arguments = TASKS,
    options = options({ { "-m --model", "NAME", "the judge, unless --judge-model or judge.model say; lua:FILE is a script" },
      { "--base-url", "URL", "of its server" }, { "--api-key", "KEY", "its key; better in agentbox.yaml as ${NAME}" } }, JUDGE, {
      { "-o --out", "FILE", "the verdicts", default = "generated/llm_audit.jsonl" },
      { "-c --concurrency", "N", "tasks at once; default: generate.concurrency, else 8", integer = true },
      { "--max-tokens", "N", "of one answer; default: generate.max_tokens, else 8192", integer = true } }, CAPS, { JSON }),
    run = lazily("_generate_check", "llm"),
  },
  validating("validate-sandbox", "prove the tasks of a folder in sandboxes"),
  validating("validate-docker", "the same, as AgentBox called it"),
  REVIEW,
  {
    name = "stats", summary = "what a batch came to",
    description = "Counts of DIR: accepted, tried, rejected by stage, spent; then for each difficulty and family.",
    arguments = { OUT_DIR }, options = { JSON }, run = lazily("_generate_check", "stats"),
  },
}

return M
