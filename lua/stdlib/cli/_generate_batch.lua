--- `agentbox generate one`, `batch`, `vary` and `evolve`.
local clean = require "agentbox.cli._out".line
local setup = require "agentbox.cli._generate_setup"

local M = {}

local function line_of(line)
  local id = line.task_id and " " .. clean(line.task_id) or ""
  if line.accepted then return ("OK   %d%s"):format(line.index, id) end
  return ("FAIL %d%s: %s: %s"):format(line.index, id, line.stage, clean(line.reason))
end

local function report(args, run)
  local sum = run:summary()
  for _, bad in ipairs(sum.bad) do io.stderr:write("agentbox: generate: not counted: ", clean(bad), "\n") end
  if args.json then
    io.stdout:write(require "agentbox.json".encode(sum, { sorted = true }), "\n")
  else
    io.stdout:write(("generated %d/%d → %s\n"):format(sum.accepted, sum.target, clean(args.out)))
  end
  if sum.why and sum.accepted < sum.target then io.stderr:write("agentbox: generate: ", clean(sum.why), "\n") end
  if sum.accepted >= sum.target then return 0 end
  local failure = run.failure
  return failure and failure.code ~= "limit" and 3 or 1
end

local function start(args, config, factory)
  local target, concurrency, boxes, err
  target, err = setup.setting(args, "target", config, "generate.target", 20)
  if not err then concurrency, err = setup.setting(args, "concurrency", config, "generate.concurrency", 8) end
  if not err then boxes, err = setup.setting(args, "docker_concurrency", config, "generate.docker_concurrency", 8) end
  if err then return nil, err end
  for name, value in pairs { target = target, concurrency = concurrency, ["docker-concurrency"] = boxes } do
    if value < 1 then return setup.usage(("--%s must be at least 1"):format(name)) end
  end
  local prices, bad = setup.prices(args)
  if bad then return setup.usage(bad) end
  return factory:start {
    target = target, concurrency = concurrency, sandbox_concurrency = boxes, out = args.out, max_rounds = args.max_rounds or 12,
    caps = setup.caps(args), prices = prices,
    on_end = not args.json and function(line) io.stdout:write(line_of(line), "\n") io.stdout:flush() end or nil,
  }
end

---@async
---@param args table
---@param more? { parents: agentbox.Task[], how: "vary"|"evolve" }
---@return integer? status
---@return agentbox.Err? err
function M.batch(args, more)
  args.out = args.out or setup.OUT
  local config, err = require "agentbox.config".load()
  if not config then return nil, err end
  local factory
  factory, err = setup.pipeline(args, config, more)
  if not factory then return nil, err end
  local run <close>, failed = start(args, config, factory) -- luacheck: ignore
  if not run then return nil, failed end
  while run.results:take() do end -- luacheck: ignore
  return report(args, run)
end

---@async
---@param args table
---@return integer? status
---@return agentbox.Err? err
function M.one(args)
  args.out = args.out or setup.OUT
  local stats, err = require "agentbox.generate".stats(args.out)
  if not stats then return nil, err end
  args.target, args.concurrency, args.docker_concurrency = stats.accepted + 1, 1, 1
  args.max_rounds = math.max(1, (stats.tried + (args.max_retries or 2) + 1) / args.target)
  return M.batch(args)
end

---`vary` and `evolve`: a batch whose candidates come from tasks that exist.
---@param how "vary"|"evolve"
---@return fun(args: table): integer?, agentbox.Err?
function M.from(how)
  return function(args)
    local task_, fs = require "agentbox.task", require "agentbox.fs"
    local tasks, err = task_.dir(args.tasks)
    if err and (fs.stat(args.tasks) or {}).type == "file" then
      tasks, err = task_.load(args.tasks)
      tasks = tasks and { tasks }
    end
    if not tasks then return nil, err end
    if #tasks == 0 then return setup.usage("no tasks in " .. args.tasks) end
    if not args.domain then args.domain = tasks[1].metadata.language end
    return M.batch(args, { parents = tasks, how = how })
  end
end

return M
