--- verifiers/files.lua: what must be in the files that the agent left; each check has a weight, so that half of it counts.
---
---     ab.verify.files { { "out.csv", equals = "a,b\n1,2\n" }, { "report.json", json = { total = 3 }, weight = 2 },
---       { "notes.md", contains = { "cause", "fix" } }, { "tmp/**", absent = true } }
---
--- Files are read from what the agent left, with nothing of it running. A file that is missing, too large or no file fails
--- its check; only a sandbox that fails leaves the work unscored.
local err = require "agentbox.err"
local glob = require "agentbox.glob"
local hash = require "agentbox.hash"
local json = require "agentbox.json"
local schema = require "agentbox.schema"
local text = require "agentbox.text"

local M = { MAX_BYTES = 16 << 20 }

local CHECK = {
  path = { "string" }, weight = { "number", default = 1, min = 0 },
  equals = { "string" }, trim = { "boolean" },                -- trim: blanks at both ends and line ends do not count
  contains = { "string|list" }, lacks = { "string|list" },    -- plain texts
  matches = { "string" },                                     -- a Lua pattern
  json = { "any" },                                           -- an equal document; of a map, at least these members
  sha256 = { "string" }, min_bytes = { "integer", min = 0 }, max_bytes = { "integer", min = 0 },
  mode = { "string" }, absent = { "boolean" },                -- absent: the path may be a glob
}

--- Checks are the list part; `score = "all"` gives 1 or 0, "fraction" the weighted share.
M.OPTIONS = { score = { "string", enum = { "fraction", "all" }, default = "fraction" }, checks = { "list" } }

-- ---------------------------------------------------------------- comparing

local function tidy(bytes, trim)
  if not trim then return bytes end
  return (bytes:gsub("\r\n", "\n"):gsub("[ \t]+\n", "\n"):match "^%s*(.-)%s*$")
end

local function list_of(value) return type(value) == "table" and value or { value } end

-- Whether a document has what is wanted: members of maps may be more, lists and values are the same.
local function has(got, want)
  if type(want) ~= "table" then return got == want or type(want) == "number" and got == want + 0.0 end
  if type(got) ~= "table" then return false end
  if schema.is_list(want) and (not schema.is_list(got) or #got ~= #want) then return false end
  for key, value in pairs(want) do
    if not has(got[key], value) then return false end
  end
  return true
end

local checks = {}

function checks.equals(bytes, want, check)
  if tidy(bytes, check.trim) == tidy(want, check.trim) then return nil end
  return "is not what was wanted"
end

function checks.contains(bytes, want)
  for _, one in ipairs(list_of(want)) do
    if not bytes:find(one, 1, true) then return ("does not hold %q"):format(text.cut(one, 60)) end
  end
end

function checks.lacks(bytes, want)
  for _, one in ipairs(list_of(want)) do
    if bytes:find(one, 1, true) then return ("holds %q"):format(text.cut(one, 60)) end
  end
end

function checks.matches(bytes, pattern)
  if not bytes:find(pattern) then return "does not match " .. pattern end
end

function checks.json(bytes, want)
  local got, problem = json.decode(bytes)
  if got == nil then return "is not JSON: " .. tostring(problem.msg) end
  if not has(got, want) then return "is JSON without what was wanted" end
end

function checks.sha256(bytes, want)
  if hash.sha256(bytes) ~= want:gsub("^sha256:", "") then return "has another SHA-256" end
end

function checks.min_bytes(bytes, least)
  if #bytes < least then return ("has %d bytes, fewer than %d"):format(#bytes, least) end
end

function checks.max_bytes(bytes, most)
  if #bytes > most then return ("has %d bytes, more than %d"):format(#bytes, most) end
end

local ORDER = { "equals", "contains", "lacks", "matches", "json", "sha256", "min_bytes", "max_bytes" }

local function path_of(ev, name)
  return name:sub(1, 1) == "/" and name or ev.workspace .. "/" .. name
end

-- What of the agent's doing keeps a file from being read.
local ITS_OWN = { notfound = true, invalid = true, denied = true, toobig = true, exists = true }

local function gone(ev, check)
  local list, problem = ev.after:list(ev.workspace, { recursive = true })
  if not list then return nil, problem end
  local matches = glob.compile { check.path }
  for _, entry in ipairs(list) do
    if matches(entry.name) then return entry.name .. " is there" end
  end
  return false
end

-- Nil when the check holds, else why it does not; false and an error when nobody can know.
local function failing(ev, check)
  if check.absent then
    local why, problem = gone(ev, check)
    if why == nil then return false, problem end
    return why or nil
  end
  local bytes, problem = ev.after:read(path_of(ev, check.path), { max_bytes = M.MAX_BYTES })
  if not bytes then
    if ITS_OWN[problem.code] then return check.path .. ": " .. problem.msg end
    return false, problem
  end
  if check.mode then
    local st = ev.after:stat(path_of(ev, check.path))
    if not st or st.mode & 511 ~= tonumber(check.mode, 8) then return check.path .. ": has another mode than " .. check.mode end
  end
  for _, name in ipairs(ORDER) do
    local why = check[name] ~= nil and checks[name](bytes, check[name], check)
    if why then return ("%s: %s"):format(check.path, why) end
  end
end

-- ---------------------------------------------------------------- the verdict

-- `{ "out.csv", ... }` is short for `{ path = "out.csv", ... }`, and so is a bare name.
local function named(given)
  if type(given) ~= "table" then return { path = given } end
  if given[1] == nil then return given end
  local out = {}
  for key, value in pairs(given) do out[key == 1 and "path" or key] = value end
  return out
end

local function checked(given)
  local list = {}
  for i, one in ipairs(given.checks or given) do
    local check, problem = schema.check(named(one), CHECK, { path = ("[%d]"):format(i) })
    if not check then return nil, problem.msg end
    if not check.path or check.path == "" then return nil, ("[%d]: names no file"):format(i) end
    if check.mode and not tonumber(check.mode, 8) then return nil, ('[%d].mode: must be as in "0644"'):format(i) end
    list[i] = check
  end
  if #list == 0 then return nil, "no checks" end
  return list
end

--- Makes the verifier; raises on a mistake in the checks.
---@param given table
---@param level integer
---@return table opts
function M.options(given, level)
  local list, problem = checked(given)
  if not list then error("verify.files: " .. problem, level + 1) end
  if given.score ~= nil and given.score ~= "all" and given.score ~= "fraction" then
    error('verify.files: score must be "fraction" or "all"', level + 1)
  end
  return { list = list, score = given.score or "fraction" }
end

---@async
---@param ev agentbox.Evidence
---@param opts { list: table[], score: "fraction"|"all" }
---@return number? score
---@return string|agentbox.Err text_or_err
---@return table? facts
function M.judge(ev, opts)
  local got, all, wrong = 0, 0, json.array {}
  for _, check in ipairs(opts.list) do
    local why, problem = failing(ev, check)
    if why == false then return nil, problem end
    all = all + check.weight
    if why then wrong[#wrong + 1] = why else got = got + check.weight end
  end
  local share = all > 0 and got / all or #wrong == 0 and 1 or 0
  if opts.score == "all" then share = #wrong == 0 and 1 or 0 end
  local said = #wrong == 0 and "every file is as it must be" or table.concat(wrong, "\n")
  return share, said, { success = #wrong == 0, report = { files = #opts.list, wrong = wrong } }
end

--- What a task's params say, checked.
---@param params any
---@return { list: table[], score: "fraction"|"all" }? opts
---@return agentbox.Err? err
function M.read(params)
  local opts, problem = schema.check(params or {}, M.OPTIONS, { path = "verifier.params" })
  if not opts then return nil, err.new("task", problem.msg) end
  local list
  list, problem = checked(opts.checks or {})
  if not list then return nil, err.new("task", "verifier.params.checks" .. (problem:find "^%[" and "" or ": ") .. problem) end
  return { list = list, score = opts.score }
end

--- As a task names it: `{ "type": "files", "params": { "checks": [{ "path": "out.csv", "equals": "..." }] } }`.
---@async
---@param ev agentbox.Evidence
---@return number?
---@return string|agentbox.Err
---@return table?
function M.run(ev)
  local opts, problem = M.read(ev.params)
  if not opts then return nil, problem end
  return M.judge(ev, opts)
end

return M
