--- Tests: assertions, helpers that run a tool, a verifier or an agent without a model, and the runner
--- behind `agentbox test`.
--
-- A test file returns a table of functions (or a table of such tables), or defines globals whose names start
-- with test or Test; luaunit's assertions work in it. setUp and tearDown of a table run around each of its tests.
local M = {}

local SKIP = "agentbox test skip: "

---Ends the test as skipped.
---@param reason string
function M.skip(reason)
  error(SKIP .. reason, 0)
end

local function show(value, depth)
  if type(value) == "string" then return ("%q"):format(value) end
  if type(value) ~= "table" or depth > 3 then return tostring(value) end
  local meta = getmetatable(value)
  if meta and meta.__tostring then return tostring(value) end
  local parts = {}
  for k, v in pairs(value) do parts[#parts + 1] = ("%s = %s"):format(tostring(k), show(v, depth + 1)) end
  table.sort(parts)
  return "{ " .. table.concat(parts, ", ") .. " }"
end

local function same(a, b)
  if a == b then return true end
  if type(a) ~= "table" or type(b) ~= "table" then return false end
  for k, v in pairs(a) do
    if not same(v, b[k]) then return false end
  end
  for k in pairs(b) do
    if a[k] == nil then return false end
  end
  return true
end

---Deep equality.
---@param actual any
---@param expected any
---@param what? string
function M.eq(actual, expected, what)
  if same(actual, expected) then return end
  error(("%sexpected %s\n     got %s"):format(what and what .. ": " or "", show(expected, 0), show(actual, 0)), 2)
end

---@param value any
---@param what? any   # printed when the value is false; an error value is fine
function M.ok(value, what)
  if value then return value end
  error(("expected something true, got %s%s"):format(show(value, 0), what and ": " .. tostring(what) or ""), 2)
end

---@param text string
---@param pattern string
function M.match(text, pattern)
  if type(text) == "string" and text:find(pattern) then return end
  error(("no match for %q in %s"):format(pattern, show(text, 0)), 2)
end

---@param text string
---@param part string
function M.contains(text, part)
  if type(text) == "string" and text:find(part, 1, true) then return end
  error(("%q is not in %s"):format(part, show(text, 0)), 2)
end

---The call raises and the message contains `part`.
---@param part string
---@param fn function
---@param ... any
---@return any err
function M.raises(part, fn, ...)
  local ok, err = pcall(fn, ...)
  if ok then error("expected an error with " .. show(part, 0), 2) end
  if not tostring(err):find(part, 1, true) then
    error(("expected an error with %q, got %s"):format(part, show(tostring(err), 0)), 2)
  end
  return err
end

---The results are `nil, err` with this code.
---@param code string
---@param value any
---@param err any
function M.fails(code, value, err)
  if value ~= nil then error(("expected nil and an error %q, got %s"):format(code, show(value, 0)), 2) end
  if type(err) ~= "table" or err.code ~= code then
    error(("expected the error code %q, got %s"):format(code, show(err, 0)), 2)
  end
  return err
end

---Calls one tool in a sandbox of its own, without a model; see agentbox.test.lab.
---@async
---@param what string|agentbox.Tool
---@param calls table|table[]
---@param opts? table
---@return agentbox.ToolResult ...
function M.tool(what, calls, opts)
  return require "agentbox.test.lab".tool(what, calls, opts)
end

---Scores a workspace with a verifier; the files are what an agent left.
---@async
---@param what any
---@param opts table
---@return agentbox.Traj
function M.verifier(what, opts)
  return require "agentbox.test.lab".verifier(what, opts)
end

---Runs an agent over a script of the model's answers.
---@async
---@param what any
---@param opts table
---@return agentbox.Traj
function M.agent(what, opts)
  return require "agentbox.test.lab".agent(what, opts)
end

---Runs test files and folders; see agentbox.test.run.
---@param paths string[]
---@param opts? table
---@return integer? failed, table? err
function M.run(paths, opts)
  return require "agentbox.test.run".run(paths, opts or {})
end

M._skip_prefix = SKIP

return M
