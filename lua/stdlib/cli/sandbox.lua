--- `agentbox sandbox`: sandboxes from the command line.
local out = require "agentbox.cli._out"

local M = {
  name = "sandbox",
  summary = "run a command or a shell in a sandbox, keep one, check a backend",
}

local BACKEND = { "-b --backend", "NAME", "native, docker, podman or none", default = "native" }
local IMAGE = { "-i --image", "NAME", "what the sandbox is made of; default: host, with Docker and podman python" }

-- The options that make one; `limits` are left as they are by default.
local function spec_of(args)
  local network = args.network
  if args.allow and #args.allow > 0 then network = { allow = args.allow } end
  return { backend = args.backend or "native", image = args.image, network = network, runtime = args.runtime }
end

-- What was asked for, or why it cannot be meant.
local function checked(args, command)
  local spec = spec_of(args)
  if args.network and args.network ~= "none" and type(spec.network) == "table" then
    return nil, { code = "usage", msg = ("sandbox %s: --allow is a network of its own: no --network with it"):format(command) }
  end
  local fine, wrong = require "agentbox.backends._spec".check(spec)
  if not fine then return nil, { code = "usage", msg = ("sandbox %s: %s"):format(command, wrong) } end
  return spec
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
  local spec, wrong = checked(args, "run")
  if not spec then return nil, wrong end
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

local NETWORK = { "--network", "none|full", "of the sandbox", default = "none" }
local ALLOW = { "--allow", "NAME:PORT", "let it reach this and nothing else (repeatable); docs/sandbox.md", repeats = true }
local RUNTIME = { "--runtime", "NAME", "of Docker or podman: runc, runsc, kata" }

local function shell(args)
  local spec, wrong = checked(args, "shell")
  if not spec then return nil, wrong end
  return require "agentbox.cli._sandbox_named".shell(args, spec)
end

local function named(command)
  return function(args) return require "agentbox.cli._sandbox_named"[command](args) end
end

local NAME = { "name", "of the sandbox, as ps shows it" }

M.commands = {
  {
    name = "run", summary = "run one command in a fresh sandbox",
    description = "Makes a sandbox, runs COMMAND in it with its output shown as it comes, and removes it. The exit "
        .. "status is the command's.",
    arguments = { { "command", "program and arguments; write -- before it", args = "+" } },
    options = {
      BACKEND, IMAGE, NETWORK, ALLOW, RUNTIME, { "-u --user", "USER", "who runs it" },
      { "--timeout", "S", "seconds until it is killed", default = "300" },
    },
    run = run,
  },
  {
    name = "shell", summary = "a shell in a fresh sandbox, which others can use by name",
    description = "Makes a sandbox and gives you a shell in it: at a terminal an interactive one, else one that reads commands "
        .. "from stdin. As long as it runs, `sandbox exec`, `diff` and `ps` reach the sandbox from elsewhere. It ends with the "
        .. "shell, with `sandbox rm`, and with this program, however that ends. With --hold there is no shell.",
    options = {
      BACKEND, IMAGE, { "-n --name", "NAME", "how others call it; default: s and the process id" }, NETWORK, ALLOW, RUNTIME,
      { "-u --user", "USER", "whose shell it is" }, { "--hold", "no shell: keep it until `sandbox rm` or Ctrl-C" },
    },
    run = shell,
  },
  {
    name = "ps", summary = "list the sandboxes that shells keep",
    description = "Lists the sandboxes of this user that `sandbox shell` keeps, with the process that has each. Those of runs are "
        .. "their rollouts' own: `agentbox ps`.",
    options = { { "--json", "print one JSON object a line" } },
    run = named "ps",
  },
  {
    name = "exec", summary = "run a command in a sandbox that a shell keeps",
    description = "Runs COMMAND with its output shown as it comes. The exit status is the command's.",
    arguments = { NAME, { "command", "program and arguments; write -- before it", args = "+" } },
    options = {
      { "-u --user", "USER", "who runs it" }, { "--cwd", "DIR", "where it starts; default: the workspace" },
      { "-s --stdin", "give it what comes on stdin" }, { "--timeout", "S", "seconds until it is killed", default = "300" },
    },
    run = named "exec",
  },
  {
    name = "diff", summary = "what was changed in a sandbox that a shell keeps",
    description = "Lists what was added, changed and removed since it began, a path a line.",
    arguments = { NAME }, run = named "diff",
  },
  {
    name = "rm", summary = "end sandboxes that shells keep",
    description = "Ends them, with everything that runs inside, and waits for it. Their shells end too.",
    arguments = { { "name", "of the sandboxes, as ps shows them", args = "+" } }, run = named "rm",
  },
  {
    name = "conform", summary = "check that a backend keeps what sandboxes promise",
    description = "Runs the conformance suite and prints a verdict for each case. A difference that docs/sandbox.md "
        .. "lists is told as such and does not fail. The verdict is remembered, and trajectories made here tell it as "
        .. "sandbox.conform. Exit status: 0 conforms, 1 does not, 3 there is no sandbox.",
    options = {
      BACKEND, IMAGE, { "--only", "TEXT", "cases with this in their id" }, RUNTIME, { "--json", "print JSON" },
    },
    run = conform,
  },
}

return M
