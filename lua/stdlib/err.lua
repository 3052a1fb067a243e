--- Error values: what the outside world can do wrong, as a table that prints well.
---
---     local text, err = fs.read(path)
---     if not text and err.code == "notfound" then ... end
---
--- A function returns `nil, err` for these; misuse of a function raises instead. An err that is raised on
--- purpose (assert(fs.read(path))) keeps its fields. Codes are a closed list (docs/errors.md).
local sys = require "agentbox.sys.err"

local M = {}

---@class agentbox.Err
---@field code string           # one of err.codes
---@field msg string            # prose for people; may change
---@field op? string            # the primitive that failed, "fs.read"
---@field sys? integer          # errno, when the operating system said no
---@field where? string         # "file:line" of the caller outside the library
---@field traceback? string     # where a script raised
---@field cancel? boolean       # while a fiber is being cancelled: pcall lets it through
---@field host? boolean         # code `full`: the disk of this machine, not a sandbox's
---@field own? boolean          # the caller's own deadline, or what a program in a sandbox did: not the infrastructure
---@field hint? string          # the next step for a person
---@field [string] any

---Every code with its meaning, in the order of docs/errors.md. The first part is shared with C.
---@type { [1]: string, [2]: string }[]
M.codes = {
  { "badarg", "a value the caller gave is unusable" },
  { "notfound", "no such file, key, image or program" },
  { "exists", "it is there already" },
  { "denied", "permission" },
  { "invalid", "the wrong kind of thing: a directory, a FIFO, a device" },
  { "full", "no space or no inode left, or a quota reached" },
  { "io", "a read or a write failed" },
  { "timeout", "a deadline of ours passed" },
  { "cancelled", "somebody cancelled the wait" },
  { "toobig", "a cap was exceeded" },
  { "parse", "text that is not well formed" },
  { "protocol", "the other side broke the protocol" },
  { "network", "could not resolve, connect, or was cut off; TLS failed" },
  { "sandbox", "the sandbox itself failed or died: infrastructure, never a score" },
  { "busy", "in use, or too many at once" },
  { "nomem", "a memory ceiling was reached" },
  { "limit", "a budget of steps or of time for a script was used up" },
  { "unsupported", "this machine, kernel or build cannot" },
  { "sys", "any other refusal of the operating system" },
  { "model", "the model server failed, also when asked again (http_status, attempts, body)" },
  { "context", "the conversation does not fit into the model's context window" },
  { "task", "a task file is wrong" },
  { "config", "a configuration file or value is wrong" },
  { "verifier", "the verifier could not come to a verdict" },
  { "defect", "a script raised (traceback)" },
  { "usage", "a command line that cannot be understood" },
}

local known = {}
for _, entry in ipairs(M.codes) do known[entry[1]] = true end

-- The class of a failure by its code; decides what a rollout's record says.
local class_of = {
  sandbox = "sandbox", model = "model_server", network = "model_server", timeout = "model_server",
  context = "policy", protocol = "model_server", verifier = "verifier", task = "task",
}

-- Failures of what carries a rollout, whoever raised them: never a score.
local infra_codes = {
  sandbox = true, network = true, timeout = true, model = true, io = true, protocol = true,
}

-- Refusals that mean that this machine or process has run out, whatever was asked for: ENOMEM, ENFILE, EMFILE.
local exhausted = { [12] = true, [23] = true, [24] = true }

---@diagnostic disable-next-line: inject-field
sys.metatable.__concat = function(a, b)
  return tostring(a) .. tostring(b)
end

---A new error value.
---@param code string
---@param msg string
---@param extra? table   # further fields
---@return agentbox.Err
function M.new(code, msg, extra)
  if not known[code] then error(("unknown error code '%s'"):format(tostring(code)), 2) end
  local e = {}
  for key, value in pairs(extra or {}) do e[key] = value end
  e.code, e.msg = code, msg
  return setmetatable(e, sys.metatable)
end

---@param value any
---@return boolean
function M.is(value)
  return type(value) == "table" and getmetatable(value) == sys.metatable
end

---A copy whose message starts with "context: ". Anything that is not an error value becomes a `defect`.
---@param e any
---@param context string
---@return agentbox.Err
function M.wrap(e, context)
  if not M.is(e) then return M.new("defect", context .. ": " .. tostring(e)) end
  local copy = {}
  for key, value in pairs(e) do copy[key] = value end
  copy.msg = context .. ": " .. tostring(e.msg)
  return setmetatable(copy, sys.metatable)
end

---Is it a failure of the infrastructure: the sandbox, the network, the model server, our own disk, no descriptor left?
---@param e any
---@return boolean
function M.infra(e)
  if not M.is(e) or e.cancel or e.own then return false end
  return infra_codes[e.code] == true or exhausted[e.sys] == true or (e.code == "full" and e.host == true)
end

---The failure class that a rollout's record names.
---@param e any
---@return "sandbox"|"model_server"|"verifier"|"task"|"engine"|"policy"
function M.class(e)
  if not M.is(e) then return "engine" end
  return e.class or not e.own and class_of[e.code] or "engine"
end

return M
