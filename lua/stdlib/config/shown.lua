--- config/shown.lua: the settings of an invocation as people and records may see them, without a secret.
local M = {}

-- Keys whose values are never shown, wherever they stand.
local hidden = { api_key = true, extra_headers = true }

local function masked(key, value)
  if type(value) == "table" then
    local copy = {}
    for k, v in pairs(value) do
      if hidden[key] or hidden[k] then copy[k] = "***" else copy[k] = masked(k, v) end
    end
    return copy
  end
  if hidden[key] and value ~= nil then return "***" end
  if type(value) == "string" then return (value:gsub("(://)[^/@%s]*@", "%1***@")) end
  return value
end

local function leaf(key)
  return key:match "[^.]*$"
end

-- Sections that no setting of a run stands for; they are shown as the file has them.
local file_only = { "teacher", "students", "models", "generate", "lua_path", "tools" }

---Every setting of a resolved configuration, then the file's other sections.
---@async
---@param config agentbox.Config
---@return { key: string, value: any, origin: string }[]? rows
---@return agentbox.Err? err
function M.rows(config)
  local rows = config:list()
  for _, row in ipairs(rows) do row.value = masked(leaf(row.key), row.value) end
  for _, name in ipairs(file_only) do
    local value, err = config:get(name)
    if err then return nil, err end
    if value ~= nil then
      rows[#rows + 1] = { key = name, value = masked(name, value), origin = "file " .. config.path }
    end
  end
  return rows
end

---The same as one table: { file, settings = { [key] = { value, origin } } }; what has no value is left out.
---@async
---@param config agentbox.Config
---@return { file?: string, settings: table<string, { value: any, origin: string }> }? shown
---@return agentbox.Err? err
function M.effective(config)
  local rows, err = M.rows(config)
  if not rows then return nil, err end
  local settings = {}
  for _, row in ipairs(rows) do
    if row.value ~= nil then settings[row.key] = { value = row.value, origin = row.origin } end
  end
  return { file = config.path, settings = settings }
end

return M
