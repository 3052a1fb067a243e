--- `agentbox serve RUN`: a run whose groups a trainer in another process takes.
local run_dir = require "agentbox.cli.run_dir"

local M = {
  name = "serve",
  summary = "run tasks for a trainer that takes the groups",
  description = "Runs tasks in groups, of a folder (--tasks), sent by the trainer, or both, and gives the groups to a "
      .. "trainer over HTTP (docs/serve.md). RUN is the run's folder: it is begun when it is not there, else it goes "
      .. "on, and what was not acknowledged is given out again. It is over when the trainer has said that no more "
      .. "tasks come and has acknowledged every group. Beyond the loopback a token is needed: AGENTBOX_TOKEN. Ctrl-C "
      .. "once lets the running rollouts end.",
  arguments = { { "run", "the run's folder" } },
  epilog = run_dir.epilog,
}

local own = {
  { "--listen", "ADDRESS", "where the trainer finds it: ADDRESS:PORT or unix:PATH", default = "127.0.0.1:7000" },
  { "--tasks", "DIR", "a folder of tasks to begin with" },
  { "--epochs", "N", "go through --tasks N times: N groups of each task", integer = true, default = 1 },
  { "--last", "no more tasks come than those of --tasks" },
  { "--group-size", "N", "rollouts of each task; a run that goes on keeps its own", integer = true, default = 8 },
  { "--max-lead", "N", "closed groups that may wait for an acknowledgement", integer = true, default = 8 },
  { "--weights", "N", "the version of the weights to begin with", integer = true },
  { "--max-staleness", "N", "versions that a rollout may be behind", integer = true },
  { "--keep-stale", "give out groups that became too old while they waited, marked" },
  { "--restart-calls", "new weights end the calls in flight, which are sent again" },
}

-- The place of a run is RUN, and its numbers are at the door.
local NOT_HERE = {
  ["--n"] = true, ["--group-size"] = true, ["--resume"] = true, ["--run-id"] = true, ["--metrics"] = true,
  ["-o --out"] = true, ["--limit"] = true,
}

local function options()
  local list = table.move(own, 1, #own, 1, {})
  for _, option in ipairs(run_dir.options) do
    if not NOT_HERE[option[1]] then list[#list + 1] = option end
  end
  return list
end

M.options = options()

local GROUP_SIZE = 8

-- A trainer compares the rewards of a task's group with each other, and gets one such group: not a second one of what a larger
-- group would have had besides.
local function goes_on(args, before)
  local size = before.group_size or GROUP_SIZE
  if not args.group_size or args.group_size == size then return true end
  return nil, {
    code = "usage", hint = "Leave --group-size out to go on, or begin another run.",
    msg = ("serve: the run's groups have %d rollouts, not %d"):format(size, args.group_size),
  }
end

local LEAST = { group_size = 2, max_lead = 1, weights = 0, max_staleness = 0, epochs = 1 }

-- The tasks of a folder, so many times.
local function passes(dir, n)
  local once, list = assert(require "agentbox.runner".folder(dir)), {}
  for _ = 1, n do table.move(once, 1, #once, #list + 1, list) end
  return list
end

-- The run's tasks are an inbox, with those of the folder first.
local function ready(opts, args)
  opts.tasks = require "agentbox.serve".inbox(args.dir and passes(args.dir, args.epochs or 1) or nil)
  opts.tasks.ended = args.last == true
  opts.n, opts.group_size = args.group_size or GROUP_SIZE, nil
  opts.max_lead, opts.max_staleness = args.max_lead or 8, args.max_staleness
  opts.policy = args.weights and { version = args.weights } or nil
  opts.inflight = args.restart_calls and "restart" or "finish"
end

local function open(run, args, opts)
  return run:serve {
    listen = args.listen or "127.0.0.1:7000", token = require "agentbox.sys.os".env "AGENTBOX_TOKEN",
    inbox = opts.tasks, stale = args.keep_stale and "keep" or "drop",
  }
end

function M.run(args)
  for name, least in pairs(LEAST) do
    if args[name] and args[name] < least then
      local flag = name:gsub("_", "-")
      return nil, { code = "usage", msg = ("serve: --%s must be at least %d, not %d"):format(flag, least, args[name]) }
    end
  end
  local fs, path = require "agentbox.fs", args.run:gsub("(.)/+$", "%1")
  args.run = nil
  if fs.exists(path .. "/run.json") then
    args.resume = path
  else
    args.out, args.run_id = path:match "^(.*)/[^/]*$" or ".", path:match "[^/]*$"
  end
  args.dir, args.tasks = args.tasks, nil
  return run_dir.run(args, { name = "serve", options = M.options, ready = ready, open = open, goes_on = goes_on })
end

return M
