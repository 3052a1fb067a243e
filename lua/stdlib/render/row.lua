--- One row of a page's table per trajectory, made of its line without reading its messages; and rows as the columns
--- that a page carries: a list for each field, texts that repeat as a list of the different ones and their numbers.
local cut = require "agentbox.render.cut"
local integrity = require "agentbox.suite.integrity"
local json = require "agentbox.json"
local text = require "agentbox.text"

local M = {}
local value_of = cut.value

local MAX_ERROR = 200

--- What stays text when a line is read for its row; nearly all bytes of a line are theirs.
M.UNREAD = {
  raw = {
    "nodes", "request", "response", "prompt", "out", "lp", "tools", "metadata", "logs", "modules", "artifacts",
    "describe", "components", "scorer", "sampling", "notes", "sandbox", "report",
  },
}

local function number(field)
  return type(field) == "number" and field or nil
end

local function drifted(calls)
  local n = 0
  for _, call in ipairs(calls) do
    local tokens = value_of(call.tokens)
    if tokens and (tokens.drift == "realign" or tokens.drift == "fork") then n = n + 1 end
  end
  return n > 0 and n or nil
end

local function shown(problem)
  if problem == nil then return nil end
  local line = tostring(problem):match "^[^\n]*"
  return #line > MAX_ERROR and text.cut_bytes(line, MAX_ERROR) .. "…" or line
end

-- Whether the verifier found something that was there for it to trip over.
local function tampered(found)
  found = value_of(found)
  if not found then return nil end
  local function any(name) return #(value_of(found[name]) or {}) > 0 end
  return (found.suspicious == true or any "changed" or any "removed") and 1 or nil
end

local CHECKERS = { run_tests = true, run_command = true, persistent_shell = true }

local function may_have_checked(runs)
  for _, run in ipairs(value_of(runs) or {}) do
    if CHECKERS[run.name] then return true end
  end
  return false
end

-- Whether the agent's own last check passed and the official verifier says no. Only then messages are read.
local function mismatch(line, verify)
  if not verify or verify.success ~= false or not may_have_checked(line.tool_runs) then return nil end
  local check = integrity.own_check(line)
  return check and check.verdict == "pass" and 1 or nil
end

--- The row of a record.
---@param line table       # decoded, with what UNREAD names as text or not
---@return table row
function M.of(line)
  local metrics, timing = value_of(line.metrics) or {}, value_of(line.timing) or {}
  local group, usage, verify = value_of(line.group), value_of(line.usage) or {}, value_of(line.verify)
  local total_ms = number(timing.total_ms)
  return {
    id = line.id, run = line.run, task = tostring(value_of((value_of(line.task) or {}).id) or "?"),
    model = value_of(line.policy.model), group = group and tostring(group.id), attempt = number(line.attempt) or 0,
    status = value_of(line.final_status) or line.status, stop = line.stop.reason, class = value_of(line.stop.class),
    reward = line.reward.scored and number(line.reward.value) or nil, steps = number(metrics.steps),
    tools = number(metrics.tool_calls), tokens = number(usage.total), out = number(usage.completion),
    dur = number(metrics.duration_s) or total_ms and total_ms / 1000, started = number(line.started),
    finished = number(line.finished), queued = number(timing.queued_ms), boot = number(timing.boot_ms),
    seed = number(timing.seed_ms), think = number(timing.model_ms), act = number(timing.tool_ms),
    score = number(timing.score_ms), version = number(line.policy.version_max), mismatch = mismatch(line, verify),
    tamper = tampered(line.tamper), drift = drifted(line.calls), rl = (line.use or {}).rl and 1 or nil,
    error = shown(value_of(line.error)),
  }
end

--- The fields that a page gets, and of which kind each is.
M.FIELDS = {
  { "id", "text" }, { "run", "word" }, { "task", "word" }, { "model", "word" }, { "group", "word" },
  { "attempt", "number" }, { "status", "word" }, { "stop", "word" }, { "class", "word" }, { "reward", "number" },
  { "steps", "number" }, { "tools", "number" }, { "tokens", "number" }, { "out", "number" }, { "dur", "time" },
  { "started", "time" }, { "finished", "time" }, { "queued", "time" }, { "boot", "time" }, { "seed", "time" },
  { "think", "time" }, { "act", "time" }, { "score", "time" }, { "version", "number" }, { "mismatch", "number" },
  { "tamper", "number" }, { "drift", "number" }, { "rl", "number" }, { "error", "text" },
}

-- Rewards keep every digit; times need a millisecond of theirs.
local put = {
  text = function(value) return json.encode(value) end,
  number = function(value) return math.type(value) == "integer" and ("%d"):format(value) or json.encode(value) end,
  time = function(value)
    return math.abs(value) < 1e15 and ((("%.3f"):format(value)):gsub("%.?0+$", "")) or json.encode(value)
  end,
}

local function words_column(rows, name)
  local list, known, out = {}, {}, {}
  for i, row in ipairs(rows) do
    local value = row[name]
    if value ~= nil and not known[value] then
      list[#list + 1] = json.encode(value)
      known[value] = tostring(#list - 1)
    end
    out[i] = value == nil and "-1" or known[value]
  end
  return ('{"d":[%s],"v":[%s]}'):format(table.concat(list, ","), table.concat(out, ","))
end

local function column(rows, name, kind)
  if kind == "word" then return words_column(rows, name) end
  local out, encode, any = {}, put[kind], false
  for i, row in ipairs(rows) do
    local value = row[name]
    out[i] = value == nil and "null" or encode(value)
    any = any or value ~= nil
  end
  return any and "[" .. table.concat(out, ",") .. "]" or nil
end

--- Rows as the JSON text of their columns; a field that no row has is left out.
---@param rows table[]
---@return string
function M.columns(rows)
  local parts = { ('"n":%d'):format(#rows) }
  for _, field in ipairs(M.FIELDS) do
    local list = column(rows, field[1], field[2])
    if list then parts[#parts + 1] = ('"%s":%s'):format(field[1], list) end
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

return M
