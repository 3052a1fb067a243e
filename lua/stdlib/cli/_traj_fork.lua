--- `agentbox traj fork PATH`: goes on from a turn of a stored trajectory, several times.
local M = {}

local infra = { sandbox = true, model_server = true, engine = true, verifier = true }

local function check(args)
  if not args.task then return "option '--task' is required" end
  if not args.turn or args.turn < 0 then return "option '--turn' is required: 0 or more" end
  args.n = args.n or 1
  if args.n < 1 or args.n > 10000 then return "--n must be from 1 to 10000" end
end

local function options(args, task, model, config)
  local parts = require "agentbox.cli._run"
  local agent, err = parts.agent(config, args)
  if not agent then return nil, err end
  local sandbox
  sandbox, err = parts.sandbox(config)
  if not sandbox then return nil, err end
  return {
    task = task, model = model, agent = agent, sandbox = sandbox, verifier = config:value "run.verifier",
    seed = config:value "run.seed", run_id = require "agentbox.sys.rand".uuid4(),
    from = { traj = args.path, turn = args.turn },
  }
end

local function report(args, t, stored)
  local out = require "agentbox.cli._out"
  if args.json then
    io.stdout:write(require "agentbox.json".encode {
      id = t.id, run_id = t.run_id, status = t.final_status, scored = t.scored, reward = t.reward,
      stop_reason = t.stop_reason, parent = t.metadata.parent, saved = stored.json,
    }, "\n")
  else
    io.stdout:write(("%s status=%s reward=%s steps=%d\n"):format(out.line(t.id), t.final_status, out.number(t.reward),
      t.metrics.steps or 0))
    io.stdout:write("saved ", stored.json, "\n")
  end
  if t.error then io.stderr:write("agentbox: traj fork: ", out.line(tostring(t.error)), "\n") end
end

--- 3 when one could not be judged, 0 when one is solved, else 1.
local function status_of(kids)
  local status = 1
  for _, kid in ipairs(kids) do
    if kid.traj.final_status == "error" and infra[kid.traj.failure_class] then return 3 end
    if kid.traj.final_status == "success" then status = 0 end
  end
  return status
end

local function finish(args, opts, config)
  local kids <close>, err = require "agentbox.rollout".forks(opts, args.n)
  if not kids then return nil, { code = err.code == "sandbox" and "sandbox" or "config", msg = err.msg } end
  local store, problem = require "agentbox.store".open(config:value "run.out", {
    run_id = opts.run_id, meta = { command = "traj fork", parent = args.path, turn = args.turn },
  })
  if not store then return nil, problem end
  local closed <close> = setmetatable({}, { __close = function() store:close() end }) -- luacheck: ignore
  local unsaved
  require "agentbox.async".each(kids, function(kid)
    local t = kid:finish()
    local stored, wrong = store:append(t)
    if stored then report(args, t, stored) else unsaved = wrong end
  end, { limit = 8 })
  if unsaved then return nil, unsaved end
  return status_of(kids)
end

---@async
---@param args table
---@return integer? status
---@return table? err
function M.run(args)
  local wrong_use = check(args)
  if wrong_use then return nil, { code = "usage", msg = "traj fork: " .. wrong_use } end
  local parts = require "agentbox.cli._run"
  local task, err = require "agentbox.task".load(args.task)
  if not task then return nil, err end
  local config
  config, err = parts.config(args, task)
  if not config then return nil, err end
  local model <close>, wrong = parts.model(config)
  if not model then return nil, wrong end
  local opts
  opts, err = options(args, task, model, config)
  if not opts then return nil, err end
  return finish(args, opts, config)
end

return M
