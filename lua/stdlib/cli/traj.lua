--- `agentbox traj show PATH`: what happened in one rollout, on one screen.
local out = require "agentbox.cli._out"

local M = {
  name = "traj",
  summary = "look at a saved trajectory",
}

local function put(...)
  io.stdout:write(...)
end

local function show_verify(verify)
  if not verify then return put "verify=-\n" end
  if verify.command then put("verify command: ", out.line(verify.command), "\n") end
  local told = type(verify.text) == "string" and verify.text ~= "" and not verify.text:find "^exit code %-?%d+$"
  local said = told and ": " .. out.line(out.tail(verify.text, 300)) or ""
  put(("verify exit=%s success=%s%s\n"):format(tostring(verify.exit_code or "-"), tostring(verify.success), said))
  for _, stream in ipairs { { "stdout", 1500 }, { "stderr", 800 } } do
    local text = verify[stream[1]]
    if type(text) == "string" and text ~= "" then
      put("--- verify ", stream[1], "\n", (out.tail(text, stream[2]):gsub("\n$", "")), "\n")
    end
  end
end

local function show_tools(line)
  local runs = line.tool_runs or {}
  if #runs == 0 then return end
  put("last tools:\n")
  for i = math.max(1, #runs - 4), #runs do
    local run = runs[i]
    local why = type(run.error) == "string" and ": " .. out.line(run.error):sub(1, 300) or ""
    put(("  step %s  %s%s%s\n"):format(tostring(run.step or "-"), out.line(run.name),
      run.exit and ("  exit %d"):format(run.exit) or "", run.is_error and "  error" .. why or ""))
    if type(run.traceback) == "string" then put("    ", (run.traceback:gsub("[^\n\t\32-\126]", "?"):gsub("\n", "\n    ")), "\n") end
  end
end

local function show_components(t)
  local parts = {}
  for i, one in ipairs(t.components or {}) do parts[i] = ("%s=%s (weight %.3g)"):format(out.line(one.name), out.number(one.score), one.weight or 1) end
  if #parts > 0 then put("components ", table.concat(parts, "  "), "\n") end
end

local function show_text(t)
  local metrics = t.metrics
  put(("task=%s run=%s id=%s\n"):format(out.line(t.task_id), out.line(t.run_id), out.line(t.id)))
  put(("status=%s reward=%s stop=%s%s\n"):format(t.final_status, out.number(t.reward), t.stop_reason,
    t.failure_class and " class=" .. t.failure_class or ""))
  put(("steps=%d tool_calls=%d duration=%.2f s\n"):format(metrics.steps or 0, metrics.tool_calls or 0,
    metrics.duration_s or 0))
  show_components(t)
  show_verify(t.verify)
  if t.error then put("error: ", out.line(tostring(t.error)), "\n") end
  show_tools(t.line)
end

---Runs a part of the command on what a path, or a run's id, stands for.
local function on_place(module)
  return function(args)
    local runs = require "agentbox.cli._runs"
    if args.path then args.path = runs.place(args.path) end
    for i, word in ipairs(args.run or {}) do args.run[i] = runs.place(word) end
    return require(module).run(args)
  end
end

-- AgentBox's JSON, which `run` names, holds less than the record of its run beside it.
local function record_of(path, t)
  if not path:find "%.json$" then return t end
  local run = ("%s/%s"):format(path:match "^(.*)/[^/]*$" or ".", require "agentbox.store".safe_name(t.run_id or ""))
  if not require "agentbox.fs".exists(run .. "/run.json") then return t end
  return require "agentbox.traj".load(("%s#%s"):format(run, t.id)) or t
end

local function show(args)
  local t, err = require "agentbox.traj".load(args.path)
  if not t then return nil, err end
  if args.json then
    put(require "agentbox.formats.agentbox".text(t), "\n")
  else
    show_text(record_of(args.path, t))
  end
  return 0
end

M.commands = {
  {
    name = "list", summary = "the trajectories of a run, a line each",
    description = "Lists what PATH holds: id, attempt, task, status, reward, why it ended. A run's folder is listed from "
        .. "its index, without reading messages.",
    arguments = { { "path", "a run folder or its id, a folder of them, or a record" } },
    options = {
      { "--status", "STATUS", "only this final status: success, failed, timeout, error, max_steps" },
      { "--class", "CLASS", "only failures of this class: policy, task, verifier, sandbox, model_server, engine" },
      { "--task", "ID", "only this task" },
      { "--limit", "N", "at most so many", number = true },
      { "--json", "one JSON object a line" },
    },
    run = on_place "agentbox.cli._traj_list",
  },
  {
    name = "stats", summary = "counts, rewards, pass@k, tokens, cost and time",
    description = "Sums up each RUN: how rollouts ended, the rewards, the unbiased pass@k, tokens and what they cost, and "
        .. "where the time went. docs/metrics.md has every formula. Prices are the section `prices` of the configuration, "
        .. "or of --prices FILE: for each model the dollars for a million tokens, as {prompt, completion, cached}.",
    arguments = { { "run", "a run folder or its id, a folder of them, or a record", args = "+" } },
    options = {
      { "--pass-at", "LIST", "the k of pass@k, as in 1,4,16 (default: powers of two)" },
      { "--prices", "FILE", "a price table in JSON or YAML" },
      { "--json", "one JSON object for each RUN" },
    },
    run = on_place "agentbox.cli._traj_stats",
  },
  {
    name = "show", summary = "ids, status, reward, verifier output and the last tool calls",
    description = "Shows one trajectory: PATH is a record, a run folder or an AgentBox JSON. Where there are "
        .. "several, name one: PATH#ID. In a run's folder the beginning of an id will do.",
    arguments = { { "path", "a trajectory" } },
    options = { { "--json", "print AgentBox's JSON of it" } },
    run = show,
  },
  {
    name = "tokens", summary = "the token ledger of one trajectory, a line for each call",
    description = "For each call that has token ids: how many its prompt has, how many of those are common with prompt and "
        .. "output of the call it goes on from (the longest common prefix), how many were sampled, the class of the drift "
        .. "(first, clean, realign, fork, unknown), and the version of the weights.",
    arguments = { { "path", "a trajectory, as PATH#ID" } },
    options = { { "--json", "one JSON object a line" } },
    run = function(args) return require "agentbox.cli._traj_tokens".run(args) end,
  },
  {
    name = "check", summary = "verify sums, invariants and bodies of what is stored",
    description = "Checks every trajectory below PATH against the rules of docs/trajectories.md, says what keeps "
        .. "trajectories from training, and how far prompts drift from what was sampled. Memory does not grow with what "
        .. "is checked. Exit status: 0 when all is well, 1 when something is not.",
    arguments = { { "path", "a record, a run folder or its id, a folder of them" } },
    options = {
      { "--json", "print the report as one JSON object" },
      { "--removed", "list each trajectory that may not be trained on, with the reasons" },
      { "--max-drift", "RATE", "fail when more of the calls drift, as in 0.05", number = true },
    },
    run = on_place "agentbox.cli._traj_check",
  },
  {
    name = "render", summary = "one HTML page to look at trajectories with",
    description = "Writes a page that holds PATH's trajectories: a record, a run folder, a folder of them, a benchmark's "
        .. "result, AgentBox's JSON. It is a single file, needs nothing beside it and asks nobody for anything. Every "
        .. "trajectory is in its table; what they said is there for as many as --bodies has room for, failures first. "
        .. "docs/pages.md tells how to read it.",
    arguments = { { "path", "what to render" } },
    options = {
      { "-o --out", "FILE", "the page", default = "traj.html" },
      { "--bodies", "MB", "room for what was said", number = true, default = 8 },
      { "--model-id", "NAME", "only trajectories of this model" },
      { "--compare", "RESULT", "an earlier result of `bench run`, which PATH's is compared with" },
    },
    run = function(args) return require "agentbox.cli._traj_render".run(args) end,
  },
  {
    name = "fork", summary = "go on from a turn of a stored trajectory, several times",
    description = "Plays the trajectory again up to the tool results of turn K, in a fresh sandbox of the same task, and "
        .. "goes on from there N times, each in a fork of that sandbox with the same messages and what is left of the "
        .. "budgets. Each request on the way must be the recorded one, else the turn is refused. The settings must be "
        .. "those of the run. Exit status: 0 when one is solved, 1 when none is, 3 when the infrastructure failed.",
    arguments = { { "path", "a trajectory; where there are several, PATH#ID" } },
    options = {
      { "--task", "TASK", "its task: a folder or a file" },
      { "--turn", "K", "after this turn; 0 is the beginning", integer = true },
      { "--n", "N", "how many", integer = true, default = 1 },
      { "-m --model", "NAME", "the model that goes on, as for run", default = "mock" },
      { "--base-url", "URL", "the model server" },
      { "--api-key", "KEY", "its key; better in the environment as OPENAI_API_KEY" },
      { "--temperature", "T", "sampling temperature", number = true, default = 0.7 },
      { "--seed", "N", "seed of sampling, another one for each fork", integer = true },
      { "--max-steps", "N", "turns that may use tools, those before the fork included", integer = true, default = 40 },
      { "--tools", "LIST", "structured, shell, custom, or names separated by commas", default = "structured" },
      { "--tool", "FILE", "add the tool that FILE.lua defines, or the MCP servers in FILE.json (repeatable)", repeats = true },
      { "-o --out", "DIR", "where trajectories go", default = "trajectories" },
      { "--json", "print one JSON object a line" },
    },
    run = function(args) return require "agentbox.cli._traj_fork".run(args) end,
  },
}

return M
