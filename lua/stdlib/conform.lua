--- conform.lua: whether a backend keeps what `agentbox.sandbox` promises: one list of cases for all of them.
---
---     for verdict in ab.conform.run { backend = "docker", image = "debian:12" } do print(verdict.id, verdict.verdict) end
---
--- A case is `{ id, what, run = fun(t), needs?, differs? }`. `needs` names what a backend may lack (M.LACKS): then it is
--- not run. `differs` gives, by backend, why a failure is known and allowed; docs/sandbox.md has the same list.
local err = require "agentbox.err"
local sandbox = require "agentbox.sandbox"
local time = require "agentbox.sys.time"

local M = {}

--- What a backend cannot have, by what it is; a case that needs it is skipped with the reason.
M.LACKS = {
  none = {
    confinement = "backend none confines nothing", users = "backend none has no other users",
    limits = "backend none has no limits", terminal = "backend none has no terminals",
    freeze = "backend none cannot freeze", network = "backend none has the host's network",
    tree = "backend none kills the process group only",
  },
}

local FILES = { "commands", "processes", "shells", "files", "trees", "limits", "confinement" }

---@class agentbox.ConformVerdict
---@field id string
---@field what string
---@field verdict "ok"|"differs"|"skipped"|"FAIL"
---@field why? string
---@field seconds number

---@class agentbox.ConformTest
---@field sb agentbox.Sandbox      # made when first asked for
---@field spec table
local Test = {}

local function fresh(self, extra)
  local spec = {}
  for key, value in pairs(self.spec) do spec[key] = value end
  for key, value in pairs(extra or {}) do spec[key] = value end
  local sb, problem = sandbox.create(spec)
  if not sb then error(err.wrap(problem, "creating a sandbox"), 0) end
  self.made[#self.made + 1] = sb
  return sb
end

---Another sandbox, closed after the case.
---@async
---@param extra? table
---@return agentbox.Sandbox
function Test:another(extra)
  return fresh(self, extra)
end

---@async
---@param command string|string[]
---@param opts? table
---@return agentbox.Outcome
function Test:sh(command, opts)
  local out, problem = self.sb:exec(command, opts)
  if not out then error(problem, 0) end
  return out
end

local function show(value)
  local text = type(value) == "string" and ("%q"):format(value) or tostring(value)
  return #text > 120 and text:sub(1, 117) .. "..." or text
end

---@param got any
---@param wanted any
---@param what string
function Test.equal(got, wanted, what)
  if got ~= wanted then error(("%s: %s, not %s"):format(what, show(got), show(wanted)), 0) end
end

---@param value any
---@param what string
function Test.truth(value, what)
  if not value then error(what, 0) end
  return value
end

---@param problem any
---@param code string
---@param what string
function Test.code(problem, code, what)
  if not err.is(problem) or problem.code ~= code then
    error(("%s: %s, not an error of code %s"):format(what, show(problem and problem.code or problem), code), 0)
  end
end

-- A case that says nothing gets a sandbox as they are by default.
function Test.__index(self, key)
  if key ~= "sb" then return Test[key] end
  local sb = fresh(self)
  rawset(self, "sb", sb)
  return sb
end

local function close_all(t)
  for i = #t.made, 1, -1 do t.made[i]:close() end
end

---All the cases, in order.
---@return table[]
function M.cases()
  local all = {}
  for _, name in ipairs(FILES) do
    for _, case in ipairs(require("agentbox.conform." .. name)) do all[#all + 1] = case end
  end
  return all
end

---Runs one case.
---@async
---@param case table
---@param spec table          # of sandbox.create
---@return agentbox.ConformVerdict
function M.judge(case, spec)
  local began = time.monotonic()
  local verdict = { id = case.id, what = case.what, verdict = "ok" }
  local lacks = case.needs and M.LACKS[spec.backend or "native"]
  if lacks and lacks[case.needs] then
    verdict.verdict, verdict.why = "skipped", lacks[case.needs]
  else
    local t = setmetatable({ spec = spec, made = {} }, Test)
    local fine, problem = pcall(case.run, t)
    close_all(t)
    local allowed = case.differs and case.differs[spec.backend or "native"]
    if not fine then
      verdict.verdict, verdict.why = allowed and "differs" or "FAIL", tostring(problem)
      if allowed then verdict.why = allowed end
    end
  end
  verdict.seconds = time.monotonic() - began
  return verdict
end

---Runs the cases one after another.
---@async
---@param spec? table          # of sandbox.create: backend, image
---@param only? string         # cases whose id has this in it
---@return fun(): agentbox.ConformVerdict?
function M.run(spec, only)
  local cases, at = M.cases(), 0
  return function()
    repeat at = at + 1 until not cases[at] or not only or cases[at].id:find(only, 1, true)
    return cases[at] and M.judge(cases[at], spec or {})
  end
end

return M
