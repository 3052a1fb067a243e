--- `agentbox sandbox`: sandboxes from the command line.
local out = require "agentbox.cli._out"

local M = {
  name = "sandbox",
  summary = "run a command in a sandbox, check a backend",
}

local BACKEND = { "-b --backend", "NAME", "native, docker, podman or none", default = "native" }
local IMAGE = { "-i --image", "NAME", "what the sandbox is made of; default: host, with Docker and podman python" }

-- The options that make one; `limits` are left as they are by default.
local function spec_of(args)
  return { backend = args.backend or "native", image = args.image, network = args.network, runtime = args.runtime }
end

-- ---------------------------------------------------------------- conform

local COLOURS = { ok = "green", FAIL = "red", differs = "yellow", skipped = "dim" }

local function put_verdict(verdict)
  local mark = out.paint(1, COLOURS[verdict.verdict], ("%-7s"):format(verdict.verdict))
  io.stdout:write(("%s  %-22s %s\n"):format(mark, verdict.id, out.line(verdict.what)))
  if verdict.why then io.stdout:write("         ", out.line(verdict.why), "\n") end
  io.stdout:flush()
end

local function conform(args)
  -- One that is not there is not one that fails every case.
  local sb, err = require "agentbox.sandbox".create(spec_of(args))
  if not sb then return nil, err end
  sb:close()
  local counts, verdicts = { ok = 0, differs = 0, skipped = 0, FAIL = 0 }, {}
  for verdict in require "agentbox.conform".run(spec_of(args), args.only) do
    counts[verdict.verdict] = counts[verdict.verdict] + 1
    verdicts[#verdicts + 1] = verdict
    if not args.json then put_verdict(verdict) end
  end
  local fine = counts.FAIL == 0 and #verdicts > 0
  if not args.only then
    local noted, why = require "agentbox.conform.verdict".note(args.backend or "native", verdicts)
    if not noted then require "agentbox.log".warn("the verdict is not remembered: " .. why.msg) end
  end
  if args.json then
    local json = require "agentbox.json"
    io.stdout:write(json.encode { backend = args.backend or "native", image = args.image, ok = fine, counts = counts,
      cases = json.array(verdicts) }, "\n")
  else
    io.stdout:write(("%s %s: %d ok, %d differ as documented, %d not applicable, %d failed\n"):format(
      fine and "conforms" or "does NOT conform", args.backend or "native", counts.ok, counts.differs, counts.skipped, counts.FAIL))
  end
  return fine and 0 or 1
end

-- ---------------------------------------------------------------- run

local function run(args)
  local spec = spec_of(args)
  local timeout_s = tonumber(args.timeout or 300)
  if not timeout_s then return nil, { code = "usage", msg = "sandbox run: --timeout wants a number of seconds" } end
  local sb, err = require "agentbox.sandbox".create(spec)
  if not sb then return nil, err end
  local _ <close> = sb
  local os_ = require "agentbox.sys.os"
  local result
  result, err = sb:exec(args.command, {
    timeout_s = timeout_s, user = args.user,
    on_output = function(chunk, stream) os_.write(stream == "stdout" and 1 or 2, chunk) end,
  })
  if not result then return nil, err end
  if result.timed_out then return nil, { code = "timeout", msg = ("the command did not end within %g s"):format(timeout_s) } end
  return result.exit_code
end

M.commands = {
  {
    name = "run", summary = "run one command in a fresh sandbox",
    description = "Makes a sandbox, runs COMMAND in it with its output shown as it comes, and removes it. The exit "
        .. "status is the command's.",
    arguments = { { "command", "program and arguments; write -- before it", args = "+" } },
    options = {
      BACKEND, IMAGE, { "--network", "none|full", "of the sandbox", default = "none" },
      { "--runtime", "NAME", "of Docker or podman: runc, runsc, kata" }, { "-u --user", "USER", "who runs it" },
      { "--timeout", "S", "seconds until it is killed", default = "300" },
    },
    run = run,
  },
  {
    name = "conform", summary = "check that a backend keeps what sandboxes promise",
    description = "Runs the conformance suite and prints a verdict for each case. A difference that docs/sandbox.md "
        .. "lists is told as such and does not fail. The verdict is remembered, and trajectories made here tell it as "
        .. "sandbox.conform. Exit status: 0 conforms, 1 does not, 3 there is no sandbox.",
    options = {
      BACKEND, IMAGE, { "--only", "TEXT", "cases with this in their id" },
      { "--runtime", "NAME", "of Docker or podman: runc, runsc, kata" }, { "--json", "print JSON" },
    },
    run = conform,
  },
}

return M
