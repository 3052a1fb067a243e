--- suite.json: AgentBox's fields with their defaults, and what this engine keeps in `metadata.agentbox`.
---
--- Numbers that AgentBox declares as floats are floats here, so that the text of its hash has them as such. Keys that
--- nobody knows are told and kept out, as AgentBox does.
local err = require "agentbox.err"
local json = require "agentbox.json"
local schema = require "agentbox.schema"

local M = {}

local F, I, B, S, NUMBER = "float", "integer", "boolean", "string", "float?"

-- { name, kind, default }; a kind that ends in ? may be null.
local LIMITS = {
  { "cpu_count", NUMBER, 1.0 }, { "memory_mb", "integer?", 512 }, { "pids_limit", "integer?", 256 },
  { "network_disabled", B, true }, { "memswap_mb", "integer?" },
}
local SANDBOX = {
  { "image", S, "python:3.12-slim-bookworm" }, { "workspace_dir", S, "/workspace" }, { "working_dir", S, "/workspace" },
  { "env", "strings" }, { "limits", LIMITS }, { "auto_pull", B, true }, { "auto_remove", B, true },
  { "keep_on_failure", B, false }, { "labels", "strings" }, { "command", "list", { "sleep", "infinity" } },
  { "ensure_pytest", B, true },
}
local AGENT = {
  { "tools", "tools", "structured" }, { "custom_tools", "list" }, { "builtins", B, true }, { "system_prompt", "string?" },
  { "max_steps", I, 40 }, { "step_timeout_s", F, 120.0 }, { "episode_timeout_s", F, 900.0 },
  { "parallel_tool_calls", B, true }, { "drop_tools", "list" }, { "drop_tools_prob", F, 0.0 },
  { "include_thinking", B, true }, { "step_penalty", F, 0.0 }, { "timeout_penalty", F, 0.0 }, { "max_steps_penalty", F, 0.0 },
}
local CHECK = {
  { "name", S }, { "command", S }, { "success_exit_code", I, 0 }, { "timeout_s", F, 60.0 }, { "required", B, true },
}
local SCORING = {
  { "primary", S, "verifier" }, { "require_seed_ok", B, true }, { "setup_checks", { each = CHECK } }, { "track_steps", B, true },
  { "track_duration", B, true }, { "enable_ruler", B, false }, { "ruler_group_size", I, 4 },
}
local MANIFEST = {
  { "schema_version", S, "1" }, { "suite_id", S }, { "name", S }, { "description", S, "" }, { "version", S, "1.0.0" },
  { "tasks_path", S, "tasks" }, { "sandbox", SANDBOX }, { "agent", AGENT }, { "n_per_task", I, 1 }, { "concurrency", I, 8 },
  { "seed", "integer?", 42 }, { "scoring", SCORING }, { "content_hash", "string?" }, { "created_at", "string?" },
  { "metadata", "map" },
}

local function is_list(value) return type(value) == "table" and (json.is_array(value) or value[1] ~= nil) end

local function strings(value, list)
  if type(value) ~= "table" or is_list(value) ~= list and next(value) ~= nil then return false end
  for _, item in pairs(value) do
    if type(item) ~= "string" then return false end
  end
  return true
end

local convert = {
  float = function(v) return type(v) == "number" and v * 1.0 or nil end,
  integer = function(v) return type(v) == "number" and math.tointeger(v) or nil end,
  boolean = function(v) if type(v) == "boolean" then return v end end,
  string = function(v) return type(v) == "string" and v or nil end,
  strings = function(v) return strings(v, false) and v or nil end,
  list = function(v) return strings(v, true) and json.array(v) or nil end,
  map = function(v) return type(v) == "table" and (not is_list(v) or next(v) == nil) and json.object(v) or nil end,
  tools = function(v)
    if type(v) == "string" then return v end
    return strings(v, true) and json.array(v) or nil
  end,
}

local function default_of(field)
  local kind, value = field[2], field[3]
  if kind == "list" then return json.array(table.move(value or {}, 1, #(value or {}), 1, {})) end
  if kind == "strings" or kind == "map" then return json.object {} end
  if value == nil and type(kind) == "string" and kind:find "%?$" then return json.null end
  return value
end

local read_record

local function read_each(kind, value, where, told)
  local out = json.array {}
  if value == nil then return out end
  if not is_list(value) then return nil, where .. ": must be a list" end
  for i, item in ipairs(value) do
    local one, problem = read_record(kind.each, item, ("%s[%d]"):format(where, i), told)
    if not one then return nil, problem end
    out[i] = one
  end
  return out
end

local function read_field(field, value, where, told)
  local kind = field[2]
  if type(kind) == "table" then
    if kind.each then return read_each(kind, value, where, told) end
    return read_record(kind, value == nil and {} or value, where, told)
  end
  if value == nil or value == json.null and kind:find "%?$" then
    local default = default_of(field)
    if value == json.null then default = json.null end
    if default == nil then return nil, where .. ": is missing" end
    return default
  end
  local converted = convert[kind:gsub("%?$", "")](value)
  if converted == nil then return nil, ("%s: must be %s, is %s"):format(where, kind:gsub("%?$", " or null"), schema.word(value)) end
  return converted
end

function read_record(fields, value, where, told)
  if type(value) ~= "table" or is_list(value) and next(value) ~= nil then return nil, where .. ": must be an object" end
  local out, known = json.object {}, {}
  for _, field in ipairs(fields) do
    local name = field[1]
    known[name] = true
    local problem
    out[name], problem = read_field(field, value[name], where == "" and name or where .. "." .. name, told)
    if problem then return nil, problem end
  end
  for key in pairs(value) do
    if not known[key] then told[#told + 1] = (where == "" and "" or where .. ".") .. tostring(key) end
  end
  return out
end

local POSITIVE = { "n_per_task", "concurrency" }

local function problem_of(manifest)
  for _, name in ipairs(POSITIVE) do
    if manifest[name] < 1 then return ("%s: must be at least 1, is %d"):format(name, manifest[name]) end
  end
  if manifest.schema_version ~= "1" then return "schema_version: only 1 is known, is " .. manifest.schema_version end
  if manifest.suite_id == "" then return "suite_id: is empty" end
  local path = manifest.tasks_path
  if path == "" or path:sub(1, 1) == "/" or ("/" .. path .. "/"):find("/%.%./") then
    return "tasks_path: must be a folder inside the suite, is " .. path
  end
end

--- Checks a decoded manifest and fills in the defaults. Tool dropping and custom tools are taken out, as on every load:
--- a suite asks the same of all.
---@param raw table
---@param where string
---@return table? manifest
---@return agentbox.Err? err   # code `config`
---@return string[]? unknown   # keys that were left out
function M.check(raw, where)
  local told = {}
  local manifest, problem = read_record(MANIFEST, raw, "", told)
  problem = problem or problem_of(manifest)
  if problem then return nil, err.new("config", where .. ": " .. problem) end
  manifest.agent.custom_tools, manifest.agent.drop_tools_prob = json.array {}, 0.0
  return manifest, nil, told
end

--- The text of suite.json.
---@param manifest table
---@return string
function M.text(manifest) return json.encode(manifest, { indent = 2 }) .. "\n" end

--- What this engine keeps in the manifest: `hash` and `parts` of the seal, `prices`.
---@param manifest table
---@return table
function M.own(manifest)
  local own = manifest.metadata.agentbox
  return json.is_object(own) and own or {}
end

return M
