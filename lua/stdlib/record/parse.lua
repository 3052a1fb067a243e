--- Reads a line back: the engine's own part becomes tables; what came from models, tools and tasks stays JSON text
--- until somebody asks, so that a line with megabytes of log-probs is cheap to open.
local columns = require "agentbox.record.columns"
local err = require "agentbox.err"
local json = require "agentbox.json"
local line_of = require "agentbox.record.line"

local M = {}

-- Members that hold what others named: left as text, their own keys cannot be taken for ours.
local FOREIGN = {
  raw = {
    "m", "tools", "params", "body", "prompt", "out", "lp", "task", "metadata", "verify", "tamper", "components", "scorer",
    "describe", "notes", "sampling", "args", "choice",
  },
}

-- For who looks at the whole and passes it on, or at columns: what no export looks into stays text, too.
local LINE = { raw = table.move(FOREIGN.raw, 1, #FOREIGN.raw, 7, { "nodes", "calls", "tool_runs", "modules", "sandbox", "engine" }) }

local READS = { messages = LINE, columns = LINE, planes = LINE, line = LINE }

local LISTS = { "nodes", "calls", "tool_runs" }

local function bad(msg)
  return nil, err.new("parse", msg)
end

local function is_index(value, below)
  return value == json.null or math.type(value) == "integer" and value >= 0 and value < below
end

-- The call that a packed prompt goes on from; null when it stands by itself.
local function base_of(tokens)
  local prompt = json.is_object(tokens) and tokens.prompt
  if json.type(prompt) ~= "raw" then return json.null end
  local text = prompt:text()
  if text:byte() ~= 123 then return json.null end -- "{"
  local base = tonumber(text:match '^{"base":(%d+),') or prompt:decode().base -- the first is how we write it
  return base == nil and json.null or base
end

-- What of a record stayed text is not looked at.
local function list(line, name) return json.type(line[name]) == "raw" and {} or line[name] end

-- References go backwards, or walking them might never end.
local function bad_reference(line, seen)
  local nodes = seen and seen.n or json.type(line.nodes) == "raw" and math.huge or #line.nodes
  for i, node in ipairs(list(line, "nodes")) do
    if not json.is_object(node) or json.type(node.m) ~= "raw" and not json.is_object(node.m) or not is_index(node.p, i - 1) then
      return ("nodes[%d]"):format(i - 1)
    end
  end
  for i, call in ipairs(list(line, "calls")) do
    if not json.is_object(call) or call.i ~= i - 1 or not is_index(call.leaf or json.null, nodes)
        or not is_index(base_of(call.tokens), i - 1) then
      return ("calls[%d]"):format(i - 1)
    end
  end
  for i, run in ipairs(list(line, "tool_runs")) do
    if not json.is_object(run) or not is_index(run.node, nodes) then return ("tool_runs[%d]"):format(i - 1) end
  end
  return not is_index(line.leaf, nodes) and "leaf" or nil
end

--- Decodes the JSON text of a record, with or without its sum.
---
--- Returns nil, err (`parse`) if it is no record that this version can read.
---@nodiscard
---@param text string
---@param reads? "messages"|"columns"|"planes"|"line"   # what of it is looked at, when it is not everything
---@return table? line
---@return agentbox.Err? err
---@return table? columns       # for who reads columns: the lists stay text
function M.parse(text, reads)
  local line, problem = json.decode(text, READS[reads] or FOREIGN)
  if line == nil then return nil, problem end
  if not json.is_object(line) then return bad "not a JSON object" end
  if line.schema ~= line_of.SCHEMA then
    return bad(("schema %s, expected %s"):format(tostring(line.schema), line_of.SCHEMA))
  end
  line.sum = nil
  for _, name in ipairs(LISTS) do
    if not json.is_array(line[name]) and json.type(line[name]) ~= "raw" then return bad(("%s is not a list"):format(name)) end
  end
  if type(line.stop) ~= "table" or type(line.reward) ~= "table" or type(line.policy) ~= "table" then
    return bad "stop, reward or policy is missing"
  end
  local seen, where = {}, nil
  if reads and reads ~= "line" then seen.columns, where = columns.nodes(line) end
  if reads == "columns" and not where then seen.call_columns, where = columns.calls(line, seen.columns) end
  if reads == "columns" and not where then seen.run_columns, where = columns.runs(line, seen.columns) end
  if reads == "planes" and not where then seen.planes, where = columns.planes(line, seen.columns) end
  where = where or bad_reference(line, seen.columns)
  if where then return bad(where .. " refers to what is not there") end
  return line, nil, seen
end

return M
