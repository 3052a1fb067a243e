--- verifiers/pytest.lua: pytest whose verdict the tested code can't write.
---
--- Success is: the expected exit code, and a complete report signed with this run's key, in which every expected test
--- passed and nothing that decides over passing was replaced. Expected are the ids that the task's own tests have in
--- a sandbox no agent has touched (or the task's `expect`). How the run is shielded: pytest_run.lua; what is left:
--- docs/security.md.
local command = require "agentbox.verifiers.command"
local command_line = require "agentbox.verify.command_line"
local err = require "agentbox.err"
local evidence = require "agentbox.verify.evidence"
local expected = require "agentbox.verify.expected"
local glob = require "agentbox.glob"
local hmac = require "agentbox.verify.hmac"
local json = require "agentbox.json"
local program = require "agentbox.verifiers.pytest_run"
local protect = require "agentbox.verify.protect"
local rand = require "agentbox.sys.rand"

local M = {}

local MAX_REPORT = 64 << 20
--- Collecting imports the task's own code only; that it takes this long is the task's fault.
local COLLECT_TIMEOUT_S = 120

local function hex(bytes)
  return (bytes:gsub(".", function(char) return ("%02x"):format(char:byte()) end))
end

--- The call of pytest that a verifier describes; nil when its command is something else.
---@param spec table
---@return agentbox.PytestCall?
---@return string line
function M.call_of(spec)
  local line = spec.command
  if not line or not line:find("%S") then
    line = "python -m pytest -q" .. (spec.path and " '" .. spec.path:gsub("'", "'\\''") .. "'" or "")
  end
  return command_line.pytest(line), line
end

local function has_option(args, ...)
  for _, arg in ipairs(args) do
    for _, name in ipairs { ... } do
      if arg == name or arg:sub(1, #name + 1) == name .. "=" then return true end
    end
  end
  return false
end

local WORKER_OPTIONS = { ["-n"] = true, ["--numprocesses"] = true, ["--dist"] = true, ["--maxprocesses"] = true }

--- Worker processes of xdist would start interpreters of their own, unshielded; the tests run in one process instead.
local function without_workers(args)
  local out, skip = {}, false
  for _, arg in ipairs(args) do
    local name = arg:match("^(%-%-[%w-]+)=") or arg:match("^(%-n)%w+$")
    if skip then
      skip = false
    elseif WORKER_OPTIONS[arg] then
      skip = true
    elseif not (name and WORKER_OPTIONS[name]) then
      out[#out + 1] = arg
    end
  end
  return out
end

--- Arguments that fix the root and the configuration. A planted configuration file is then never read.
local function arguments(ev, call, scratch)
  local args = {}
  if not has_option(call.args, "-c", "--config-file") then
    local name = protect.pytest_config(ev.task)
    args[#args + 1] = "-c"
    args[#args + 1] = name and ev.workspace .. "/" .. name or scratch .. "/none.ini"
  end
  if not has_option(call.args, "--rootdir") then args[#args + 1] = "--rootdir=" .. ev.workspace end
  if not has_option(call.args, "--confcutdir") then args[#args + 1] = "--confcutdir=" .. ev.workspace end
  args[#args + 1] = "-o"
  args[#args + 1] = "cache_dir=" .. scratch .. "/cache"
  local rest = without_workers(call.args)
  return table.move(rest, 1, #rest, #args + 1, args)
end

local function blocked_plugins(args)
  local out = json.array {}
  for i, arg in ipairs(args) do
    local name = arg:match("^-p(no:.+)$") or arg == "-p" and args[i + 1] and args[i + 1]:match("^no:.+$")
    if name then out[#out + 1] = name end
  end
  return out
end

local function read_report(sb, scratch, key)
  local bytes, problem = sb:read(scratch .. "/report", { max_bytes = MAX_REPORT })
  if not bytes then
    if err.infra(problem) then return nil, problem end
    return nil, "no report: the run ended before pytest did"
  end
  local signature, body = bytes:match("^(%x+)\n(.*)$")
  if not body or hmac.sha256(key, body) ~= signature then return nil, "the report is not ours" end
  local report = json.decode(body)
  if type(report) ~= "table" then return nil, "the report cannot be read" end
  return report
end

---@param sb agentbox.Sandbox
---@param ev agentbox.Evidence
---@param call agentbox.PytestCall
---@param opts { mode: "run"|"collect", timeout_s: number, test_files: string[], trusted: string[], usual: string[] }
---@return agentbox.Outcome? out
---@return agentbox.Err|table|nil report_or_err   # the report; nil when there is none
---@return string? missing                        # why there is no report
local function run_pytest(sb, ev, call, opts)
  local nonce, key = hex(rand.bytes(16)), rand.bytes(32)
  local scratch = "/tmp/agentbox-" .. nonce
  local ok, problem = sb:mkdir(scratch, { mode = 511 }) -- 0777: the tests may run as a user of their own
  if ok then ok, problem = sb:write(scratch .. "/none.ini", "[pytest]\n", { mode = 420 }) end
  if not ok then return nil, opts.mode == "run" and evidence.blame(problem, "preparing the run") or problem end
  local out
  out, problem = sb:exec({ call.python, "-I", "-c", program.SOURCE }, {
    cwd = ev.workspace, env = call.env, user = ev.user, timeout_s = opts.timeout_s, max_output_bytes = command.MAX_OUTPUT,
    stdin = json.encode {
      mode = opts.mode, workspace = ev.workspace, scratch = scratch, key = hex(key),
      args = json.array(arguments(ev, call, scratch)), blocked = blocked_plugins(call.args),
      cwd_on_path = call.cwd_on_path, test_files = json.array(opts.test_files), trusted = json.array(opts.trusted),
      usual = json.array(opts.usual),
    },
  })
  if not out then return nil, problem end
  if out.timed_out then return out, nil, ("no result within %g s"):format(opts.timeout_s) end
  local report, missing = read_report(sb, scratch, key)
  if err.is(missing) then return nil, missing end
  return out, report, missing
end

local is_test_file = glob.compile { "test_*.py", "*_test.py" }

--- Ids that the task's tests have before any agent: once per task and image, whoever asks first.
local function collect(ev, call)
  local sb <close>, problem = ev:pristine() -- luacheck: ignore
  if not sb then return nil, problem end
  local trusted = ev:trusted_files()
  local test_files = {}
  for _, name in ipairs(trusted) do
    if is_test_file(name) then test_files[#test_files + 1] = name end
  end
  local out, report, missing = run_pytest(sb, ev, call, {
    mode = "collect", timeout_s = COLLECT_TIMEOUT_S, test_files = test_files, trusted = trusted, usual = {},
  })
  if not out then return nil, report end
  if not report or report.error then
    local why = report and report.error or missing
    return nil, err.new("verifier", ("pytest could not collect the task's tests: %s: %s"):format(
      why, (out.stderr .. out.stdout):sub(-2000)))
  end
  if #trusted == 0 then report.ids, report.names = json.array {}, json.array {} end
  return report
end

--- What must pass, and what an untouched sandbox has that would look like tampering.
local function expectations(ev, call)
  local report, problem = ev:once("pytest " .. json.encode({ call, ev.spec.protect or false }, { sorted = true }), function()
    return collect(ev, call)
  end)
  local usual = {}
  for _, kind in ipairs { "strange", "replaced" } do
    for _, name in ipairs(report and report[kind] or {}) do usual[#usual + 1] = name end
  end
  if ev.spec.expect then return expected.from_list(ev.spec.expect), usual end
  if not report then return nil, problem end
  return expected.from_report(report), usual
end

--- Whether the run counts at all, before anybody looks at single tests.
local function trustworthy(ev, out, report, missing)
  if not report then
    if out.exit_code == 0 then ev:suspect("the process under test ended itself with status 0 before pytest was done") end
    return false, missing
  end
  if report.error then return false, report.error end
  if #report.rewritten > 0 then
    ev:suspect("rewritten while the tests ran: " .. table.concat(report.rewritten, ", "))
  end
  if #report.strange == 0 then return true end
  ev:suspect("replaced while the tests ran: " .. table.concat(report.strange, ", "))
  return false, "the tested code replaced parts of the test runner"
end

--- Success, the share of the expected tests that passed, and why.
local function judge(ev, out, report, missing, want)
  local trusted, why = trustworthy(ev, out, report, missing)
  if not trusted then return false, 0, why end
  local met, unmet = expected.check(want, report)
  if unmet and #report.replaced > 0 then
    ev:suspect("other code ran than the task's file has: " .. table.concat(report.replaced, ", "))
  end
  local share = want.count > 0 and met / want.count or 0
  local code = ev.spec.success_exit_code
  if report.exit ~= code or out.exit_code ~= code then
    return false, share, ("pytest ended with %s; %s"):format(report.exit, unmet or "all expected tests passed")
  end
  if code ~= 0 then return true, share, "exit code as expected" end
  if unmet then return false, share, unmet end
  return true, 1, ("%d tests passed"):format(expected.count_passed(report))
end

local function counts(report)
  local out = { passed = 0, failed = 0, skipped = 0, xfailed = 0 }
  for _, outcome in pairs(report and report.outcomes or {}) do out[outcome[1]] = (out[outcome[1]] or 0) + 1 end
  return out
end

---@async
---@param ev agentbox.Evidence
---@return number?
---@return string|agentbox.Err?
---@return table? facts
function M.run(ev)
  local spec = ev.spec
  local call, line = M.call_of(spec)
  if not call then return command.run(ev) end
  local want, usual = expectations(ev, call)
  if not want then return nil, usual end
  local out, report, missing = run_pytest(ev.sandbox, ev, call, {
    mode = "run", timeout_s = spec.timeout_s, test_files = {}, trusted = ev:trusted_files(), usual = usual,
  })
  if not out then return nil, report end
  local facts = command.facts(out, line)
  local success, share, why = judge(ev, out, report, missing, want)
  facts.success, facts.report = success, { tests = counts(report), expected = want.count, share = share, verdict = why }
  facts.report.failed = expected.failed_ids(report)
  if spec.score == "fraction" then
    return spec.reward_failure + share * (spec.reward_success - spec.reward_failure), why, facts
  end
  return success and spec.reward_success or spec.reward_failure, why, facts
end

return M
