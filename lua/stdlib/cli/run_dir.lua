--- `agentbox run-dir DIR`: every task of a folder, so many times, through one window.
local M = {
  name = "run-dir",
  summary = "run the tasks of a folder, many at once",
  description = "Runs every task of DIR (folders with a task.json, and .json files) N times, so many at once, and saves "
      .. "each rollout as it ends. A run that was stopped or killed goes on with --resume: only what is missing is run. "
      .. "Ctrl-C once lets the running rollouts end, twice stops them.",
  arguments = { { "dir", "a folder of tasks; a resumed run knows its own", args = "?" } },
  epilog = "Exit status: 0 all solved, 1 not all solved, 2 bad usage or input, 3 infrastructure failed, 130 interrupted.",
}

local own = {
  { "-c --concurrency", "N", "rollouts at once", integer = true, default = 8 },
  { "--n", "N", "rollouts of each task", integer = true, default = 1 },
  { "--group-size", "N", "divide the rollouts of a task into groups of N (default: --n)", integer = true },
  { "--limit", "N", "only the first N tasks", integer = true },
  { "--resume", "RUN", "go on with this run: its folder, or its id below --out" },
  { "--allow-changes", "resume although the model, the agent or the tools changed" },
  { "--retry-errors", "with --resume: also run again what failed in all its attempts" },
  { "--run-id", "ID", "name of the run (default: a new one)" },
  { "--attempts", "N", "attempts of a rollout when the infrastructure fails", integer = true, default = 3 },
  { "--max-errors", "X", "stop when more are unscored: a share below 1, or a number", number = true, default = 0.5 },
  { "--quarantine", "N", "failed attempts in a row that give a task up", integer = true, default = 4 },
  { "--oversample", "N", "members beyond the group's size; the first to be scored count", integer = true, default = 0 },
  { "--min-group", "N", "scored members below which a group is dropped", integer = true, default = 2 },
  { "--straggler", "FACTOR", "give up members slower than FACTOR times the group's median", number = true },
  { "--straggler-busy", "FACTOR", "the same of members whose sandbox computes, when that is longer", number = true },
  { "--group-timeout-s", "SECONDS", "close a group after this time with what is there", number = true },
  { "--run-timeout-s", "SECONDS", "stop the run after this time", number = true },
  { "--max-creating", "N", "sandboxes being created at once", integer = true },
  { "--max-commands", "N", "turns of tool calls at once", integer = true },
  { "--max-judges", "N", "verifications at once", integer = true },
  { "--metrics", "ADDRESS", "serve numbers for Prometheus at http://ADDRESS/metrics (beyond the loopback: AGENTBOX_TOKEN)" },
}

-- run's options, which mean the same here.
local function options()
  local list = table.move(own, 1, #own, 1, {})
  for _, option in ipairs(require "agentbox.cli.run".options) do
    if option[1] == "--json" then option = { "--json", "print events as they happen, one JSON object a line" } end
    list[#list + 1] = option
  end
  return list
end

M.options = options()

-- What `agentbox serve`, which is this command with a door, brings instead: name, options, ready(opts, args) before the run
-- is started, open(run, args, opts) after it.
M.plain = { name = "run-dir", options = M.options }

local function usage(msg, hint) return nil, { code = "usage", msg = msg, hint = hint } end

-- ---------------------------------------------------------------- what the run is told

-- Settings that another run with the same tasks would have to share for their rollouts to be comparable.
local IDENTITY = {
  "model.model", "model.temperature", "model.top_p", "model.max_tokens", "model.seed", "agent.name", "agent.tools",
  "agent.drop_tools", "agent.drop_tools_prob", "agent.system_prompt", "agent.max_steps", "agent.step_timeout_s",
  "agent.episode_timeout_s", "agent.parallel_tool_calls", "agent.include_thinking", "sandbox.image", "run.seed",
  "run.verifier",
}

local function identity_of(config)
  local out = {}
  for _, key in ipairs(IDENTITY) do out[key] = config:value(key) end
  return out
end

local LEAST = {
  concurrency = 1, n = 1, group_size = 1, limit = 0, attempts = 1, max_errors = 0, quarantine = 1, oversample = 0, min_group = 1,
  straggler = 1, straggler_busy = 1, group_timeout_s = 0.001, run_timeout_s = 0.001, max_creating = 1, max_commands = 1, max_judges = 1,
}

local function check_numbers(args)
  for name, least in pairs(LEAST) do
    if args[name] and args[name] < least then
      return usage(("run-dir: --%s must be at least %g, not %g"):format((name:gsub("_", "-")), least, args[name]))
    end
  end
  if args.straggler_busy and not args.straggler then
    return usage("run-dir: --straggler-busy is about who --straggler gives up", "give both")
  end
  return true
end

-- What a resumed run does without being told again. Never a key.
local function remembered(args, command)
  local out = {}
  for _, option in ipairs(command.options) do
    local name = require "agentbox.cli._parse".target(option)
    local value = args[name]
    if name ~= "api_key" and name ~= "resume" and name ~= "json" and name ~= "retry_errors" and name ~= "allow_changes"
        and name ~= "metrics" and name ~= "listen" and name ~= "out" and name ~= "run_id" and not (type(value) == "table" and #value == 0) then
      out[name] = value
    end
  end
  return out
end

-- The folder and the id of the run to go on with.
local function find_run(args, config, command)
  local fs, json = require "agentbox.fs", require "agentbox.json"
  local path, err = require "agentbox.cli._runs".find(args.resume, config:value "run.out")
  if not path then return nil, err end
  local text
  text, err = fs.read(path .. "/run.json", 16 << 20)
  if not text then return nil, err end
  local doc = json.decode(text)
  if not json.is_object(doc) or type(doc.run) ~= "string" then return usage("run-dir: " .. path .. "/run.json is not a run's") end
  if type(doc.args) ~= "table" or doc.command and doc.command ~= command.name then
    return usage(("%s: not a run of %s"):format(path, command.name))
  end
  return { out = path:match "^(.*)/[^/]*$" or ".", run_id = doc.run, doc = doc }
end

local function recall(args, earlier)
  for name, value in pairs(earlier.doc.args) do
    local given = args[name]
    if given == nil or type(given) == "table" and #given == 0 then args[name] = value end
  end
  args.dir = args.dir or earlier.doc.tasks
end

local function check_same(args, config, earlier, name)
  local out, changed = require "agentbox.cli._out", {}
  local json = require "agentbox.json"
  local now, before = identity_of(config), earlier.doc.identity or {}
  local function text(value) return value == nil and "unset" or json.encode(value) end
  for _, key in ipairs(IDENTITY) do
    local was = before[key]
    if was == json.null then was = nil end
    if text(was) ~= text(now[key]) then changed[#changed + 1] = ("%s was %s, is %s"):format(key, text(was), text(now[key])) end
  end
  if #changed == 0 or args.allow_changes then return true end
  return usage(name .. ": the run was made with other settings: " .. out.line(table.concat(changed, "; ")),
    "Begin a new run, or mix them knowingly with --allow-changes.")
end

-- Agent and sandbox of one task: a flag wins over the task, the task over the configuration.
local function preparer(config, args)
  local parts = require "agentbox.cli._run"
  return function(task)
    local resolved, err = config:resolve(args, task)
    if not resolved then return nil, err end
    local agent, sandbox
    agent, err = parts.agent(resolved, args)
    if not agent then return nil, err end
    sandbox, err = parts.sandbox(resolved, args.allow)
    if not sandbox then return nil, err end
    return { agent = agent, sandbox = sandbox, verifier = resolved:value "run.verifier" }
  end
end

local function runner_options(args, config, models, place, command)
  local straggler = args.straggler and { factor = args.straggler, busy_factor = args.straggler_busy } or nil
  local tasks = args.dir and (require "agentbox.fs".realpath(args.dir) or args.dir) or nil
  return {
    tasks = args.dir, models = models, n = args.n, group_size = args.group_size, limit = args.limit,
    concurrency = args.concurrency, out = place.out, run_id = place.run_id, resume = args.resume ~= nil,
    retry_errors = args.retry_errors, attempts = args.attempts, max_errors = args.max_errors, quarantine = args.quarantine,
    oversample = args.oversample, min_group = args.min_group, straggler = straggler, group_timeout_s = args.group_timeout_s,
    run_timeout_s = args.run_timeout_s, seed = config:value "run.seed", prepare = preparer(config, args),
    limits = { creating = args.max_creating, commands = args.max_commands, judges = args.max_judges },
    metrics = args.metrics and { listen = args.metrics, token = require "agentbox.sys.os".env "AGENTBOX_TOKEN" } or nil,
    meta = {
      tasks = tasks, model = models.agent.name, identity = identity_of(config), args = remembered(args, command), command = command.name,
    },
  }
end

-- ---------------------------------------------------------------- while it runs

-- Ctrl-C: once no more rollouts are begun, twice those that run are stopped. TERM stops at once.
local function on_signals(run, state, say, name)
  local async, os_ = require "agentbox.async", require "agentbox.sys.os"
  local function interrupted()
    while os_.wait_signal "INT" do
      state.interrupted = (state.interrupted or 0) + 1
      if state.interrupted == 1 and run.state == "running" then
        run:drain "interrupted"
        say(("agentbox: %s: interrupted: %d rollouts are ending; Ctrl-C again stops them"):format(name, run.running))
      else
        run:stop "interrupted"
      end
    end
  end
  return { async.spawn(interrupted), async.spawn(function()
    while os_.wait_signal "TERM" do
      state.interrupted = 2
      run:stop "interrupted"
    end
  end) }
end

local TOLD = { quarantine = true, quota = true, bad_task = true, straggler = true }

local function told(kind, fields)
  local out = require "agentbox.cli._out"
  local subject, name = fields.task_id or fields.slot, kind:gsub("_", " ")
  local msg = tostring(fields.msg or "")
  if msg:sub(1, #name + 2) == name .. ": " then msg = msg:sub(#name + 3) end
  return ("agentbox: %s: %s%s"):format(name, subject and out.line(subject) .. ": " or "", out.line(msg))
end

local function status_of(sum, state)
  if state.interrupted then return 130 end
  local infra = sum.unscored - (sum.by_class.task or 0)
  if sum.failure or sum.scored == 0 and infra > 0 then return 3 end
  if sum.rollouts == 0 and sum.bad_tasks > 0 then return 2 end
  return sum.solved == sum.rollouts and sum.bad_tasks == 0 and not sum.why and 0 or 1
end

local function report(args, run, sum, state, name)
  local out = require "agentbox.cli._out"
  if args.json then return end
  io.stdout:write(("done: %d/%d success → %s\n"):format(sum.solved, sum.rollouts, out.line(run.store.dir or "")))
  io.stdout:write(("%-9s %s\n"):format("run", out.line(run.run_dir)))
  for _, line in ipairs(require "agentbox.cli._summary".lines(sum)) do io.stdout:write(line, "\n") end
  if sum.why or sum.failure then
    io.stderr:write(("agentbox: %s: %s; %d rollouts are saved\n"):format(name,
      state.interrupted and "interrupted" or out.line(sum.why), sum.rollouts))
    io.stderr:write(("Go on with: agentbox %s %s\n"):format(name == "run-dir" and "run-dir --resume" or name, out.line(run.run_dir)))
  end
end

local function view_of(args, run, total)
  local live = not args.json and require "agentbox.sys.os".isatty(2) and require "agentbox.sys.os".env "TERM" ~= "dumb"
  return require(live and "agentbox.cli._live" or "agentbox.cli._progress").new(run, total)
end

local HINTS = {
  busy = "That process runs it; `agentbox ps` shows it. Wait for its end, or stop it.",
  exists = "Go on with it (--resume), or give the new one another --run-id.",
}

local function execute(args, opts, total, command)
  opts.total = total
  local async, json = require "agentbox.async", require "agentbox.json"
  local state, view = {}, nil
  function opts.on_event(kind, fields)
    if args.json then
      local doc = json.object {}
      doc.event, doc.t = kind, require "agentbox.time".now()
      for key, value in pairs(fields) do doc[key] = value end
      io.stdout:write(json.encode(doc), "\n")
      io.stdout:flush()
    elseif TOLD[kind] and view then
      view:say(told(kind, fields))
    end
  end
  local started, err = require "agentbox.runner".start(opts)
  if not started then
    if err.code == "task" or err.code == "config" then return nil, err end
    err.hint = err.hint or HINTS[err.code] or "Make room or permit it there, or name another folder with --out."
    return nil, err
  end
  local run <close> = started
  view = view_of(args, run, total)
  local function say(line) view:say(line) end
  local signals = on_signals(run, state, say, command.name)
  local door
  if command.open then
    door, err = command.open(run, args, opts)
    if not door then return nil, err end
    say(("agentbox: %s: listening on %s"):format(command.name, door.address))
  end
  local _ <close> = door
  while run.state ~= "over" do
    view:paint()
    run:_await(0.5)
  end
  local sum = run:wait()
  while door and not state.interrupted and not door:wait(0.5) do end -- luacheck: ignore 542
  sum.stale_groups = run:summary().stale_groups -- also what became too old after the last rollout
  for _, fiber in ipairs(signals) do fiber:cancel() end
  view:close()
  report(args, run, sum, state, command.name)
  async.yield()
  return status_of(sum, state)
end

local function total_of(args)
  local paths, err = require "agentbox.runner".folder(args.dir)
  if not paths then return nil, err end
  return math.min(#paths, args.limit or math.huge) * (args.n or args.group_size or 1)
end

function M.run(args, command)
  command = command or M.plain
  local parts = require "agentbox.cli._run"
  local fine, config, err
  fine, err = check_numbers(args)
  if not fine then return nil, err end
  config, err = require "agentbox.config".load()
  if not config then return nil, err end
  local place
  if args.resume then
    config, err = config:resolve(args)
    if not config then return nil, err end
    place, err = find_run(args, config, command)
    if not place then return nil, err end
    if command.goes_on then fine, err = command.goes_on(args, place.doc.args) end
    if not fine then return nil, err end
    recall(args, place)
  end
  if not args.dir and not command.open then return usage "run-dir: a folder of tasks is needed" end
  config, err = config:resolve(args)
  if not config then return nil, err end
  if place then
    local same
    same, err = check_same(args, config, place, command.name)
    if not same then return nil, err end
  end
  place = place or { out = config:value "run.out", run_id = args.run_id or require "agentbox.sys.rand".uuid4() }
  local total, models
  if args.dir then
    total, err = total_of(args)
    if not total then return nil, err end
  end
  models, err = parts.roles(config)
  if not models then return nil, err end
  local _ <close> = models
  models.agent, err = parts.model(config)
  if not models.agent then return nil, err end
  local opts = runner_options(args, config, models, place, command)
  if command.ready then command.ready(opts, args) end
  return execute(args, opts, not command.open and total or nil, command)
end

return M
