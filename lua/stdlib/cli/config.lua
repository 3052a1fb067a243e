--- `agentbox config show`: every setting, its value and where it came from.
local M = {
  name = "config",
  summary = "show the configuration and where it comes from",
}

local function text(value)
  if value == nil then return "-" end
  if type(value) == "table" then return require "agentbox.json".encode(value) end
  return tostring(value)
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
  local rows
  rows, err = require "agentbox.config.shown".rows(config)
  if not rows then return nil, err end
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
