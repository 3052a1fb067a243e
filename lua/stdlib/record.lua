--- The recorder: what one rollout did, as one `agentbox.trajectory/1` line (docs/trajectories.md).
---
--- Messages form a graph of nodes (`p` is the parent), so that a fork, a compaction or a second speaker is a branch
--- and never an edit. A message is encoded when it is handed over: what is changed later in Lua is not in the record.
--- Every text passes the registry of secrets before it is kept.
---
---     rec = record.new { run_id = "r1", id = "r1-0", task = task, model = model:describe() }
---     leaf = rec:message(prompt, { origin = "prompt" })
---     c = rec:call { response = response, request = request, leaf = leaf }
---     node = rec:message(response.message, { origin = "sampled", call = c })
---     traj = rec:finish { status = "completed", stop = { reason = "final_answer" },
---                         reward = { scored = true, value = 1.0 } }
local calls = require "agentbox.record.call"
local check = require "agentbox.record.check"
local json = require "agentbox.json"
local line_of = require "agentbox.record.line"
local nodes = require "agentbox.record.node"
local plain = require "agentbox.record.plain"
local recent = require "agentbox.recent"
local requests = require "agentbox.record.request"
local secret = require "agentbox.secret"
local sys = require "agentbox.sys.json"
local text = require "agentbox.text"
local texts = require "agentbox.record.texts"
local time = require "agentbox.sys.time"
local traj = require "agentbox.traj"

local M = { SCHEMA = line_of.SCHEMA }

--- Nodes, calls and runs are JSON texts as soon as nothing of them changes any more: a rollout that waits holds no
--- tables of what it did, and the line at its end is put together, not encoded. Numbers of nodes and calls count from
--- 0; the lists below are by number + 1. With a scratch file the texts are on the disk until the end.
---@class agentbox.Recorder
---@field private _m agentbox.Texts     # the nodes' messages
---@field private _nodes integer[]      # what else there is of them: record/node.lua
---@field private _said agentbox.Message[]     # the messages themselves, as they were handed over
---@field private _contents any[]       # and what their content was then, false for none
---@field private _bent? integer        # the first node that does not follow the one before
---@field private _calls agentbox.Texts
---@field private _first agentbox.Speaker   # the agent itself
---@field private _agents? agentbox.Speaker[]   # who else spoke, by name, too
---@field private _leaf? integer        # the last node of the main thread
---@field private _leaves? table<string, integer>   # of the others
---@field private _runs agentbox.Texts
---@field private _altered? boolean     # the record says something in other bytes than those that were sent
---@field private _checker agentbox.RecordChecker
local Recorder = {}
Recorder.__index = Recorder

local PURPOSES = { agent = true, subagent = true, compaction = true, judge = true, aux = true }
local MAX_EVENTS, MAX_EVENT_BYTES = 1000, 4096

local new_node = nodes.new
local encode_clean, redact = sys.encode_clean, secret.redact
local known_prompt = recent.new(32, 64 << 10)
local put_run = sys.row({
  "args", "call_id", "cut", "error", "exit", "is_error", "name", "node", "result", "slot", "step", "t", "traceback",
}, { args = true, t = true })

---@class agentbox.RecorderOpts
---@field run_id string
---@field id string                 # unique in the run
---@field attempt? integer          # from 0
---@field group? { id: string, index: integer, size: integer }
---@field task agentbox.Task
---@field agent? { name: string }
---@field model? table              # what model:describe() says
---@field tools? table[]            # the schemas offered, as they go over the wire
---@field tool_mode? string
---@field seed? integer
---@field started? number           # unix seconds
---@field scratch? agentbox.Scratch # where texts wait for the end

---@class agentbox.Speaker
---@field name string
---@field model? string
---@field trainable boolean

-- Of most rollouts the agent is the same as that of the one before, and they share it.
local last_first = {}

local function first_speaker(name, model)
  if last_first.name ~= name or last_first.model ~= model then
    last_first = { name = name, model = model, trainable = true }
  end
  return last_first
end

-- What the line says of them; with one more this would be twice as large.
local function kept_of(opts)
  return {
    run_id = opts.run_id, id = opts.id, attempt = opts.attempt, group = opts.group, task = opts.task, model = opts.model,
    tool_mode = opts.tool_mode, seed = opts.seed,
  }
end

--- Starts a record.
---@param opts agentbox.RecorderOpts
---@return agentbox.Recorder
function M.new(opts)
  local scratch = opts.scratch
  local self = setmetatable({
    _opts = kept_of(opts), _m = texts.new(scratch), _nodes = {}, _said = {}, _contents = {}, _calls = texts.new(scratch),
    _runs = texts.new(scratch), _sums = calls.sums(), _checker = check.new(), _blobs = texts.map(scratch),
    _first = first_speaker(opts.agent and opts.agent.name or "tool_loop", opts.model and opts.model.name),
    _started = opts.started or time.now(), _notes = {},
  }, Recorder)
  if opts.tools and #opts.tools > 0 then self._tools = self:_tools_text(opts.tools) end
  return self
end

-- JSON text of a value, fit for the record and free of secrets. Nearly every value is; only one that cannot be encoded,
-- or in which bytes are not UTF-8, is looked at piece by piece.
function Recorder:_text(value, where, index)
  local encoded = encode_clean(value)
  if not encoded then
    if index then where = ("%s[%d]"):format(where, index) end
    encoded = json.encode(plain.copy(value, where, self._notes))
    self._altered = true
  end
  local clean = redact(encoded)
  if clean ~= encoded then self._altered = true end
  return clean
end

-- Rollouts that offer the same tools have one list of them, and share its text.
local text_of_tools = setmetatable({}, { __mode = "k" })

function Recorder:_tools_text(tools)
  local encoded = text_of_tools[tools]
  if not encoded then
    encoded = self:_text(tools, "tools")
    text_of_tools[tools] = encoded
  end
  return secret.redact(encoded)
end

function Recorder:_raw(value, where, index)
  if value == nil then return nil end
  return sys.trusted(self:_text(value, where, index))
end

--- Names a speaker; calls name theirs. The first is the agent itself.
---@param name string
---@param facts? { model?: string, trainable?: boolean }
function Recorder:agent(name, facts)
  if self:has_agent(name) then return end
  local entry = { name = name, model = facts and facts.model, trainable = not facts or facts.trainable ~= false }
  self._agents = self._agents or {}
  self._agents[name], self._agents[#self._agents + 1] = entry, entry
end

--- Whether somebody is called that.
---@param name string
---@return boolean
function Recorder:has_agent(name)
  return name == self._first.name or self._agents ~= nil and self._agents[name] ~= nil
end

--- The last node of a thread.
---@param thread? string   # the main one unless given
---@return integer?
function Recorder:leaf_of(thread)
  if thread == nil or thread == "main" then return self._leaf end
  return self._leaves and self._leaves[thread]
end

---@class agentbox.MessageOpts
---@field origin "prompt"|"sampled"|"tool"|"injected"|"rewritten"
---@field call? integer     # of a sampled message: its call
---@field thread? string    # default "main"; each thread goes on from its own last node
---@field parent? integer   # node to go on from instead

--- Adds a message to the graph.
---@param msg agentbox.Message
---@param opts agentbox.MessageOpts
---@return integer node   # 0-based
function Recorder:message(msg, opts)
  return self:add(msg, opts.origin, opts.call, opts.thread, opts.parent)
end

--- The same without a table of options.
---@param msg agentbox.Message
---@param origin string
---@param call? integer
---@param thread? string
---@param parent? integer
---@return integer node
function Recorder:add(msg, origin, call, thread, parent)
  local index = #self._nodes
  local n = index + 1
  if thread == "main" then thread = nil end
  if not parent then
    parent = not thread and self._leaf or thread and self:leaf_of(thread) or nil
  elseif parent < 0 or parent >= index then
    error("no node " .. parent, 2)
  end
  local node = new_node(origin, parent, call)
  if not node then error("unknown origin " .. tostring(origin), 2) end
  if index > nodes.MAX then error(("a record has no room for more than %d messages"):format(index), 2) end
  if call and not self._sums.out[call + 1] then
    if call >= #self._calls then error("no call " .. call, 2) end
    calls.came_of(self, call, index)
  end
  if thread then
    self._leaves = self._leaves or {}
    self._leaves[thread] = index
  else
    self._leaf = index
  end
  local encoded = encode_clean(msg)
  if not encoded or redact(encoded) ~= encoded then encoded = self:_cleaned(msg, n) end
  if origin == "prompt" and not self._m.log then encoded = known_prompt(encoded) end
  self._m:add(encoded)
  self._nodes[n], self._said[n], self._contents[n] = node, msg, msg.content or false
  if (parent or -1) ~= index - 1 and not self._bent then self._bent = index end
  self._checker:node(index, parent, origin, call, msg)
  return index
end

-- The text of a message that cannot stand as it is.
function Recorder:_cleaned(msg, n)
  local before = #self._notes
  local encoded = self:_text(msg, "nodes", n - 1)
  if #self._notes > before then
    self._scrubbed = self._scrubbed or {}
    self._scrubbed[n] = true
  end
  return encoded
end

---@class agentbox.CallOpts
---@field response? agentbox.Response
---@field error? agentbox.Err         # of a call that failed; one of the two
---@field request? agentbox.Request
---@field leaf? integer               # last node of the prompt
---@field purpose? string             # agent (default), subagent, compaction, judge, aux
---@field trainable? boolean          # default: an agent's call that succeeded
---@field agent? string               # who spoke
---@field thread? string
---@field t? number[]                 # unix seconds: queued, first byte, done
---@field said? agentbox.Message       # what came of it: it becomes the thread's next node

--- Adds a model call, done or failed.
---@param opts agentbox.CallOpts
---@return integer call   # 0-based
function Recorder:call(opts)
  local purpose = opts.purpose or "agent"
  if not PURPOSES[purpose] then error("unknown purpose " .. tostring(purpose), 2) end
  local name = opts.agent or self._first.name
  self:agent(name)
  local index = #self._calls
  if index > nodes.MAX then error(("a record has no room for more than %d calls"):format(index), 2) end
  local said = opts.said
  self._calls:add(calls.text(self, opts, index, name, purpose, said and #self._nodes or nil), not said)
  if said then
    self._sums.out[index + 1] = true -- the entry names it
    self:add(said, "sampled", index, opts.thread)
  end
  return index
end

-- The ordinal of the assistant turn that a tool run belongs to; `at` is its message, or the last one before it.
function Recorder:_step(at)
  local list, sums = self._nodes, self._sums
  local key = nodes.sampled(list, at) or -1
  local step = sums.steps[key]
  if not step then
    step = sums.next_step
    sums.steps[key], sums.next_step = step, step + 1
  end
  return step
end

---@class agentbox.ToolRun
---@field node? integer       # the tool message; nil if the run got none
---@field slot integer        # position among the turn's calls, from 0
---@field call_id? string
---@field name string
---@field args? any           # decoded arguments; kept only for a run without a message
---@field result? string      # likewise
---@field is_error? boolean
---@field t? number[]         # unix seconds: start, end
---@field exit? integer       # exit status, of tools that run a command
---@field cut? integer        # characters of output left out
---@field error? any
---@field traceback? string
---@field thread? string

local function error_text(problem)
  if problem == nil then return nil end
  return plain.reason(type(problem) == "table" and problem.msg or problem)
end

--- Adds one execution of a tool.
---@param run agentbox.ToolRun
---@return integer index   # 0-based
function Recorder:tool_run(run)
  if run.node then return self:ran(run.node, run.slot, run.call_id, run.name, run) end
  local index, t = #self._runs, run.t
  if t then self._checker:times("tool_runs", index, t[1], t[2]) end
  self._runs:add(put_run(run.args ~= nil and self:_text(run.args, "args") or nil, run.call_id, run.cut,
    error_text(run.error), run.exit, run.is_error == true, run.name, json.null, plain.text(run.result), run.slot,
    self:_step(self:leaf_of(run.thread)), t and sys.tuple(t[1], t[2]), plain.reason(run.traceback)))
  return index
end

local NOTHING = {}

--- Adds the execution that a tool message answers.
---@param node integer
---@param slot integer
---@param call_id string?
---@param name string
---@param result { is_error?: boolean, t?: number[], error?: any, traceback?: string, exit?: integer, cut?: integer, facts?: table }
---@return integer index   # 0-based
function Recorder:ran(node, slot, call_id, name, result)
  local index, t, facts, traceback = #self._runs, result.t, result.facts or result, result.traceback
  if index > nodes.MAX then error(("a record has no room for more than %d tool runs"):format(index), 2) end
  local list = self._nodes
  list[node + 1] = nodes.with_run(list[node + 1], index)
  local from, to = (t or NOTHING)[1], (t or NOTHING)[2]
  if from then self._checker:times("tool_runs", index, from, to) end
  self._runs:add(put_run(nil, call_id, facts.cut, result.error and error_text(result.error), facts.exit,
    result.is_error == true, name, node, nil, slot, self:_step(node), from and sys.tuple(from, to),
    traceback and plain.reason(traceback)))
  return index
end

--- A body around the JSON text of a history as it goes on the wire, as far as the record has the same bytes already: nil
--- if not.
---@param leaf integer                    # its last message
---@param messages agentbox.Message[]
---@param head string                     # the body up to the bracket before the first message
---@param tail string                     # from the bracket behind the last one on
---@return string?
function Recorder:history(leaf, messages, head, tail) return requests.history(self, leaf, messages, head, tail) end

--- Adds a named fact (`ctx:note`); the last value of a name stands.
---@param name string
---@param value any
function Recorder:note(name, value)
  self._extra = self._extra or json.object {}
  self._extra[name] = self:_raw(value, "notes." .. name)
end

--- Adds a log line. The first thousand are kept, each up to 4 KiB; the rest is counted.
---@param level string
---@param message string
function Recorder:event(level, message)
  local logs = self._logs or {}
  self._logs = logs
  if #logs >= MAX_EVENTS then
    self._dropped = (self._dropped or 0) + 1
    return
  end
  local entry = {}
  entry.t = time.now()
  entry.level = level
  entry.text = plain.text(text.cut_bytes(message, MAX_EVENT_BYTES))
  logs[#logs + 1] = entry
end

--- Names Lua files that took part and that `require` did not load (a tool given by its path).
---@param list { name: string, from: string, sha256?: string }[]
function Recorder:modules(list)
  self._modules = list
end

--- Ends the record. A broken invariant is a bug of the engine: the line is made all the same, with the violations
--- among its errors, and is kept away from training.
---@param result agentbox.RolloutResult
---@return agentbox.Traj
function Recorder:finish(result)
  local line = line_of.build(self, result)
  for _, list in ipairs { self._m, self._calls, self._runs } do list:close() end
  for _, violation in ipairs(self._checker:finish(line)) do line_of.add_violation(line, violation) end
  return traj.new(line, { blobs = self._blobs, task_id = self._opts.task.task_id })
end

M.check = check.check

return M
