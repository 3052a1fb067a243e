---@meta agentbox.sys.sandbox
--- Private: native sandboxes and plain directories, for `agentbox.sandbox`. Paths are absolute; what waits suspends the fiber.

local M = {}

---@class agentbox.sys.SandboxSpec
---@field image? string            # "host" or an absolute directory
---@field layers? agentbox.Layer[] # at most one, the topmost
---@field network? "none"|"full"
---@field hostname? string
---@field workspace? string
---@field memory_bytes? number     # this and the next two: nil or 0 for no limit
---@field pids? number
---@field cpus? number
---@field disk_bytes? number
---@field inodes? number
---@field nofile? number
---@field env? table<string, string>   # all of it; nothing is added
---@field allow? { rules: string[], hosts?: table<string, string>, max_connections?: integer, max_mb?: number, idle_timeout_s?: number }

---@class agentbox.Layer
local Layer = {}

--- Frees it, when no sandbox stands on it any more. May be called twice.
function Layer:close() end

--- The directories of changes, lowest first, as paths that a child of this process can open.
---@return string[]
function Layer:parts() end

---@class agentbox.sys.Sandbox
local Sandbox = {}

---@async
---@param spec agentbox.sys.SandboxSpec
---@return agentbox.sys.Sandbox? sandbox
---@return agentbox.Err? err
function M.create(spec) end

--- No sandbox: a directory of the host that stands for the root.
---@param spec { root: string, workspace?: string, env?: table<string, string> }
---@return agentbox.sys.Sandbox? sandbox
---@return agentbox.Err? err
function M.plain(spec) end

--- Facts that cost nothing to find; whether a sandbox works is told by making one.
---@return { kernel: string, root: boolean, cgroup: { level: string, memory: boolean, pids: boolean, cpu: boolean, kill: boolean, why?: string } }
function M.probe() end

---@param dry? boolean
---@return integer count    # sandboxes of dead engines that were removed, or would be
function M.sweep(dry) end

--- Whether rules and hosts are well formed.
---@param list { rules: string[], hosts?: table<string, string> }
---@return true? ok
---@return agentbox.Err? err
function M.check_allow(list) end

--- Removes what is kept of sandboxes that are gone, for those to come.
function M.forget() end

--- The program that is pid 1 of a container: a static executable.
---@return string
function M.guest() end

---@class agentbox.sys.CommandOpts
---@field stdin? string
---@field env? table<string, string|false>
---@field cwd? string
---@field uid? integer
---@field gid? integer
---@field timeout_s? number
---@field max_output_bytes? integer
---@field nofile? integer
---@field pty? boolean
---@field rows? integer
---@field cols? integer

---@async
---@param command string|string[]
---@param opts? agentbox.sys.CommandOpts
---@return agentbox.Outcome? outcome
---@return agentbox.Err? err
function Sandbox:exec(command, opts) end

---@param command string|string[]
---@param opts? agentbox.sys.CommandOpts
---@return agentbox.sys.Process? process
---@return agentbox.Err? err
function Sandbox:spawn(command, opts) end

---@async
---@return true
function Sandbox:close() end

---@async
---@param look? boolean   # its files can be read until it is closed, where that is possible
---@return agentbox.Layer? layer
---@return boolean|agentbox.Err looks_or_err
function Sandbox:freeze(look) end

---@async
---@return agentbox.Layer? layer
---@return agentbox.Err? err
function Sandbox:snapshot() end

---@async
---@param base? agentbox.Layer|"image"
---@param max? integer
---@return agentbox.Difference[]? differences
---@return agentbox.Err? err
function Sandbox:diff(base, max) end

---@async
---@return true? ok
---@return agentbox.Err? err
function Sandbox:kill_all() end

---@return table? usage
---@return agentbox.Err? err
function Sandbox:usage() end

---@return string
function Sandbox:id() end

---@return integer?
function Sandbox:pid() end

---@return boolean
function Sandbox:is_open() end

--- Whether its first process lives.
---@return boolean
function Sandbox:is_alive() end

---@return integer
function Sandbox:user_count() end

--- The host's ids of user 0 and of users 1.. inside, and how many there are.
---@return integer first
---@return integer rest
---@return integer count
function Sandbox:ids() end

--- What a sandbox with a list was refused, from number `from` on.
---@param from? integer
---@return agentbox.Denial[]
function Sandbox:denied(from) end

---@return { connections: integer, failed: integer, open: integer, denied: integer, bytes: integer, questions: integer }?
function Sandbox:traffic() end

--- Starts what carries network full.
---@param setpriv string
---@param pasta string
---@return true? ok
---@return agentbox.Err? err
function Sandbox:wire(setpriv, pasta) end

---@return boolean
function Sandbox:is_wired() end

---@param path string
---@param max? integer
---@param head? boolean   # a longer file gives its head
---@return string? bytes
---@return agentbox.Err? err
function Sandbox:read(path, max, head) end

---@param path string
---@param bytes string
---@param opts? { append?: boolean, exclusive?: boolean, mode?: integer, uid?: integer, gid?: integer }
---@return true? ok
---@return agentbox.Err? err
function Sandbox:write(path, bytes, opts) end

---@class agentbox.sys.Process
local Process = {}

--- nil at the end of the stream; nil, err when nothing came in time.
---@async
---@param max? integer
---@param timeout_s? number
---@return string? bytes
---@return agentbox.Err? err
function Process:read(max, timeout_s) end

--- What came of stdout and of stderr, and whether the command is over.
---@async
---@return string? out
---@return string? err
---@return boolean over
function Process:next() end

---@async
---@param bytes string
---@return true? ok
---@return agentbox.Err? err
function Process:write(bytes) end

---@async
---@param timeout_s? number
---@return agentbox.Outcome? outcome
---@return agentbox.Err? err
function Process:wait(timeout_s) end

function Process:kill() end

return M
