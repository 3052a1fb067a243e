--- Checks what is stored: sums, invariants, bodies and artifacts; notes which response ids a server gave more than once.
local check = require "agentbox.record.check"
local json = require "agentbox.json"
local read = require "agentbox.store.read"

local M = {}

---@class agentbox.CheckReport
---@field trajectories integer
---@field problems { id: string, where: string, msg: string }[]
---@field repeated_ids { count: integer, first?: string }   # calls whose response id the server had given before in the run

local function check_bodies(t, add)
  for _, call in ipairs(t.line.calls) do
    for _, which in ipairs { "request", "response" } do
      if call[which] and call[which] ~= json.null then
        local bytes, problem = t:body(call, which)
        if not bytes then add(t, ("calls[%d].%s"):format(call.i, which), problem.msg) end
      end
    end
  end
  for _, entry in ipairs(t.line.artifacts or {}) do
    if entry.hash then
      local bytes, problem = t:artifact(entry.path)
      if not bytes then add(t, "artifact " .. entry.path, problem.msg) end
    end
  end
end

-- Whoever joins on the server's ids should know that they are not unique; the record is right all the same.
local function note_ids(t, seen, repeated)
  for _, call in ipairs(t.line.calls) do
    local id = call.response_id
    if id and id ~= json.null then
      local key = table.concat({ t.run_id, tostring(call.model), id }, "\0")
      if seen[key] then
        repeated.count = repeated.count + 1
        repeated.first = repeated.first or ("%s: calls[%d]: %s"):format(t.id, call.i, id)
      end
      seen[key] = true
    end
  end
end

--- Checks every trajectory below a path.
---
--- Returns nil, err if there is none to check: `notfound`, `io`, `denied`. A damaged line is a problem of the report,
--- and ends it.
---@async
---@nodiscard
---@param path string
---@return agentbox.CheckReport?
---@return agentbox.Err? err
function M.check(path)
  local report, seen = { trajectories = 0, problems = json.array {}, repeated_ids = { count = 0 } }, {}
  local function add(t, where, msg)
    table.insert(report.problems, { id = t.id, where = where, msg = msg })
  end
  local ok, problem = read.visit(path, function(t)
    report.trajectories = report.trajectories + 1
    local name = ("%s\0%s\0%d"):format(t.run_id, t.id, t.line.attempt)
    if seen[name] then add(t, "id", "this id and attempt was written before") end
    seen[name] = true
    for _, violation in ipairs(check.check(t.line)) do
      add(t, violation.where, ("%s (rule %d)"):format(violation.msg, violation.rule))
    end
    check_bodies(t, add)
    note_ids(t, seen, report.repeated_ids)
  end)
  if ok then return report end
  if problem.code ~= "parse" then return nil, problem end
  add({ id = "-" }, problem.where or path, problem.msg)
  return report
end

return M
