--- generate/language.lua: what a task factory knows about a programming language; each is one file in languages/.
---
---     return require("agentbox.generate.language").define {
---       api = 1, name = "c", extensions = { "c", "h" }, comment = "//", stub = "abort();",
---       is_test = function(path) ... end,                 -- which files are tests
---       support = { ["tests/run.sh"] = ... },             -- files of ours, laid over the teacher's
---       teach = "...", example = { ... } }
---
--- A language's tests are run by `sh tests/run.sh` unless it says otherwise. That script ends its output with a line
--- `# pass N fail M` when tests ran, whatever they said, and with status 0 only when all passed: so a build that fails, a
--- missing program and a program that left early are told from a test that failed.
local regions = require "agentbox.generate.regions"
local schema = require "agentbox.schema"
local text_ = require "agentbox.text"

local M = {}

---@class agentbox.Language
---@field name string
---@field extensions string[]
---@field is_test fun(path: string): boolean
---@field verifier table                                 # of tasks whose author gave none that fits
---@field support table<string, { bytes: string, mode: integer }>
---@field protect string[]                               # what steers the tests
---@field program string[]                               # words that must be programs in the sandbox
---@field dynamic boolean                                # whether a moved clock can be put under it (libfaketime)
---@field teach string                                   # what a teacher is told about files, tests and stubs
---@field example table                                  # files, solution, description: a whole small task
---@field stub fun(path: string, text: string, read?: table): string?, string?
---@field run fun(box: agentbox.Sandbox, task: agentbox.Task, opts: agentbox.TestRun): agentbox.TestReport?, agentbox.Err?
---@field mutants fun(files: table<string, string>, opts: { seed: integer, max: integer, workshop: agentbox.Workshop }): table[]?, agentbox.Err?
---@field cheat fun(path: string): string                # what a trivial cheat puts into a source file
---@field blunt fun(path: string, text: string): string  # and into a test
---@field plants table<string, { bytes: string, mode: integer }>   # files that a cheat adds beside them

---@class agentbox.TestRun
---@field workspace string
---@field seed? integer        # random order
---@field env? table<string, string>
---@field timeout_s number

---@class agentbox.TestReport
---@field kind "passed"|"failed"|"broken"   # broken: no test gave a verdict, so nothing is known about the work
---@field why string
---@field passed integer
---@field failed integer
---@field duration_s number

local FIELDS = {
  api = { "integer", required = true, min = 1, max = 1 }, name = { "string", required = true },
  extensions = { "list", of = { "string" }, required = true }, is_test = { "function", required = true },
  comment = { "string" }, stub = { "string|function", required = true }, verifier = { "map" }, support = { "map" },
  protect = { "list", of = { "string" } }, programs = { "list", of = { "string" } }, dynamic = { "boolean", default = true },
  teach = { "string", required = true }, example = { "map" }, run = { "function" }, mutants = { "function" },
  cheat = { "string", required = true }, blunt = { "string|function", default = "" }, plants = { "map" }, command = { "string", default = "sh tests/run.sh" },
}

local function tail(out)
  local said = (out.stdout .. "\n" .. out.stderr):gsub("%s+$", "")
  return text_.scrub(said:sub(-400))
end

--- Reads what a run of `tests/run.sh` left.
---@param out agentbox.Outcome
---@param timeout_s number
---@return agentbox.TestReport
function M.report(out, timeout_s)
  local report = { kind = "broken", passed = 0, failed = 0, duration_s = out.duration_s }
  local pass, fail = out.stdout:match "# pass (%d+) fail (%d+)%s*$"
  if out.timed_out then
    report.why = ("no result within %g s"):format(timeout_s)
  elseif out.exit_code == 126 or out.exit_code == 127 then
    report.why = "a program is missing: " .. tail(out)
  elseif not pass then
    report.why = ("no test gave a verdict (exit code %s): %s"):format(out.exit_code, tail(out))
  else
    report.passed, report.failed = math.tointeger(tonumber(pass)), math.tointeger(tonumber(fail))
    if report.failed > 0 then
      report.kind, report.why = "failed", ("%d of %d tests failed"):format(report.failed, report.passed + report.failed)
    elseif report.passed > 0 and out.exit_code == 0 then
      report.kind, report.why = "passed", ("%d tests passed"):format(report.passed)
    else
      report.why = ("%d tests, exit code %s: %s"):format(report.passed, out.exit_code, tail(out))
    end
  end
  return report
end

local function runner(command)
  return function(box, _, opts)
    local env = { CHECK_SEED = opts.seed and tostring(opts.seed) or nil }
    for name, value in pairs(opts.env or {}) do env[name] = value end
    local out, problem = box:exec(command, { timeout_s = opts.timeout_s, cwd = opts.workspace, env = env })
    if not out then return nil, problem end
    return M.report(out, opts.timeout_s)
  end
end

local function support_of(given)
  local out = {}
  for path, file in pairs(given or {}) do
    out[path] = type(file) == "string" and { bytes = file, mode = 420 } or { bytes = file.bytes or file[1], mode = 493 }
  end
  return out
end

--- Declares a language. Raises on what is missing or misspelt.
---@param given table
---@return agentbox.Language
function M.define(given)
  local self = schema.options(given, FIELDS, "generate.language")
  self.support = support_of(self.support)
  self.verifier = self.verifier or { type = "command", command = self.command, timeout_s = 120 }
  self.protect = self.protect or { "tests/**" }
  self.run = self.run or runner(self.command)
  if type(self.stub) == "string" then
    local line = self.stub
    self.stub = function(path, text) return regions.strip(path, text, line) end
  end
  self.mutants = self.mutants or regions.mutants
  local cheat = self.cheat
  self.cheat = function() return cheat end
  if type(self.blunt) == "string" then
    local blunt = self.blunt
    self.blunt = function() return blunt end
  end
  self.plants = support_of(self.plants)
  return self
end

--- The languages that are built in.
M.NAMES = { "python", "javascript", "go", "c", "shell" }

--- A language by its name or as a table; overlays may add agentbox/generate/languages/NAME.lua.
---@param what string|table
---@return agentbox.Language? language
---@return string? problem
function M.find(what)
  if type(what) == "table" then return what.run and what.teach and what or M.define(what) end
  local name = tostring(what):lower()
  if not name:find "^%l[%l%d_]*$" then return nil, "no such language: " .. name end
  local module = "agentbox.generate.languages." .. name
  local ok, found = pcall(require, module)
  if ok then return found end
  if not tostring(found):find("module '" .. module .. "' not found", 1, true) then error(found, 0) end
  return nil, ("no such language: %s%s"):format(name, schema.suggest(name, M.NAMES))
end

--- Whether a path is a source file of a language.
---@param language agentbox.Language
---@param path string
---@return boolean
function M.is_source(language, path)
  local ending = path:match "%.([%w_]+)$"
  for _, one in ipairs(language.extensions) do
    if one == ending then return true end
  end
  return false
end

--- Whether a path lies in a folder of tests. `latest.py` and `contest/x.py` do not.
---@param path string
---@return boolean
function M.in_tests(path) return path:find "^tests?/" ~= nil or path:find "/tests?/" ~= nil end

return M
