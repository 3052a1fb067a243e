--- verify/protect.lua: which files decide over a verdict, and putting them back as the task had them.
---
--- What matches the task's `protect` globs and was there after seeding is restored byte for byte; what matches and
--- was not there is removed when the verifier asks for it. Each difference is recorded.
local err = require "agentbox.err"
local glob = require "agentbox.glob"
local json = require "agentbox.json"
local schema = require "agentbox.schema"

local M = {}

--- Tests and what steers them.
M.TEST_GLOBS = { "test_*.py", "*_test.py", "tests/**", "conftest.py", "pytest.ini", ".pytest.ini" }

--- Top-level names that would stand in for the test runner or run code at interpreter start.
M.SHADOWS = { "pytest.py", "pytest/**", "_pytest/**", "_pytest.py", "pluggy/**", "pluggy.py", "iniconfig/**",
  "iniconfig.py", "sitecustomize.py", "usercustomize.py", "sitecustomize/**", "usercustomize/**", "py.py" }

--- Names whose planting is no accident.
local is_hostile = glob.compile { "conftest.py", "pytest.ini", ".pytest.ini", "pytest.py", "_pytest*", "_pytest/**",
  "pytest/**", "pluggy*", "pluggy/**", "iniconfig*", "iniconfig/**", "sitecustomize*", "usercustomize*" }

local CONFIGS = {
  { "pytest.ini", "" }, { ".pytest.ini", "" }, { "pyproject.toml", "%[tool%.pytest" }, { "tox.ini", "%[pytest%]" },
  { "setup.cfg", "%[tool:pytest%]" },
}

--- The pytest configuration that a task ships, in pytest's own order of search; nil when it has none.
---@param task agentbox.Task
---@return string? name
function M.pytest_config(task)
  for _, entry in ipairs(CONFIGS) do
    local file = task.hidden[entry[1]] or task.files[entry[1]]
    if file and file.bytes:find(entry[2]) then return entry[1] end
  end
end

--- The globs in force: the task's own, or for tests what decides over them. Other verifiers restore the tests that the
--- task ships and remove nothing.
---@param task agentbox.Task
---@return string[]
function M.globs(task)
  if task.verifier.protect then return task.verifier.protect end
  local globs = table.move(M.TEST_GLOBS, 1, #M.TEST_GLOBS, 1, {})
  globs[#globs + 1] = M.pytest_config(task) and "/" .. M.pytest_config(task) or nil
  return globs
end

local MAX_PROTECTED_BYTES = 256 << 20

---@class agentbox.Tamper
---@field changed string[]     # protected files whose bytes differed
---@field removed string[]     # protected files that were gone
---@field planted string[]     # files where only the task's may be
---@field suspicious boolean   # more than tests of the agent's own

---@return agentbox.Tamper
function M.no_tamper()
  return { changed = json.array {}, removed = json.array {}, planted = json.array {}, suspicious = false }
end

local function entries_by_name(sb, workspace)
  local list, problem = sb:list(workspace, { recursive = true })
  if not list then return nil, problem end
  local map = {}
  for _, entry in ipairs(list) do map[entry.name] = entry end
  return map
end

---@class agentbox.Pristine
---@field files table<string, { bytes: string, mode: integer }>   # protected, as seeded
---@field names table<string, table>                              # every entry, as seeded
---@field matches fun(path: string): boolean

--- Remembers the protected files of a sandbox that no agent has touched.
---@async
---@param sb agentbox.Sandbox
---@param workspace string
---@param globs string[]
---@return agentbox.Pristine?
---@return agentbox.Err?
function M.remember(sb, workspace, globs)
  local names, problem = entries_by_name(sb, workspace)
  if not names then return nil, problem end
  local matches, files, total = glob.compile(globs), {}, 0
  for name, entry in pairs(names) do
    if entry.type == "file" and matches(name) then
      local path = workspace .. "/" .. name
      local bytes, st
      bytes, problem = sb:read(path)
      if not bytes then return nil, problem end
      st, problem = sb:stat(path)
      if not st then return nil, problem end
      total = total + #bytes
      if total > MAX_PROTECTED_BYTES then
        return nil, err.new("task", ("protected files are larger than %d bytes in all"):format(MAX_PROTECTED_BYTES))
      end
      files[name] = { bytes = bytes, mode = st.mode & 511 }
    end
  end
  return { files = files, names = names, matches = matches }
end

--- Makes sure that the folders above a path are folders, so that nothing is written through a planted link.
local function clear_way(sb, workspace, name, now)
  local at = 0
  while true do
    at = name:find("/", at + 1, true)
    if not at then return true end
    local parent = name:sub(1, at - 1)
    local entry = now[parent]
    if entry and entry.type ~= "dir" then
      local ok, problem = sb:remove(workspace .. "/" .. parent, { recursive = true })
      if not ok then return nil, problem end
      now[parent] = nil
    end
  end
end

local function put(sb, workspace, name, file, now)
  local ok, problem = clear_way(sb, workspace, name, now)
  if not ok then return nil, problem end
  local path = workspace .. "/" .. name
  if now[name] and now[name].type ~= "file" then
    ok, problem = sb:remove(path, { recursive = true })
    if not ok then return nil, problem end
  end
  return sb:write(path, file.bytes, { mode = file.mode })
end

local function same(sb, workspace, name, file, entry)
  if entry.type ~= "file" then return false end
  local bytes, problem = sb:read(workspace .. "/" .. name, { max_bytes = #file.bytes + 1, truncate = true })
  if not bytes then
    if err.infra(problem) then return nil, problem end
    return false
  end
  return bytes == file.bytes
end

local function restore(sb, workspace, pristine, now, tamper)
  for _, name in ipairs(schema.names(pristine.files)) do
    local file, entry = pristine.files[name], now[name]
    local equal, problem = false
    if entry then equal, problem = same(sb, workspace, name, file, entry) end
    if problem then return nil, problem end
    if not equal then
      local kind = entry and tamper.changed or tamper.removed
      kind[#kind + 1] = name
      tamper.suspicious = true
    end
    local ok
    ok, problem = put(sb, workspace, name, file, now)
    if not ok then return nil, problem end
  end
  return true
end

local function is_below(names, prefix)
  for name in pairs(names) do
    if name:sub(1, #prefix) == prefix then return true end
  end
  return false
end

local function remove_planted(sb, workspace, pristine, shadows, now, tamper)
  for _, name in ipairs(schema.names(now)) do
    local entry = now[name]
    local planted = not pristine.names[name] and entry.type ~= "dir" and (pristine.matches(name) or shadows(name))
    if planted and not is_below(pristine.files, name .. "/") then
      tamper.planted[#tamper.planted + 1] = name
      if is_hostile(name) then tamper.suspicious = true end
      local ok, problem = sb:remove(workspace .. "/" .. name)
      if not ok and problem.code ~= "notfound" then return nil, problem end
    end
  end
  return true
end

--- Brings the protected files of a sandbox that now holds the agent's tree back to what they were.
---@async
---@param sb agentbox.Sandbox
---@param workspace string
---@param pristine agentbox.Pristine
---@param opts { remove?: boolean }   # remove: also what matches and the task did not have
---@return agentbox.Tamper tamper     # what was seen, also by the time of an error
---@return agentbox.Err? err
function M.restore(sb, workspace, pristine, opts)
  local tamper = M.no_tamper()
  if not opts.remove and not next(pristine.files) then return tamper end
  local now, problem = entries_by_name(sb, workspace)
  if not now then
    tamper.suspicious = problem.code == "toobig" or problem.code == "denied" -- where it cannot be seen, anything may be
    return tamper, problem
  end
  local ok
  if opts.remove then
    ok, problem = remove_planted(sb, workspace, pristine, glob.compile(M.SHADOWS), now, tamper)
    if not ok then return tamper, problem end
  end
  ok, problem = restore(sb, workspace, pristine, now, tamper)
  return tamper, not ok and problem or nil
end

--- Lays files over the tree, whatever stands in their way.
---@async
---@param sb agentbox.Sandbox
---@param workspace string
---@param files table<string, agentbox.TaskFile>
---@return true?
---@return agentbox.Err?
function M.lay(sb, workspace, files)
  if not next(files) then return true end
  local now, problem = entries_by_name(sb, workspace)
  if not now then return nil, problem end
  for _, name in ipairs(schema.names(files)) do
    local ok
    ok, problem = put(sb, workspace, name, files[name], now)
    if not ok then return nil, problem end
  end
  return true
end

return M
