--- `agentbox run TASK`: one rollout, saved, with one line about its end.
local M = {
  name = "run",
  summary = "run one task and save its trajectory",
  description = "Runs one rollout of TASK (a folder with a task.json, the file itself, or a task in Harbor's form) and saves the "
      .. "trajectory. Prints `status=... reward=... steps=...` and where it was saved.",
  arguments = { { "task", "a task folder or a task file" } },
  options = {
    { "-m --model", "NAME", "a model's name, mock (answers once), scripted:FILE, lua:FILE or replay:TRAJ (docs/models.md)", default = "mock" },
    { "--base-url", "URL", "the model server, as in http://127.0.0.1:8000/v1" },
    { "--api-key", "KEY", "its key; better in the environment as OPENAI_API_KEY" },
    { "--temperature", "T", "sampling temperature", number = true, default = 0.7 },
    { "--top-p", "P", "nucleus sampling", number = true },
    { "--max-tokens", "N", "completion tokens of one call", integer = true, default = 4096 },
    { "--stream", "ask for streamed answers" },
    { "--seed", "N", "seed of sampling and of tool dropping", integer = true },
    { "--max-steps", "N", "turns that may use tools", integer = true, default = 40 },
    { "--timeout-s", "SECONDS", "wall clock of the whole episode", number = true, default = 900 },
    { "--tools", "LIST", "structured, shell, custom, or names separated by commas", default = "structured" },
    { "--tool", "FILE", "add the tool that FILE.lua defines, or the MCP servers in FILE.json (repeatable)", repeats = true },
    { "--drop-tool", "NAME", "take this tool away (repeatable)", repeats = true },
    { "--agent", "NAME", "the agent: tool_loop, shell, oracle (the task's solution), idle (nothing), or a module", default = "tool_loop" },
    { "--verifier", "NAME", "score with this verifier instead of the task's" },
    { "--image", "NAME", "sandbox image", default = "host" },
    { "--backend", "NAME", "what makes sandboxes: native, docker, podman or none", default = "native" },
    { "--network", "let the sandbox reach the network" },
    { "--allow", "NAME:PORT", "let it reach this and nothing else (repeatable); docs/sandbox.md", repeats = true },
    { "--cpu", "N", "CPUs of the sandbox", number = true, default = 1 },
    { "--memory-mb", "MB", "memory of the sandbox", integer = true, default = 512 },
    { "-o --out", "DIR", "where trajectories go", default = "trajectories" },
    { "--json", "print the result as one JSON object" },
  },
  epilog = "Exit status: 0 solved, 1 not solved, 2 bad usage or input, 3 infrastructure failed, 130 interrupted.",
}

local infra = { sandbox = true, model_server = true, engine = true, verifier = true }

local function status_of(t)
  if t.final_status == "success" then return 0 end
  if t.stop_reason == "user_cancel" or t.stop_reason == "shutdown" then return 130 end
  if t.failure_class == "task" then return 2 end
  return t.final_status == "error" and infra[t.failure_class] and 3 or 1
end

local function report(args, t, stored)
  local out = require "agentbox.cli._out"
  if args.json then
    io.stdout:write(require "agentbox.json".encode {
      task_id = t.task_id, run_id = t.run_id, id = t.id, status = t.final_status, scored = t.scored, reward = t.reward,
      stop_reason = t.stop_reason, failure_class = t.failure_class, steps = t.metrics.steps or 0, error = t.error,
      saved = stored and stored.json, run_dir = stored and stored.run_dir,
    }, "\n")
  else
    local steps = t.metrics.steps or 0
    io.stdout:write(("status=%s reward=%s steps=%d\n"):format(t.final_status, out.number(t.reward), steps))
    if stored then io.stdout:write("saved ", stored.json, "\n") end
  end
  if t.error then io.stderr:write("agentbox: run: ", out.line(tostring(t.error)), "\n") end
end

-- Saves whatever the rollout ends as, also when it is interrupted: then the fiber is being unwound, and this runs in
-- the rollout's closing handler.
local function saver(result, args)
  return function(t)
    local cancelled = require "agentbox.sys.fiber".current():cancelled()
    if not result.store then
      if cancelled then io.stderr:write "agentbox: run: interrupted before the rollout began; nothing was saved\n" end
      return
    end
    result.stored, result.err = result.store:append(t)
    if cancelled then
      io.stderr:write("agentbox: run: interrupted; the sandbox is gone, ", result.stored
        and "what was recorded is saved\n" or ("but nothing is saved: %s\n"):format(tostring(result.err.msg)))
      report(args, t, result.stored)
    end
  end
end

local function options(config, args, task, model)
  local parts = require "agentbox.cli._run"
  local agent, err = parts.agent(config, args)
  if not agent then return nil, err end
  local sandbox
  sandbox, err = parts.sandbox(config, args.allow)
  if not sandbox then return nil, err end
  return {
    task = task, model = model, agent = agent, sandbox = sandbox,
    verifier = config:value "run.verifier", seed = config:value "run.seed",
    run_id = require "agentbox.sys.rand".uuid4(),
  }
end

local function say(text)
  if require "agentbox.sys.os".isatty(2) then io.stderr:write("agentbox: ", text, "\n") end
end

local function close_store(place)
  if place.store then place.store:close() end
end

local function elsewhere(err)
  err.hint = "Make room or permit it there, or name another folder with --out."
  return err
end

-- Whatever it is that keeps a rollout that was run from being saved, it is no mistake in the input.
local function unsaved(err)
  return elsewhere(require "agentbox.err".new("io", err.msg))
end

-- What run.json tells: enough to run it again.
local function describe(config, args)
  local shown, err = require "agentbox.config.shown".effective(config)
  return shown and { command = "run", task = args.task, config = shown }, err
end

-- The input is checked first, so that a wrong one leaves no folder; the folder is opened next, so that a rollout that
-- cannot be saved does not start. An interrupted rollout is closed, and saved, before its folder.
local function rollout(opts, config, args)
  local result = setmetatable({}, { __close = close_store })
  local place <close> = result -- luacheck: ignore
  opts.on_end = saver(result, args)
  local ro <close>, err = require "agentbox.rollout".start(opts)
  if not ro then return nil, { code = "config", msg = err.msg, hint = err.hint } end
  local meta
  meta, err = describe(config, args)
  if not meta then return nil, err end
  result.store, err = require "agentbox.store".open(config:value "run.out", { run_id = opts.run_id, meta = meta })
  if not result.store then return nil, elsewhere(err) end
  local t = ro:finish()
  if result.err then return nil, unsaved(result.err) end
  report(args, t, result.stored)
  return status_of(t)
end

-- A folder in Harbor's form is a task, too; its image is made for the backend that runs it.
local function load_task(args)
  local harbor = require "agentbox.harbor"
  if not harbor.is(args.task) then return require "agentbox.task".load(args.task) end
  say "making the image of the task's environment"
  local backend = args.backend
  if backend ~= "docker" and backend ~= "podman" then backend = "native" end
  return harbor.load(args.task, { backend = backend, on_warning = say })
end

function M.run(args)
  local parts = require "agentbox.cli._run"
  local task, err = load_task(args)
  if not task then return nil, err end
  local config
  config, err = parts.config(args, task)
  if not config then return nil, err end
  local model
  model, err = parts.model(config)
  if not model then return nil, err end
  local _ <close> = model
  local roles
  roles, err = parts.roles(config)
  if not roles then return nil, err end
  local _ <close> = roles
  require "agentbox.sys.fiber".current():locals().models = roles
  local opts
  opts, err = options(config, args, task, model)
  if not opts then return nil, err end
  say(("running %s with %s"):format(require "agentbox.cli._out".line(task.task_id), model.name))
  return rollout(opts, config, args)
end

return M
