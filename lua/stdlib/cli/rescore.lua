--- `agentbox rescore RUN`: judges stored rollouts again, into a run of its own.
local M = {
  name = "rescore",
  summary = "judge stored rollouts again",
  description = "Judges every rollout of RUN with the task's verifier, or another one, and writes a run with the new rewards; RUN stays "
      .. "as it is. Verifiers that look at files need records that kept them: tasks whose artifacts are [\"**\"]. With --model, verifiers "
      .. "find it as the role 'judge'; without, that is models.judge of agentbox.yaml.",
  arguments = { { "run", "a run's folder, or any file of records" } },
  options = {
    { "--tasks", "PATH", "the tasks that were run: a folder, a .jsonl or a .csv (required)" },
    { "-o --out", "DIR", "where the new run goes", default = "trajectories" },
    { "--run-id", "ID", "name of the new run (default: a new one)" },
    { "--verifier", "NAME", "score with this verifier instead of the tasks' own" },
    { "--any-version", "also when a task has changed since" },
    { "-m --model", "NAME", "the model that judges" },
    { "--base-url", "URL", "its server, as in http://127.0.0.1:8000/v1" },
    { "--api-key", "KEY", "its key; better in the environment as OPENAI_API_KEY" },
    { "--image", "NAME", "sandbox image", default = "host" },
    { "--backend", "NAME", "what makes sandboxes: native, docker, podman or none", default = "native" },
    { "--json", "print the result as one JSON object" },
  },
  epilog = "Exit status: 0 every rollout that could be judged has a verdict, 1 not all, 2 bad usage or input, 3 infrastructure failed.",
}

function M.run(args)
  local parts = require "agentbox.cli._run"
  if not args.tasks then return nil, { code = "usage", msg = "rescore: option '--tasks' is required" } end
  local config, err = parts.config(args)
  if not config then return nil, err end
  local sandbox, roles, sum
  sandbox, err = parts.sandbox(config)
  if not sandbox then return nil, err end
  roles, err = parts.roles(config)
  if not roles then return nil, err end
  local _ <close> = roles
  if args.model then
    roles.judge, err = parts.model(config)
    if not roles.judge then return nil, err end
  end
  sum, err = require "agentbox.rescore".run {
    input = args.run, out = args.out or "trajectories", run_id = args.run_id, verifier = args.verifier, tasks = args.tasks,
    sandbox = sandbox, models = roles, any_version = args.any_version,
  }
  if not sum then return nil, err end
  if args.json then
    io.stdout:write(require "agentbox.json".encode(sum), "\n")
  else
    io.stdout:write(("%s: %d rollouts, %d judged, %d of them unscored\n"):format(sum.run_dir, sum.rollouts, sum.judged, sum.failed))
    if sum.first then io.stderr:write("agentbox: rescore: the first: ", require "agentbox.cli._out".line(sum.first), "\n") end
  end
  return sum.failed == 0 and 0 or 1
end

return M
