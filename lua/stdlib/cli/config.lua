--- `agentbox config show`: every setting, its value and where it came from.
local M = {
  name = "config",
  summary = "show the configuration and where it comes from",
}

-- Keys whose values are never printed, wherever they stand.
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

local function text(value)
  if value == nil then return "-" end
  if type(value) == "table" then return require "agentbox.json".encode(value) end
  return tostring(value)
end

-- Sections that no setting of a run stands for; they are shown as the file has them.
local file_only = { "teacher", "students", "models", "generate", "lua_path", "tools" }

local function sections(config)
  local out = {}
  for _, name in ipairs(file_only) do
    local value, err = config:get(name)
    if err then return nil, err end
    if value ~= nil then
      out[#out + 1] = { key = name, value = masked(name, value), origin = "file " .. config.path }
    end
  end
  return out
end

local function print_table(rows)
  local wide, wider = 0, 0
  for _, row in ipairs(rows) do
    wide = math.max(wide, #row.key)
    row.text = text(row.value)
    if #row.text <= 40 then wider = math.max(wider, #row.text) end
  end
  for _, row in ipairs(rows) do
    io.stdout:write(("%-" .. wide .. "s  %-" .. wider .. "s  %s\n"):format(row.key, row.text, row.origin))
  end
end

local function show(args)
  local config, err = require "agentbox.config".load()
  if not config then return nil, err end
  local ok
  ok, err = config:resolve()
  if not ok then return nil, err end
  local rows = config:list()
  for _, row in ipairs(rows) do row.value = masked(leaf(row.key), row.value) end
  local more
  more, err = sections(config)
  if not more then return nil, err end
  table.move(more, 1, #more, #rows + 1, rows)
  if args.json then
    local values = {}
    for _, row in ipairs(rows) do values[row.key] = { value = row.value, origin = row.origin } end
    io.stdout:write(require "agentbox.json".encode({ file = config.path, settings = values }), "\n")
    return 0
  end
  io.stdout:write("file  ", config.path or "none found", "\n")
  print_table(rows)
  return 0
end

M.commands = {
  {
    name = "show", summary = "every setting with its value and its origin; secrets are shown as ***",
    options = { { "--json", "print JSON" } },
    run = show,
  },
}

return M
