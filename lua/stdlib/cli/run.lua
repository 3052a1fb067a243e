--- `agentbox run TASK`: one rollout, saved, with one line about its end.
local M = {
  name = "run",
  summary = "run one task and save its trajectory",
  description = "Runs one rollout of TASK (a folder with a task.json, or the file itself) and saves the "
      .. "trajectory. Prints `status=... reward=... steps=...` and where it was saved.",
  arguments = { { "task", "a task folder or a task file" } },
  options = {
    { "-m --model", "NAME", "a model's name, mock (answers once), scripted:FILE or replay:TRAJ", default = "mock" },
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
    { "--tool", "FILE", "add the tool that FILE defines (repeatable)", repeats = true },
    { "--drop-tool", "NAME", "take this tool away (repeatable)", repeats = true },
    { "--agent", "NAME", "the agent", default = "tool_loop" },
    { "--verifier", "NAME", "score with this verifier instead of the task's" },
    { "--image", "NAME", "sandbox image", default = "host" },
    { "--backend", "NAME", "sandbox backend: native, docker or none" },
    { "--network", "let the sandbox reach the network" },
    { "--cpu", "N", "CPUs of the sandbox", number = true, default = 1 },
    { "--memory-mb", "MB", "memory of the sandbox", integer = true, default = 512 },
    { "-o --out", "DIR", "where trajectories go", default = "trajectories" },
    { "--json", "print the result as one JSON object" },
  },
  epilog = "Exit status: 0 solved, 1 not solved, 2 bad usage or input, 3 infrastructure failed, 130 interrupted.",
}

function M.run(args)
  return require "agentbox.cli._run".run(args)
end

return M
