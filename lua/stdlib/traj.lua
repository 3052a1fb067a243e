--- Trajectories in Lua: one finished rollout, fresh or read back, with the fields that scripts use.
---
---     local t = assert(ab.traj.load("runs/a/7d31.../"))
---     print(t.final_status, t.reward)                    -- reward is nil when unscored
---     for call in t:calls { trainable = true } do print(call.tokens and #call.tokens.out) end
local body = require "agentbox.record.body"
local columns = require "agentbox.record.columns"
local err = require "agentbox.err"
local json = require "agentbox.json"
local tokens = require "agentbox.record.tokens"

local M = {}

---@class agentbox.Traj
---@field id string                 # unique in its run
---@field run_id string
---@field task_id string
---@field final_status string       # AgentBox's five: success, failed, timeout, error, max_steps
---@field stop_reason string
---@field failure_class string?     # policy, task, verifier, sandbox, model_server, engine
---@field scored boolean
---@field reward number?            # nil when unscored
---@field independent number?       # of a ranked one: the reward before its group was compared
---@field outcome any               # what the verifier said before any penalty
---@field components table?
---@field messages agentbox.Message[]   # of the main thread, from the root to its last message
---@field metrics table
---@field metadata table
---@field version_min integer?
---@field version_max integer?
---@field line table                # the whole record (docs/trajectories.md)
---@field columns agentbox.NodeColumns             # its nodes, messages as JSON text
---@field message_columns agentbox.MessageColumns  # the members of their messages
---@field call_columns agentbox.CallColumns
---@field run_columns agentbox.RunColumns
---@field planes agentbox.PlaneCall[]              # its calls, ids and log-probs as JSON text
local Traj = {}

local function value_of(field)
  if field == json.null then return nil end
  return field
end

local plain_of = json.plain

--- The nodes of the main thread, or of the path that ends at node `leaf`, from the root on.
---@param leaf? integer
---@return { index: integer, node: table, message: agentbox.Message }[]
function Traj:path(leaf)
  local nodes, path = self.line.nodes, {}
  local at = leaf or value_of(self.line.leaf)
  while at do
    local node = nodes[at + 1]
    path[#path + 1] = { index = at, node = node, message = plain_of(node.m) }
    at = value_of(node.p)
  end
  for i = 1, #path // 2 do path[i], path[#path - i + 1] = path[#path - i + 1], path[i] end
  return path
end

local lazy = {}

function lazy.messages(self)
  local list = {}
  for i, step in ipairs(self:path()) do list[i] = step.message end
  return list
end

function lazy.metrics(self) return plain_of(self.line.metrics) or {} end
function lazy.metadata(self) return plain_of(self.line.metadata) or {} end
function lazy.tools(self) return plain_of(self.line.tools) end
function lazy.task(self) return plain_of(self.line.task) or {} end
function lazy.verify(self) return plain_of(self.line.verify) end
function lazy.components(self) return plain_of(self.line.reward.components) end
function lazy.columns(self) return assert(columns.nodes(self.line)) end
function lazy.call_columns(self) return assert(columns.calls(self.line, self.columns)) end
function lazy.planes(self) return assert(columns.planes(self.line, self.columns)) end
function lazy.run_columns(self) return assert(columns.runs(self.line, self.columns)) end
function lazy.message_columns(self) return self.columns end
function lazy.outcome(self) return plain_of(self.line.reward.outcome) end

function Traj.__index(self, key)
  if Traj[key] ~= nil then return Traj[key] end
  local make = lazy[key]
  if not make then return nil end
  local value = make(self)
  rawset(self, key, value)
  return value
end

--- Wraps a record.
---@param line table
---@param from? { blobs?: table<string, string>, read_blob?: fun(hash: string): string?, table?, task_id?: string }
---@param made? table      # the columns that its reader made
---@return agentbox.Traj
function M.new(line, from, made)
  local self = {
    line = line, id = line.id, run_id = line.run, task_id = from and from.task_id or (plain_of(line.task) or {}).id,
    final_status = value_of(line.final_status), stop_reason = line.stop.reason,
    failure_class = value_of(line.stop.class),
    scored = line.reward.scored, reward = value_of(line.reward.value), status = line.status,
    version_min = value_of(line.policy.version_min), version_max = value_of(line.policy.version_max),
    error = value_of(line.error), _from = from or {},
  }
  for name, value in pairs(made or {}) do self[name] = value end
  return setmetatable(self, Traj)
end

--- The same trajectory with another reward: what its group's ranking gave it. `independent` becomes what it had.
---@param reward number?       # nil: unscored
---@param independent number?
---@return agentbox.Traj self
function Traj:with_reward(reward, independent)
  self.independent, self.reward, self.scored = independent, reward, reward ~= nil
  return self
end

local function matches(call, filter)
  for _, name in ipairs { "trainable", "purpose", "agent" } do
    if filter[name] ~= nil and call[name] ~= filter[name] then return false end
  end
  return true
end

--- Iterates over the model calls: `i agent purpose trainable finish usage error t`, and `tokens` with `prompt`,
--- `out` and `lp` as lists when the server gave token ids.
---@param filter? { trainable?: boolean, purpose?: string, agent?: string }
---@return fun(): table?
function Traj:calls(filter)
  local all, i, memo = self.line.calls, 0, {}
  return function()
    repeat i = i + 1 until not all[i] or not filter or matches(all[i], filter)
    local call = all[i]
    if not call then return nil end
    return setmetatable({}, { __index = function(view, key)
      if key ~= "tokens" then return call[key] end
      local planes = tokens.unpack(all, call, memo)
      rawset(view, "tokens", planes)
      return planes
    end })
  end
end

local function read_blob(self, hash)
  local bytes = self._from.blobs and self._from.blobs[hash]
  if bytes then return bytes end
  if self._from.read_blob then return self._from.read_blob(hash) end
  return nil, err.new("notfound", "no file for " .. hash)
end

--- The body of a request or response, byte for byte (secrets replaced).
---
--- Returns nil, err if the call has none, or if what is stored does not have the recorded hash.
---@nodiscard
---@param call table
---@param which "request"|"response"
---@return string? bytes
---@return agentbox.Err? err
function Traj:body(call, which)
  return body.bytes(self.line, call, which, function(hash) return read_blob(self, hash) end)
end

--- The bytes that the record names by a hash and keeps beside it.
---@nodiscard
---@param id string
---@return string? bytes
---@return agentbox.Err? err
function Traj:blob(id) return read_blob(self, id) end

--- The JSON text of a call's response, from its place in `call_columns`, on one line; nil when there is none with the recorded
--- hash, or it is no JSON.
---@param i integer      # from 1
---@return string?
function Traj:response_text(i)
  local calls = self.call_columns
  local text, id = calls.response_body[i], calls.response_hash[i]
  local inside = text ~= nil
  if not inside then text = id and read_blob(self, id) end
  if not text or body.hash(text) ~= id then return nil end
  return inside and text or json.one_line(text)
end

--- The bytes of an artifact, as the rollout left them (secrets replaced).
---@nodiscard
---@param path string
---@return string? bytes
---@return agentbox.Err? err
function Traj:artifact(path)
  for _, entry in ipairs(value_of(self.line.artifacts) or {}) do
    if entry.path == path and entry.hash then return read_blob(self, entry.hash) end
  end
  return nil, err.new("notfound", "no artifact " .. path)
end

--- The text of a message: "" for a null content; the text parts of a content list, joined.
---@param message agentbox.Message
---@return string
function M.text(message)
  local content = value_of(message.content)
  if type(content) ~= "table" then return content == nil and "" or tostring(content) end
  local parts = {}
  for _, part in ipairs(content) do
    if type(part) == "string" then parts[#parts + 1] = part
    elseif type(part) == "table" and type(part.text) == "string" then parts[#parts + 1] = part.text end
  end
  return table.concat(parts)
end

--- Reads one trajectory: a record file, a run folder or an AgentBox JSON. Where there are several, name one:
--- `PATH#ID`.
---
--- Returns nil, err if there is none or more than one, or it is damaged: `notfound`, `parse`, `exists`.
---@async
---@nodiscard
---@param path string
---@return agentbox.Traj?
---@return agentbox.Err? err
function M.load(path)
  return require("agentbox.store.read").one(path)
end

--- Iterates over every trajectory below a path, in the order written; a damaged line raises its error.
---@async
---@param path string
---@return fun(): agentbox.Traj?
function M.each(path)
  return require("agentbox.store.read").each(path)
end

local function mean(sum, n)
  return n > 0 and sum / n or 0.0
end

local function tally()
  return { n = 0, success = 0, scored = 0, reward = 0.0, steps = 0, tool_calls = 0, duration_s = 0.0 }
end

local function count(sums, t)
  local metrics = t.metrics
  sums.n = sums.n + 1
  if t.final_status == "success" then sums.success = sums.success + 1 end
  if t.scored then sums.scored, sums.reward = sums.scored + 1, sums.reward + t.reward end
  for _, name in ipairs { "steps", "tool_calls", "duration_s" } do
    sums[name] = sums[name] + (value_of(metrics[name]) or 0)
  end
end

---@class agentbox.Aggregate
---@field n integer
---@field success_rate number        # of all, by final status
---@field mean_reward number         # of the scored ones
---@field mean_steps number
---@field mean_tool_calls number
---@field mean_duration_s number
---@field scored integer
---@field unscored integer
---@field by_status table<string, integer>   # statuses that occur
---@field by_task table<string, { n: integer, success_rate: number, mean_reward: number, mean_steps: number }>

--- Sums up a list of trajectories; all zeros for an empty one. An unscored trajectory counts in `n` and
--- `unscored` but never as a reward of 0.
---@param list agentbox.Traj[]
---@return agentbox.Aggregate
function M.aggregate(list)
  local all, tasks, by_status = tally(), {}, {}
  for _, t in ipairs(list) do
    tasks[t.task_id] = tasks[t.task_id] or tally()
    count(all, t)
    count(tasks[t.task_id], t)
    by_status[t.final_status] = (by_status[t.final_status] or 0) + 1
  end
  local by_task = {}
  for id, sums in pairs(tasks) do
    by_task[id] = {
      n = sums.n, success_rate = mean(sums.success, sums.n), mean_reward = mean(sums.reward, sums.scored),
      mean_steps = mean(sums.steps, sums.n),
    }
  end
  return {
    n = all.n, success_rate = mean(all.success, all.n), mean_reward = mean(all.reward, all.scored),
    mean_steps = mean(all.steps, all.n), mean_tool_calls = mean(all.tool_calls, all.n),
    mean_duration_s = mean(all.duration_s, all.n), scored = all.scored, unscored = all.n - all.scored,
    by_status = by_status, by_task = by_task,
  }
end

return M
