--- What the agent itself took for proof: its last tool call that looks like a test, and what it said. Only the
--- official verifier gives a reward; where the two disagree is worth a look.
---
--- Test-like are every run_tests, and a command that speaks of pytest, unittest, `assert `, `test_` or "all tests",
--- in its arguments or its result. It passed when its result tells exit code 0, or, without an exit code, that all
--- tests or N of them passed and none failed.
local json = require "agentbox.json"

local M = {}

local COMMANDS = { run_command = true, persistent_shell = true }
local SIGNS = { "pytest", "unittest", "assert ", "test_", "all tests" }
local MAX_SEARCHED = 1 << 20

---@class agentbox.SelfCheck
---@field run integer        # its number among the tool runs, from 0
---@field passed boolean?    # nil: it does not say
---@field result string
---@field arguments string

local function looks_like_test(name, arguments, result)
  if name == "run_tests" then return true end
  if not COMMANDS[name] then return false end
  local words = (arguments .. "\n" .. result:sub(1, MAX_SEARCHED)):lower()
  for _, sign in ipairs(SIGNS) do
    if words:find(sign, 1, true) then return true end
  end
  return false
end

local function verdict(run, result)
  local code = type(run.exit) == "number" and run.exit or tonumber(result:match "exit_code%s*[=:]%s*(%-?%d+)")
  if code then return code == 0 end
  local said = result:sub(1, MAX_SEARCHED):lower()
  if said:find "[1-9]%d* failed" then return false end
  if said:find("all tests passed", 1, true) or said:find "%d+ passed" then return true end
end

local function plain(value)
  if json.type(value) == "raw" then return value:decode() end
  return value
end

local function message_at(nodes, index)
  local node = index and nodes[index + 1]
  return node and plain(node.m)
end

local function string_of(value)
  if type(value) == "string" then return value end
  return type(value) == "table" and value ~= json.null and json.encode(value) or ""
end

-- The arguments of the call that a tool message answers, found in the message before it that has the call's id.
local function arguments_of(nodes, index, call_id)
  local node = nodes[index + 1]
  while node and math.type(node.p) == "integer" do
    node = nodes[node.p + 1]
    local message = node and plain(node.m)
    for _, call in ipairs(message and type(message.tool_calls) == "table" and message.tool_calls or {}) do
      if call.id == call_id then return string_of((call["function"] or {}).arguments) end
    end
    if message and message.role ~= "tool" then return "" end
  end
  return ""
end

local NODES = { raw = { "m" } }

--- The last test-like tool call of a record, or nil.
---@param line table
---@return agentbox.SelfCheck?
function M.last(line)
  local runs = line.tool_runs
  if type(runs) ~= "table" or #runs == 0 then return nil end
  local nodes
  for i = #runs, 1, -1 do
    local run = runs[i]
    if run.name == "run_tests" or COMMANDS[run.name] then
      if not nodes then
        nodes = json.type(line.nodes) == "raw" and json.decode(line.nodes:text(), NODES) or line.nodes
      end
      local message = math.type(run.node) == "integer" and message_at(nodes, run.node)
      local result = message and string_of(message.content) or string_of(plain(run.result))
      local given = string_of(plain(run.args))
      if given == "" and message then given = arguments_of(nodes, run.node, message.tool_call_id or run.call_id) end
      if looks_like_test(run.name, given, result) then
        return { run = i - 1, passed = verdict(run, result), result = result, arguments = given }
      end
    end
  end
end

return M
