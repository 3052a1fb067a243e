--- `agentbox doctor`: what this machine can do, what is missing, and the next step for each.
local out = require "agentbox.cli._out"

local M = {
  name = "doctor",
  summary = "check this machine, its sandbox and a model server",
  description = "Shows versions, what the sandbox can use here and what is missing, and runs a command in a sandbox. "
      .. "With --model or --base-url it asks the model server for a chat and for a tool call.",
  options = {
    { "-m --model", "NAME", "probe this model" },
    { "--base-url", "URL", "of the model server" },
    { "--api-key", "KEY", "its key; better in the environment as OPENAI_API_KEY" },
    { "--skip-tools", "do not probe tool calls" },
    { "--prune", "also remove what dead engines left behind" },
    { "--json", "print JSON" },
  },
  epilog = "Exit status: 0 everything works, 2 bad usage, 3 the sandbox or a probe failed.",
}

---@class agentbox.Check
---@field name string
---@field ok boolean
---@field detail string
---@field hint? string       # the next step
---@field optional? boolean  # its absence is not a failure

-- A sandbox made, used and destroyed: the only proof that counts.
local function self_test()
  local time = require "agentbox.sys.time"
  local began = time.monotonic()
  local sb, err = require "agentbox.sandbox".create {}
  if not sb then
    return { name = "sandbox", ok = false, detail = tostring(err.msg), hint = err.hint }
  end
  local _ <close> = sb
  local result, bad = sb:exec("echo $((6 * 7))", { timeout_s = 10 })
  if not result then return { name = "sandbox", ok = false, detail = tostring(bad.msg), hint = bad.hint } end
  local right = result.exit_code == 0 and result.stdout == "42\n"
  sb:close()
  return {
    name = "sandbox", ok = right,
    detail = right and ("created, ran a command, destroyed in %.0f ms"):format((time.monotonic() - began) * 1000)
        or ("the command gave %s, not 42"):format(out.line(result.stdout)),
  }
end

local function model_checks(args)
  if not (args.model or args.base_url) then return {} end
  local parts = require "agentbox.cli._run"
  if not args.model then
    return nil, { code = "usage", msg = "doctor: --base-url needs --model as well" }
  end
  local config, err = parts.config { model = args.model, base_url = args.base_url, api_key = args.api_key }
  if not config then return nil, err end
  local model
  model, err = parts.model(config, 1)
  if not model then return nil, err end
  local _ <close> = model
  local probe = require "agentbox.probe"
  local checks = {}
  for _, result in ipairs(args.skip_tools and { probe.chat(model) } or probe.run(model)) do
    checks[#checks + 1] = {
      name = result.kind, ok = result.ok, hint = result.hint,
      detail = ("%s at %s: %s"):format(args.model, result.base_url or "the default server", out.line(result.message)),
    }
  end
  return checks
end

local function append(list, more)
  return table.move(more, 1, #more, #list + 1, list)
end

local function print_checks(checks)
  for _, check in ipairs(checks) do
    local mark = check.ok and out.paint(1, "green", "ok  ") or check.optional and out.paint(1, "dim", "-   ")
        or out.paint(1, "red", "FAIL")
    io.stdout:write(("%s  %-12s %s\n"):format(mark, check.name, out.line(check.detail)))
    if not check.ok and check.hint then io.stdout:write("      next: ", out.line(check.hint), "\n") end
  end
end

local function prune_check()
  return { name = "prune", ok = true, detail = ("removed %d"):format(require "agentbox.sys.sandbox".sweep()) }
end

function M.run(args)
  local models, err = model_checks(args)
  if not models then return nil, err end
  local machine = require "agentbox.cli._machine"
  local checks = machine.versions()
  local place, more = machine.place()
  checks[#checks + 1] = place
  append(checks, machine.sandbox())
  local proof = self_test()
  if not proof.ok then proof.hint = proof.hint or more end
  checks[#checks + 1] = proof
  if proof.ok then checks[#checks + 1] = machine.trees() end
  checks[#checks + 1] = machine.images()
  append(checks, models)
  if args.prune then checks[#checks + 1] = prune_check() end
  local failed = 0
  for _, check in ipairs(checks) do
    if not check.ok and not check.optional then failed = failed + 1 end
  end
  if args.json then
    io.stdout:write(require "agentbox.json".encode { ok = failed == 0, checks = checks }, "\n")
  else
    print_checks(checks)
    io.stdout:write(failed == 0 and "overall ok\n" or ("overall FAIL: %d of %d\n"):format(failed, #checks))
  end
  return failed == 0 and 0 or 3
end

return M
