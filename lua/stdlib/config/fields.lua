--- The closed list of what a configuration file may hold, by section.
--
-- A field is a type name: string, secret, number, integer, boolean, map, list, any; or a table of fields.
local M = {}

local limits = { cpu_count = "number", memory_mb = "integer", pids_limit = "integer", disk_mb = "integer" }

-- The reference's own sections, field for field.
local endpoint = {
  id = "string", model = "string", base_url = "string", api_key = "secret", temperature = "number",
  max_tokens = "integer", timeout_s = "number", extra_body = "map",
}

local model = {
  model = "string", base_url = "string", base_urls = "list", api_key = "secret", temperature = "number",
  top_p = "number", max_tokens = "integer", seed = "any", timeout_s = "number", stream = "boolean",
  tokens = "string", limit = "integer", requests_per_minute = "number", tokens_per_minute = "number",
  target_latency_s = "number", abort_path = "string", extra_headers = "map", extra_body = "map",
}

---@type table<string, any>
M.sections = {
  teacher = endpoint,
  judge = endpoint,
  students = { each = endpoint },
  models = { each = endpoint, by_name = model },
  generate = {
    concurrency = "integer", docker_concurrency = "integer", llm_judge = "boolean", min_score = "number",
    use_dspy = "boolean", target = "integer", max_tokens = "integer", votes = "integer",
  },
  model = model,
  agent = {
    name = "string", tools = "any", drop_tools = "list", drop_tools_prob = "number", system_prompt = "string",
    max_steps = "integer", step_timeout_s = "number", episode_timeout_s = "number",
    parallel_tool_calls = "boolean", include_thinking = "boolean",
    step_penalty = "number", timeout_penalty = "number", max_steps_penalty = "number",
  },
  sandbox = {
    backend = "string", image = "string", network = "any", env = "map", workspace_dir = "string", limits = limits,
    runtime = "string", read_only = "boolean", pool = "integer",
  },
  run = { out = "string", seed = "integer", verifier = "string" },
  prices = "map",
  lua_path = "paths",
  tools = "paths",
}

---Settings of one run: where a value may come from, strongest first: flag, task, environment, file, default.
---`key` is its place in the file; `flag` its name on the command line; `task` its place in task.json; `min` the
---smallest number that means anything.
---@type { key: string, min?: number, flag?: string, task?: string, env?: string[], default?: any, secret?: boolean }[]
M.settings = {
  { key = "model.model", flag = "model", env = { "AGENTBOX_MODEL" }, default = "mock" },
  { key = "model.base_url", flag = "base_url", env = { "AGENTBOX_BASE_URL", "OPENAI_BASE_URL" } },
  { key = "model.base_urls" },
  { key = "model.api_key", flag = "api_key", env = { "AGENTBOX_API_KEY", "OPENAI_API_KEY" }, secret = true },
  { key = "model.temperature", min = 0, flag = "temperature", default = 0.7 },
  { key = "model.top_p", min = 0, flag = "top_p" },
  { key = "model.max_tokens", min = 1, flag = "max_tokens", default = 4096 },
  { key = "model.seed" },
  { key = "model.timeout_s", min = 0, default = 120 },
  { key = "model.stream", flag = "stream" },
  { key = "model.tokens" },
  { key = "model.limit", min = 1 },
  { key = "model.requests_per_minute", min = 0.001 },
  { key = "model.tokens_per_minute", min = 1 },
  { key = "model.target_latency_s", min = 0.001 },
  { key = "model.abort_path" },
  { key = "model.extra_headers" },
  { key = "model.extra_body" },
  { key = "agent.name", flag = "agent", env = { "AGENTBOX_AGENT" }, default = "tool_loop" },
  { key = "agent.tools", flag = "tools", task = "allowed_tools", env = { "AGENTBOX_TOOLS" }, default = "structured" },
  { key = "agent.drop_tools", flag = "drop_tool" },
  { key = "agent.drop_tools_prob", min = 0 },
  { key = "agent.system_prompt" },
  { key = "agent.max_steps", min = 0, flag = "max_steps", task = "max_steps", default = 40 },
  { key = "agent.step_timeout_s", min = 0, default = 120 },
  { key = "agent.episode_timeout_s", min = 0, flag = "timeout_s", default = 900 },
  { key = "agent.parallel_tool_calls", default = true },
  { key = "agent.include_thinking", default = true },
  { key = "agent.step_penalty", default = 0 },
  { key = "agent.timeout_penalty", default = 0 },
  { key = "agent.max_steps_penalty", default = 0 },
  { key = "sandbox.backend", flag = "backend", env = { "AGENTBOX_BACKEND" }, default = "native" },
  { key = "sandbox.image", flag = "image", task = "image", env = { "AGENTBOX_IMAGE" }, default = "host" },
  { key = "sandbox.network", flag = "network", task = "network", default = "none" },
  { key = "sandbox.env", task = "env" },
  { key = "sandbox.runtime" },
  { key = "sandbox.read_only" },
  { key = "sandbox.pool", min = 0 },
  { key = "sandbox.workspace_dir", default = "/workspace" },
  { key = "sandbox.limits.cpu_count", min = 0.01, flag = "cpu", task = "limits.cpu_count", default = 1 },
  { key = "sandbox.limits.memory_mb", min = 1, flag = "memory_mb", task = "limits.memory_mb", default = 512 },
  { key = "sandbox.limits.pids_limit", min = 2, task = "limits.pids_limit", default = 256 },
  { key = "sandbox.limits.disk_mb", min = 1, task = "limits.disk_mb", default = 1024 },
  { key = "run.out", flag = "out", env = { "AGENTBOX_OUT" }, default = "trajectories" },
  { key = "run.seed", flag = "seed", env = { "AGENTBOX_SEED" } },
  { key = "run.verifier", flag = "verifier" },
}

return M
