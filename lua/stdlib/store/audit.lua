--- Checks one stored record: the rules of docs/trajectories.md that can be seen from it alone, and those of the
--- acceptance invariants (b: one stop each, c: no number from a failure of the infrastructure, d: bytes, e: valid
--- requests, f: a call is executed once).
local bodies = require "agentbox.store.bodies"
local check = require "agentbox.record.check"
local json = require "agentbox.json"
local ledger = require "agentbox.store.ledger"
local outcome = require "agentbox.outcome"

local M = {}

local STATUSES = { completed = true, truncated = true, failed = true, cancelled = true }

local function value_of(field)
  if field == json.null then return nil end
  return field
end

local function check_stop(line, add)
  local stop, class = line.stop, value_of(line.stop.class)
  if not STATUSES[line.status] then add("b", "status", ("unknown status %s"):format(tostring(line.status))) end
  if not outcome.STOPS[stop.reason] then add("b", "stop", ("unknown reason %s"):format(tostring(stop.reason))) end
  if class and class ~= "policy" and not outcome.INFRA[class] then
    add("b", "stop", "unknown class " .. tostring(class))
  end
end

-- Rule 9: what may be trained on is scored, is nobody else's failure, and has the evidence.
local function check_use(line, entries, add)
  local use, evidence = line.use, false
  for _, entry in ipairs(entries) do
    local call = line.calls[entry.call + 1]
    if call.trainable and ledger.is_rl_grade(call) then
      evidence = true
      if use.rl and entry.drift == "unknown" then
        add(9, "use", ("offered for training, and the drift of call %d is unknown"):format(entry.call))
      end
    end
  end
  if not use.rl then
    if #use.why == 0 then add(9, "use", "kept from training without a reason") end
    return
  end
  if not evidence then add(9, "use", "offered for training without a trainable call that has token ids") end
  if outcome.INFRA[value_of(line.stop.class)] then
    add(9, "use", "offered for training, of class " .. line.stop.class)
  end
  if line.status == "cancelled" then add(9, "use", "offered for training, and was cancelled") end
  if #use.why > 0 then add(9, "use", "offered for training in spite of: " .. use.why[1]) end
end

-- Each call of a turn is executed once, and each tool message tells of one execution.
local function check_runs(line, add)
  local seen, told = {}, {}
  for i, run in ipairs(line.tool_runs) do
    local slot = tostring(run.slot)
    local key = ("%s/%s"):format(tostring(run.step), slot)
    if seen[key] then
      add("f", ("tool_runs[%d]"):format(i - 1),
        ("call %s of this turn was executed by run %d, too"):format(slot, seen[key]))
    end
    seen[key] = i - 1
  end
  for i, node in ipairs(line.nodes) do
    local where, run = ("nodes[%d]"):format(i - 1), node.r
    if run then
      if told[run] then add("f", where, ("tells of run %d, as node %d does"):format(run, told[run])) end
      if not line.tool_runs[run + 1] then add("f", where, "tells of a run that is not there") end
      told[run] = i - 1
    end
  end
end

--- Checks a trajectory.
---@async
---@param t agentbox.Traj
---@param add fun(rule: integer|string, where: string, msg: string)
---@return agentbox.LedgerEntry[] entries   # its token ledger
function M.check(t, add)
  local line = t.line
  for _, violation in ipairs(check.check(line)) do add(violation.rule, violation.where, violation.msg) end
  local entries, found = ledger.of(line)
  for _, violation in ipairs(found) do add(violation.rule, violation.where, violation.msg) end
  check_stop(line, add)
  if value_of(line.use) then check_use(line, entries, add) end
  check_runs(line, add)
  bodies.check(t, add)
  return entries
end

return M
