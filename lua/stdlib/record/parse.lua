--- Reads a line back: the engine's own part becomes tables; what came from models, tools and tasks stays JSON text
--- until somebody asks, so that a line with megabytes of log-probs is cheap to open.
local err = require "agentbox.err"
local json = require "agentbox.json"
local line_of = require "agentbox.record.line"

local M = {}

-- Members that hold what others named: left as text, their own keys cannot be taken for ours.
local FOREIGN = {
  raw = {
    "m", "tools", "params", "body", "tokens", "task", "metadata", "verify", "tamper", "components", "scorer",
    "describe", "notes", "sampling", "args", "choice",
  },
}
local PLANES = { raw = { "prompt", "out", "lp" } }

local LISTS = { "nodes", "calls", "tool_runs" }

local function bad(msg)
  return nil, err.new("parse", msg)
end

--- Decodes the JSON text of a record.
---
--- Returns nil, err (`parse`) if it is no record that this version can read.
---@nodiscard
---@param text string
---@return table? line
---@return agentbox.Err? err
function M.parse(text)
  local line, problem = json.decode(text, FOREIGN)
  if line == nil then return nil, problem end
  if not json.is_object(line) then return bad "not a JSON object" end
  if line.schema ~= line_of.SCHEMA then
    return bad(("schema %s, expected %s"):format(tostring(line.schema), line_of.SCHEMA))
  end
  for _, name in ipairs(LISTS) do
    if not json.is_array(line[name]) then return bad(("%s is not a list"):format(name)) end
  end
  if type(line.stop) ~= "table" or type(line.reward) ~= "table" or type(line.policy) ~= "table" then
    return bad "stop, reward or policy is missing"
  end
  for _, call in ipairs(line.calls) do
    if json.type(call.tokens) == "raw" then call.tokens = json.decode(call.tokens:text(), PLANES) end
  end
  return line
end

return M
