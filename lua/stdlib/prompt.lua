--- prompt.lua: the messages a rollout begins with. One file per system prompt in prompts/.
local agent = require "agentbox.agent"
local err = require "agentbox.err"
local recent = require "agentbox.recent"

local M = {}

local known_prompt = recent.new(32, 64 << 10)

--- Only `{workspace_dir}` is replaced; every other brace is text.
---@param template string
---@param workspace string
---@return string
function M.fill(template, workspace)
  return known_prompt((template:gsub("{workspace_dir}", (workspace:gsub("%%", "%%%%")))))
end

local function template_of(name)
  local module = name:find(".", 1, true) and name or "agentbox.prompts." .. name
  local ok, found = pcall(require, module)
  if not ok then return nil, err.new("config", "unknown prompt: " .. name) end
  if type(found) ~= "table" or type(found.text) ~= "string" then
    return nil, err.new("config", module .. " must return { text = ... }")
  end
  return found.text
end

--- The system prompt and the task, as messages.
---@param opts { task: agentbox.Task, workspace: string, system_prompt?: string, name?: string }
---@return agentbox.Message[]?
---@return agentbox.Err? err
function M.build(opts)
  local template = opts.system_prompt
  if not template or template == "" then
    local problem
    template, problem = template_of(opts.name or "structured")
    if not template then return nil, problem end
  end
  local system = M.fill(template, opts.workspace)
  local extra = opts.task.system_prompt_extra
  if extra and extra:find("%S") then
    system = ("%s\n\n%s"):format(system:gsub("%s+$", ""), extra:match("^%s*(.-)%s*$"))
  end
  return { agent.message("system", system), agent.message("user", opts.task.description) }
end

return M
