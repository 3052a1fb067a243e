--- The text whose SHA-256 is AgentBox's `content_hash`, byte for byte: keys sorted at every level, no blanks, nothing
--- escaped that need not be, numbers as Python prints them.
local hash = require "agentbox.sys.hash"
local json = require "agentbox.json"
local schema = require "agentbox.schema"

local M = {}

--- A number as Python's repr writes a float: the fewest digits that give it back, an exponent below 1e-4 and from 1e16 on.
---@param x number
---@return string
function M.float(x)
  x = x * 1.0 -- not + 0.0, which takes the sign from -0.0
  if x == 0 then return 1 / x < 0 and "-0.0" or "0.0" end
  local text
  for digits = 1, 17 do
    text = ("%." .. digits - 1 .. "e"):format(x)
    if tonumber(text) == x then break end
  end
  local sign, first, rest, exponent = text:match "^(-?)(%d)%.?(%d*)e([+-]%d+)$"
  local digits, power = first .. rest, tonumber(exponent)
  if power < -4 or power >= 16 then
    local fraction = #rest > 0 and "." .. rest or ""
    return ("%s%s%se%s%02d"):format(sign, first, fraction, power < 0 and "-" or "+", math.abs(power))
  end
  if power < 0 then return sign .. "0." .. ("0"):rep(-power - 1) .. digits end
  if #digits <= power + 1 then return sign .. digits .. ("0"):rep(power + 1 - #digits) .. ".0" end
  return sign .. digits:sub(1, power + 1) .. "." .. digits:sub(power + 2)
end

local write

local function write_object(out, value)
  local keys = {}
  for key in pairs(value) do keys[#keys + 1] = tostring(key) end
  table.sort(keys)
  out[#out + 1] = "{"
  for i, key in ipairs(keys) do
    if i > 1 then out[#out + 1] = "," end
    out[#out + 1] = json.encode(key)
    out[#out + 1] = ":"
    write(out, value[key])
  end
  out[#out + 1] = "}"
end

local function write_array(out, value)
  out[#out + 1] = "["
  for i = 1, #value do
    if i > 1 then out[#out + 1] = "," end
    write(out, value[i])
  end
  out[#out + 1] = "]"
end

function write(out, value)
  if value == nil or value == json.null then
    out[#out + 1] = "null"
  elseif math.type(value) == "float" then
    out[#out + 1] = M.float(value)
  elseif type(value) == "table" then
    if json.is_array(value) or value[1] ~= nil then write_array(out, value) else write_object(out, value) end
  elseif type(value) == "string" then
    out[#out + 1] = json.encode(value)
  else
    out[#out + 1] = tostring(value)
  end
end

--- Any JSON value as that text.
---@param value any
---@return string
function M.text(value)
  local out = {}
  write(out, value)
  return table.concat(out)
end

-- AgentBox reads files as UTF-8 text. One that is not has no place there; its hash stands for it.
local function file_text(file, as_text)
  if not utf8.len(file.bytes) then return "sha256:" .. hash.sha256(file.bytes) end
  if not as_text then return file.bytes end
  return (file.bytes:gsub("\r\n", "\n"):gsub("\r", "\n"))
end

local function float(value) return value * 1.0 end

local function verifier_of(spec)
  local out = json.object {}
  out.type, out.command, out.path = spec.type, spec.command or json.null, spec.path or json.null
  out.success_exit_code, out.timeout_s = spec.success_exit_code, float(spec.timeout_s)
  out.reward_success, out.reward_failure = float(spec.reward_success), float(spec.reward_failure)
  out.parse_stdout = spec.parse_stdout
  return out
end

local function task_of(task, as_text)
  local out, files = json.object {}, json.object {}
  for _, path in ipairs(schema.names(task.files)) do files[path] = file_text(task.files[path], as_text and as_text(task, path)) end
  out.task_id, out.description, out.starter_files = task.task_id, task.description, files
  out.setup_commands, out.verifier = json.array(task.setup_commands), verifier_of(task.verifier)
  out.metadata, out.system_prompt_extra = task.metadata, task.system_prompt_extra or json.null
  out.allowed_tools = task.allowed_tools and json.array(task.allowed_tools) or json.null
  out.max_steps = task.max_steps or json.null
  return out
end

--- What AgentBox hashes of a suite.
---@param manifest table          # as manifest.read gives it
---@param tasks agentbox.Task[]
---@param as_text? fun(task: agentbox.Task, path: string): boolean   # files whose line ends Python's text mode makes "\n"
---@return string
function M.payload(manifest, tasks, as_text)
  local sorted = table.move(tasks, 1, #tasks, 1, {})
  table.sort(sorted, function(a, b) return a.task_id < b.task_id end)
  local list = json.array {}
  for i, task in ipairs(sorted) do list[i] = task_of(task, as_text) end
  local agent = json.object {}
  for key, value in pairs(manifest.agent) do
    if key ~= "custom_tools" then agent[key] = value end
  end
  local config = json.object {}
  for _, key in ipairs { "suite_id", "version", "sandbox", "n_per_task", "seed", "scoring" } do config[key] = manifest[key] end
  config.agent = agent
  local whole = json.object {}
  whole.config, whole.tasks = config, list
  return M.text(whole)
end

--- AgentBox's hash of a suite.
---@param manifest table
---@param tasks agentbox.Task[]
---@param as_text? fun(task: agentbox.Task, path: string): boolean
---@return string   # 64 digits
function M.content_hash(manifest, tasks, as_text) return hash.sha256(M.payload(manifest, tasks, as_text)) end

return M
