--- The attempts as a table (RFC 4180): a line each, with what masks it.
local attempts = require "agentbox.suite.attempts"
local integrity = require "agentbox.suite.integrity"

local M = {}

-- Ids are whatever their makers wrote: one that a spreadsheet would take for a formula gets an apostrophe before it.
local function cell(value)
  if value == nil then return "" end
  if type(value) == "boolean" then return value and "1" or "0" end
  if math.type(value) == "float" then return ("%.17g"):format(value) end
  if math.type(value) == "integer" then return tostring(value) end
  local text = value:find "^[=+@\t\r-]" and "'" .. value or value
  if text:find '[",\r\n]' or text:find "^ " or text:find " $" then return '"' .. text:gsub('"', '""') .. '"' end
  return text
end

--- Whether an attempt may be used without somebody having looked at it: 1 scored and nothing suspicious, else 0.
---@param row agentbox.Attempt
---@return 0|1
function M.mask(row) return row.scored and not row.suspicious and 1 or 0 end

local function field(name, key) return { name, function(row) return row[key or name] end } end
local function tokens(name, key) return { name, function(row) return row.told and row[key] or nil end } end

local function columns()
  local out = {}
  for _, name in ipairs { "model", "task", "index", "attempt", "id", "scored", "success", "reward" } do out[#out + 1] = field(name) end
  out[#out + 1] = { "mask", M.mask }
  for _, name in ipairs { "status", "stop", "class", "steps", "tool_calls" } do out[#out + 1] = field(name) end
  out[#out + 1] = field("model_calls", "calls")
  for _, name in ipairs { "prompt", "cached", "completion" } do out[#out + 1] = tokens(name .. "_tokens", name) end
  out[#out + 1] = field "duration_s"
  for _, part in ipairs(attempts.PARTS) do out[#out + 1] = { part .. "_ms", function(row) return row.timing[part] end } end
  out[#out + 1] = field "total_ms"
  for _, name in ipairs(integrity.MARKS) do out[#out + 1] = { name, function(row) return row.marks[name] == true end } end
  out[#out + 1] = field "path"
  return out
end

--- The table of all students.
---@param all agentbox.Attempt[][]
---@return string
function M.text(all)
  local list, names, out = columns(), {}, {}
  for i, column in ipairs(list) do names[i] = column[1] end
  out[1] = table.concat(names, ",")
  for _, rows in ipairs(all) do
    for _, row in ipairs(rows) do
      local cells = {}
      for i, column in ipairs(list) do cells[i] = cell(column[2](row)) end
      out[#out + 1] = table.concat(cells, ",")
    end
  end
  return table.concat(out, "\r\n") .. "\r\n"
end

return M
