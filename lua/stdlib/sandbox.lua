--- Sandboxes: somewhere to run what a model wrote.
---
---     local sb <close> = assert(ab.sandbox.create { limits = { memory_mb = 512 } })
---     assert(sb:write("t.py", "print(6*7)\n"))
---     local out = assert(sb:exec("python3 t.py", { timeout_s = 10 }))
---     print(out.exit_code, out.stdout)                                          --> 0   42
---
--- A program that fails, is killed or runs too long is an outcome: a table. `nil, err` means that the sandbox itself
--- failed (code `sandbox`), that a cap was exceeded, or that this machine cannot. Relative paths start in the workspace.
local err = require "agentbox.err"
local files = require "agentbox.backends._files"
local fs = require "agentbox.sys.fs"
local gate = require "agentbox.async.gate"
local layers = require "agentbox.backends._layers"
local process = require "agentbox.backends._process"
local specs = require "agentbox.backends._spec"

local M = {}

M.DEFAULT_TIMEOUT_S = 300
M.DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/agentbox/bin"

--- What a sandbox may use when nothing is said; `false` lifts a limit.
M.DEFAULT_LIMITS = { memory_mb = 512, cpu_count = 1, pids_limit = 256, disk_mb = 1024 }

---@class agentbox.SandboxSpec
---@field backend? string          # "native", "docker", "podman"; "none" is no sandbox
---@field image? string            # "host": the host's /usr over a generated root; an image (docs/images.md); an absolute directory
---@field network? "none"|"full"|agentbox.NetworkList
---@field limits? { memory_mb?: number, cpu_count?: number, pids_limit?: integer, disk_mb?: number, inodes?: integer, nofile?: integer }
---@field env? table<string, string>
---@field workspace? string
---@field user? string|integer     # who runs commands and owns new files: a name, a number, "uid:gid"
---@field name? string
---@field runtime? string          # of Docker and podman: "runc", "runsc", "kata"
---@field read_only? boolean       # of Docker and podman: only the workspace and /tmp can be written
---@field layers? agentbox.Layer[] # what freeze() or snapshot() gave
---@field boot_timeout_s? number   # it fails (code sandbox) when it is not ready then; 60. Waiting for a turn does not count

---@class agentbox.Outcome
---@field exit_code integer        # 128 + n after signal n; -1 when timed_out
---@field signal? string           # "SIGKILL"
---@field stdout string            # bytes, the head of them
---@field stderr string
---@field timed_out boolean
---@field oom boolean              # a process was killed because the memory limit was reached
---@field truncated boolean
---@field stdout_dropped integer   # bytes beyond the cap
---@field stderr_dropped integer
---@field usage { cpu_s: number, max_rss_bytes: integer, wall_s: number }
---@field duration_s number

---@class agentbox.Sandbox
---@field id string
---@field kind string              # the backend
---@field workspace string
---@field image string             # as it was asked for
---@field image_id? string         # digest of the image's configuration
local Sandbox = {}
Sandbox.__index = Sandbox
Sandbox.__name = "agentbox.Sandbox"

--- A sandbox of a backend that can freeze; elsewhere the methods are absent, so that a caller can ask for them.
local Freezable = setmetatable({}, { __index = Sandbox })
Freezable.__index = Freezable
Freezable.__name = Sandbox.__name

local function limits_of(given)
  local limits = {}
  for name in pairs(specs.RANGES) do
    local value = given and given[name]
    if value == nil then value = M.DEFAULT_LIMITS[name] end
    if value then limits[name] = value end
  end
  return limits -- memswap_mb: a sandbox never swaps
end

local function environment(of_image, given)
  local env = { PATH = M.DEFAULT_PATH, HOME = "/root", LANG = "C.UTF-8", USER = "root", TERM = "dumb" }
  for name, value in pairs(of_image or {}) do env[name] = value end
  for name, value in pairs(given or {}) do env[tostring(name)] = tostring(value) end
  return env
end

local function backend_of(name)
  if not name:find "^[%l][%l%d_]*$" then return nil, err.new("badarg", "no such sandbox backend: " .. name) end
  local found, backend = pcall(require, "agentbox.backends." .. name)
  if found then return backend end
  return nil, err.new("badarg", ("no such sandbox backend: %s (native, docker, podman and none are built in)"):format(name))
end

-- A thousand rollouts may start in the same moment. Made all at once, their sandboxes would be ready late, and all at the
-- same time, and what has a deadline would miss it: so each waits for its turn.
local booting

local function cores()
  local count = 0
  local list = (fs.read("/proc/self/status", 65536) or ""):match "Cpus_allowed_list:%s*(%S+)" or "0"
  for first, last in list:gmatch "(%d+)%-?(%d*)" do
    count = count + (tonumber(last) or tonumber(first)) - tonumber(first) + 1
  end
  return count
end

local function boots()
  booting = booting or gate.new(2 * cores() + 4)
  return booting
end

---How many sandboxes are made at the same time; the others wait their turn. Unless this is called: twice the cores that
---this process may use, and four.
---@param count integer
function M.limit_boots(count)
  if math.type(count) ~= "integer" or count < 1 then error("limit_boots: a positive integer expected", 2) end
  boots():resize(count)
end

---Waits until no sandbox is being made and none is waited for.
---@async
function M.wait_idle()
  boots():wait_empty()
end

---Keeps native sandboxes ready, so that getting one takes no longer than running a command.
---
---     local pool <close> = ab.sandbox.pool { size = 4 }
---     local sb <close> = assert(pool:claim { image = "python:3.12" })
---
---@param opts { size: integer }   # of each kind that is claimed, 1 to 256
---@return agentbox.SandboxPool
function M.pool(opts)
  return require "agentbox.sandbox.pool".new(opts)
end

---Makes a sandbox and waits until it is ready.
---
--- Raises on unknown options. Returns nil, err when it cannot be made: `unsupported` with the next step when this
--- machine is the reason, `notfound` for the image.
---@async
---@nodiscard
---@param spec? agentbox.SandboxSpec
---@return agentbox.Sandbox? sandbox
---@return agentbox.Err? err
function M.create(spec)
  local wrong
  spec, wrong = specs.check(spec or {})
  if not spec then error("sandbox.create: " .. wrong, 2) end
  local kind = spec.backend or "native"
  local backend, problem = backend_of(kind)
  if not backend then return nil, problem end
  if (spec.runtime or spec.read_only) and not backend.is_container then
    return nil, err.new("unsupported", ("backend %s has no option runtime or read_only"):format(kind))
  end
  if type(spec.network) == "table" and not backend.can_allow then
    return nil, err.new("unsupported", ("backend %s has no list of what may be reached: network is none or full there")
      :format(kind), { hint = "use the native backend, which takes images too" })
  end
  local image = {}
  if backend.image then
    image, problem = backend.image(spec.image or "host")
    if not image then return nil, problem end
  end
  local workspace = spec.workspace or "/workspace"
  if not spec.workspace and specs.is_workspace(image.workdir) and not files.is_kernels({ kind = kind }, image.workdir) then
    workspace = image.workdir
  end
  local turn <close> = boots():enter()
  local raw, after_close
  raw, problem, after_close = backend.create {
    image = image.root or spec.image or "host", network = spec.network or "none", limits = limits_of(spec.limits),
    env = environment(image.env, spec.env), workspace = workspace, layers = spec.layers, name = spec.name,
    runtime = spec.runtime, read_only = spec.read_only, boot_timeout_s = spec.boot_timeout_s,
  }
  turn:release()
  if not raw then return nil, problem end
  local self = setmetatable({
    id = raw:id(), kind = backend.name, workspace = workspace, image = spec.image or "host", image_id = image.id,
    _raw = raw, _image = image, _spec = backend.can_freeze and spec or nil,
  }, backend.can_freeze and Freezable or Sandbox)
  if after_close then self._after_close = after_close end -- a ninth makes the table twice as large
  local user = spec.user or image.user
  if user then
    self._user, problem = files.user(self, user)
    if not self._user then
      self:close()
      return nil, problem
    end
  end
  return self
end

---@class agentbox.ExecOpts
---@field timeout_s? number           # 300 when nothing is said
---@field stdin? string
---@field env? table<string, string|false>   # on top of the sandbox's; false takes one away
---@field cwd? string
---@field user? string|integer
---@field max_output_bytes? integer   # of each stream, 1 MiB when nothing is said
---@field on_output? fun(chunk: string, stream: "stdout"|"stderr")

---Runs a command and waits for its main process: a string under `/bin/sh -c`, or a list of words. When its time is over
---everything that it started is killed and what it printed is kept. Waiting for it can be cancelled, which kills it too.
---@async
---@nodiscard
---@param command string|string[]
---@param opts? agentbox.ExecOpts
---@return agentbox.Outcome? outcome
---@return agentbox.Err? err
function Sandbox:exec(command, opts)
  local raw_opts, problem = process.options(self, opts, "exec")
  if not raw_opts then return nil, problem end
  raw_opts.timeout_s = raw_opts.timeout_s or M.DEFAULT_TIMEOUT_S
  if opts and opts.on_output then return process.streamed(self, command, raw_opts, opts.on_output) end
  return self._raw:exec(command, raw_opts)
end

---The same, but a failure of the sandbox is raised, and ends the rollout as what it is.
---@async
---@param command string|string[]
---@param opts? agentbox.ExecOpts
---@return agentbox.Outcome
function Sandbox:must_exec(command, opts)
  local outcome, problem = self:exec(command, opts)
  if not outcome then error(problem, 0) end
  return outcome
end

---Starts a command and goes on. `pty = true` gives it a terminal of `rows` (24) and `cols` (80), owned by its user: stdout and
---stderr are one stream then, what is written is typed ("\3" is Ctrl-C), and `resize` changes its size.
---@nodiscard
---@param command string|string[]
---@param opts? agentbox.ExecOpts|{ pty?: boolean, rows?: integer, cols?: integer }
---@return agentbox.Process? process
---@return agentbox.Err? err
function Sandbox:spawn(command, opts)
  local raw_opts, problem = process.options(self, opts, "spawn")
  if not raw_opts then return nil, problem end
  local raw
  raw, problem = self._raw:spawn(command, raw_opts)
  if not raw then return nil, problem end
  return process.new(raw)
end

---Starts a shell that stays: what one command sets is there for the next. `agentbox.shell`.
---@async
---@nodiscard
---@param opts? { cwd?: string, user?: string|integer, env?: table<string, string|false> }
---@return agentbox.Shell? shell
---@return agentbox.Err? err
function Sandbox:shell(opts)
  return require "agentbox.shell".open(self, opts)
end

---What it uses now; figures that no controller keeps are absent.
---@return { disk_bytes?: integer, inodes?: integer, memory_bytes?: integer, memory_peak_bytes?: integer, cpu_s?: number, pids?: integer, oom_kills?: integer }? usage
---@return agentbox.Err? err
function Sandbox:usage()
  return self._raw:usage()
end

---@class agentbox.Denial
---@field name? string            # of the host, as it was asked for
---@field address? string
---@field port? integer           # absent for a question for a name
---@field protocol "tcp"|"udp"|"dns"
---@field why "name"|"address"|"port"|"private_address"|"server_name"|"limit"
---@field count integer           # so many times
---@field at number               # first and last, seconds since 1970
---@field last number

---What a sandbox with a list of what it may reach was refused, oldest first: at most 256 different attempts. Stays
---known after the end.
---@return agentbox.Denial[]
function Sandbox:denied()
  return self._raw.denied and self._raw:denied() or {}
end

---Connections through that list: made, failed outside, open now; attempts refused; bytes both ways; names asked for. nil
---for a sandbox without one.
---@return { connections: integer, failed: integer, open: integer, denied: integer, bytes: integer, questions: integer }?
function Sandbox:traffic()
  return self._raw.traffic and self._raw:traffic() or nil
end

---Kills everything that commands started or left running; nothing of it is alive when this returns. Backend none
---does not know what was left.
---@async
---@return true? ok
---@return agentbox.Err? err
function Sandbox:kill_all()
  return self._raw:kill_all()
end

---Kills everything inside and waits until nothing of it is left. May be called twice.
---@async
---@return true
function Sandbox:close()
  self._raw:close()
  local after = self._after_close
  self._after_close = nil
  if after then after() end
  return true
end

Sandbox.__close = Sandbox.close
Freezable.__close = Sandbox.close

files.install(Sandbox)
layers.install(Freezable)

---Copies the tree below a path from one sandbox to another, on a thread. Links stay links; owners and modes are kept;
---FIFOs, sockets and devices are left out and counted.
---@async
---@param from agentbox.Sandbox
---@param path string
---@param to agentbox.Sandbox
---@param to_path string
---@param opts? { max_bytes?: integer, max_entries?: integer }
---@return { files: integer, dirs: integer, links: integer, bytes: integer, skipped: integer }? counts
---@return agentbox.Err? err
function M.copy_tree(from, path, to, to_path, opts)
  return from:copy_tree(path, to, to_path, opts)
end

return M
