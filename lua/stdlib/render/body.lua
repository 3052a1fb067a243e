--- One trajectory as a page shows it: everything there is to read, each text cut to a size (render/cut.lua).
local cut = require "agentbox.render.cut"
local integrity = require "agentbox.suite.integrity"
local json = require "agentbox.json"
local ledger = require "agentbox.store.ledger"

local M = {}

---@class agentbox.PageLimits
---@field text integer     # bytes of a message, a result, an output
---@field wire integer     # bytes of a request or a response
---@field nodes integer    # messages
---@field calls integer    # calls of the model, of tools, lines of the log

--- What a page that stands alone carries of one trajectory.
---@type agentbox.PageLimits
M.EMBEDDED = { text = 12000, wire = 4000, nodes = 400, calls = 400 }
--- What is sent when somebody opens it.
---@type agentbox.PageLimits
M.SERVED = { text = 200000, wire = 20000, nodes = 3000, calls = 3000 }

local value_of, shown, facts, each = cut.value, cut.shown, cut.facts, cut.each

local PARTS = { text = true, input_text = true, output_text = true }

local function content_of(content, max)
  if type(content) ~= "table" or content == json.null then return shown(content, max) end
  local list = {}
  for i, part in ipairs(content) do
    local kind = type(part) == "table" and part.type
    if type(part) == "string" then list[i] = part
    elseif kind and PARTS[kind] and type(part.text) == "string" then list[i] = part.text
    else list[i] = ("[%s, %d bytes]"):format(tostring(kind or "part"), #json.encode(part)) end
  end
  return cut.text(table.concat(list, "\n"), max)
end

local function tool_calls_of(message, max)
  local list = {}
  for _, call in ipairs(type(message.tool_calls) == "table" and message.tool_calls or {}) do
    local fn = type(call["function"]) == "table" and call["function"] or {}
    list[#list + 1] = { id = call.id, name = shown(fn.name, 200), args = shown(fn.arguments, max) }
  end
  return #list > 0 and json.array(list) or nil
end

local function node_of(node, index, limits)
  local message = value_of(node.m) or {}
  return {
    i = index, p = value_of(node.p), o = node.o, c = value_of(node.c), r = value_of(node.r),
    scrubbed = value_of(node.scrubbed),
    role = shown(message.role, 40), name = shown(value_of(message.name), 200),
    text = content_of(message.content, limits.text),
    reasoning = shown(value_of(message.reasoning_content) or value_of(message.reasoning), limits.text),
    calls = tool_calls_of(message, limits.text), answers = value_of(message.tool_call_id),
  }
end

local function wire_of(t, call, which, limits)
  local entry = value_of(call[which])
  if not entry then return nil end
  local out = { bytes = entry.bytes }
  if entry.params then
    out.params = cut.text(json.encode(entry.params), limits.wire)
  elseif entry.body then
    out.body = cut.text(json.type(entry.body) == "raw" and entry.body:text() or json.encode(entry.body), limits.wire)
  else
    local bytes, problem = t:body(call, which)
    if bytes then out.body = cut.text(bytes, limits.wire) else out.lost = problem.msg end
  end
  return out
end

local function failure_of(problem, max)
  problem = value_of(problem)
  if not problem then return nil end
  return {
    code = shown(problem.code, 80), msg = shown(problem.msg, max), status = problem.http_status,
    body = shown(problem.body, max),
  }
end

local function call_of(t, call, limits)
  return {
    i = call.i, agent = call.agent, purpose = value_of(call.purpose), trainable = call.trainable,
    model = value_of(call.model), id = shown(value_of(call.response_id), 200), out = value_of(call.out),
    leaf = value_of(call.leaf), tries = value_of(call.tries), finish = value_of(call.finish),
    usage = value_of(call.usage), t = value_of(call.t), notes = facts(call.notes, limits.text),
    versions = value_of(call.versions), sampling = facts(call.sampling, 2000),
    error = failure_of(call.error, limits.text), request = wire_of(t, call, "request", limits),
    response = wire_of(t, call, "response", limits),
  }
end

local function ledger_of(line)
  local entries, violations = ledger.of(line)
  local list = {}
  for i, entry in ipairs(entries) do
    list[i] = {
      call = entry.call, drift = entry.drift, base = entry.base, prompt = entry.prompt, keep = entry.keep,
      tail = entry.tail, out = entry.out, lp = entry.lp,
    }
  end
  local wrong = {}
  for i, violation in ipairs(violations) do wrong[i] = ("%s: %s"):format(violation.where, violation.msg) end
  return #list > 0 and json.array(list) or nil, #wrong > 0 and json.array(wrong) or nil
end

local function run_of(run, index, limits)
  return {
    i = index, node = value_of(run.node), name = shown(run.name, 200), t = value_of(run.t),
    error = shown(value_of(run.error), limits.text), is_error = run.is_error or nil,
    exit = value_of(run.exit), cut = value_of(run.cut), step = value_of(run.step),
    trace = shown(value_of(run.traceback), limits.text), args = shown(value_of(run.args), limits.text),
    result = shown(value_of(run.result), limits.text),
  }
end

local function verify_of(verify, limits)
  verify = value_of(verify)
  if not verify then return nil end
  return {
    success = verify.success, exit = value_of(verify.exit_code), command = shown(verify.command, limits.text),
    stdout = shown(value_of(verify.stdout), limits.text), stderr = shown(value_of(verify.stderr), limits.text),
    dur = value_of(verify.duration_s), report = facts(verify.report, limits.text),
  }
end

local PASSED = { pass = true, fail = false }

local function check_of(line, limits)
  local check = integrity.own_check(line)
  if not check then return nil end
  return {
    name = shown(check.name, 200), step = check.step, passed = PASSED[check.verdict],
    args = cut.text(check.command, limits.text), result = cut.text(check.result, limits.text),
  }
end

local function marks_of(line)
  local marks, out = integrity.marks(line), json.array {}
  for _, name in ipairs(integrity.MARKS) do
    if marks[name] then out[#out + 1] = name end
  end
  return out
end

-- Members that are shown as they are, and how many bytes of each.
local FACTS = {
  agent = 2000, policy = 4000, reward = 8000, sandbox = 8000, notes = 8000, metadata = 8000, artifacts = 8000,
  modules = 8000, errors = 8000,
}

--- What a page gets to show of a trajectory.
---@async
---@param t agentbox.Traj
---@param limits agentbox.PageLimits
---@return table
function M.of(t, limits)
  local line, max = t.line, limits.text
  local task = value_of(line.task) or {}
  local out = {
    leaf = value_of(line.leaf), n_nodes = #line.nodes, n_calls = #line.calls,
    logs_dropped = value_of(line.logs_dropped),
    stop = value_of(line.stop), use = line.use, tool_mode = value_of(line.tool_mode), seed = value_of(line.seed),
    timing = value_of(line.timing), usage = value_of(line.usage), engine = value_of(line.engine),
    verify = verify_of(line.verify, limits), check = check_of(line, limits),
    marks = marks_of(line), error = shown(value_of(line.error), max),
    tamper = facts(line.tamper, max), tools = facts(line.tools, 20000),
  }
  for name, room in pairs(FACTS) do out[name] = facts(line[name], room) end
  out.task = {
    id = task.id, hash = task.hash, description = shown(task.description, max), metadata = facts(task.metadata, 4000),
  }
  out.nodes = each(line.nodes, limits.nodes, function(node, i) return node_of(node, i, limits) end)
  out.calls = each(line.calls, limits.calls, function(call) return call_of(t, call, limits) end)
  out.runs = each(line.tool_runs, limits.calls, function(run, i) return run_of(run, i, limits) end)
  out.logs = each(value_of(line.logs), math.min(limits.calls, 200), function(entry)
    return { t = entry.t, level = entry.level, text = shown(entry.text, 1000) }
  end)
  out.ledger, out.violations = ledger_of(line)
  return out
end

return M
