---@meta

---@class agentbox.sys.time
local time = {}

---@return number seconds   # of a clock that never jumps
function time.monotonic() end
---@return number seconds   # unix time
function time.now() end
---@param t number
---@return string   # "2026-01-02T03:04:05.000001Z"
function time.iso(t) end
---@param t number
---@return string   # "2026-01-02 03:04:05" in the machine's zone
function time.local_date(t) end

---@class agentbox.sys.hash
local hash = {}

---@param bytes string
---@param n? integer   # of the first n bytes
---@return string   # 64 digits
function hash.sha256(bytes, n) end
---@param text string
---@param before string
---@param behind string
---@return string   # the text without its last byte, `before`, the digits of the SHA-256 up to there, `behind`
function hash.seal(text, before, behind) end
---@return agentbox.Hasher
function hash.hasher() end

---@class agentbox.sys.count
---@field instructions? fun(on?: boolean): integer   # executed by Lua while it was on; absent without failure points

---@class agentbox.sys.fields
---@field KINDS table<string, integer>
local fields = {}

---@alias agentbox.sys.FieldRule integer|{ [1]: integer, fields?: agentbox.sys.FieldPlan, of?: agentbox.sys.FieldRule, enum?: any[], min?: number, max?: number }
---@class agentbox.sys.FieldPlan
---@field [1] table<string, agentbox.sys.FieldRule>
---@field [2] table<string, any>   # defaults
---@field [3] string[]             # required
---@field [4] integer              # fields of the last copy

---@param map any
---@param plan agentbox.sys.FieldPlan
---@return table?   # a copy with its defaults; nil when it is not certain that all is right
function fields.check(map, plan) end

---@class agentbox.sys.list
local list = {}

---@param a table[]
---@param b table[]
---@param name string
---@param values table
---@param from integer
---@param to integer
---@return boolean   # whether these elements are the same ones, and `name` in them is the value at that place, false for none
function list.same(a, b, name, values, from, to) end
---@param t table
---@param names table<any, boolean>
---@return boolean   # whether all keys are in the set, and no value is JSON's null
function list.only(t, names) end

---@class agentbox.sys.scratch
local scratch = {}

---@param dir string
---@param near_bytes? integer   # how much of it may be in memory; default none
---@return agentbox.Scratch?   # a file without a name
---@return agentbox.Err?
function scratch.open(dir, near_bytes) end

---@class agentbox.Scratch
---@field log fun(self: agentbox.Scratch): agentbox.ScratchLog
---@field size fun(self: agentbox.Scratch): integer   # bytes that were in use, those in memory among them
---@field close fun(self: agentbox.Scratch)           # its logs stay until they are closed, too

---@class agentbox.ScratchLog
---@field add fun(self: agentbox.ScratchLog, text: string, between?: string): integer?, agentbox.Err?   # its place
---@field get fun(self: agentbox.ScratchLog, place: integer): string?, agentbox.Err?
---@field span fun(self: agentbox.ScratchLog, first: integer, last: integer, before: string, behind: string): string?, agentbox.Err?
---@field fill fun(self: agentbox.ScratchLog, list: (string|integer)[]): string[]?, agentbox.Err?   # texts for places
---@field close fun(self: agentbox.ScratchLog)

---@class agentbox.sys.rand
local rand = {}

---@param n integer
---@return string   # from the kernel
function rand.bytes(n) end
---@return string
function rand.uuid4() end
---@param seed integer|string
---@return agentbox.Rand
function rand.new(seed) end

---@class agentbox.sys.log
local log = {}

---@param level "debug"|"info"|"warn"|"error"
---@param text string
function log.write(level, text) end
---@param level "debug"|"info"|"warn"|"error"|"off"
function log.set_level(level) end
--- The print of every fiber: to the function `log` in its locals, else to standard output.
---@param ... any
function log.print(...) end

---@class agentbox.sys.err
---@field metatable table     # of error values
---@field codes string[]      # the codes that C knows
local err = {}

--- What the library knows about modules; sealed.
---@class agentbox.loader
local loader = {}

---@return string[]   # names of the library's modules, sorted
function loader.builtins() end
---@param name string
---@return string? text
function loader.builtin_source(name) end
--- The shipped module, never an overlay's.
---@param name string
---@return any
function loader.builtin(name) end
---@return string[]   # folders, the one that wins first
function loader.overlays() end
---@param dirs string[]
function loader.set_overlays(dirs) end
---@param dir string?   # the folder of the script that runs
function loader.set_script_dir(dir) end
---@param foreign? boolean   # only what did not come with the engine
---@return { name: string, from: string, sha256: string, api?: integer }[]   # loaded so far, sorted by name
function loader.modules(foreign) end

return { time = time, hash = hash, rand = rand, log = log, err = err, loader = loader }
