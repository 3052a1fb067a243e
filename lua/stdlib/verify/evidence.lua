--- verify/evidence.lua: what a verifier is given. Sandboxes are made when first asked for and closed with the
--- evidence.
---
---     ev.sandbox     as seeded, then the agent's workspace, then the protected and hidden files over it
---     ev.before      as seeded
---     ev.after       as the agent left it, with every process of the agent dead; for looking at: no sandbox is made for who
---                    only reads files there
---     ev:pristine()  as seeded, hidden files laid, the reference solution too if there is one: no agent was ever here
---
--- A sandbox that can't be made raises its error, which ends the verification as a failure of the infrastructure; one
--- of class `policy` when the agent left a tree that can't be copied, which counts as the work's failure.
local async = require "agentbox.async"
local command_line = require "agentbox.verify.command_line"
local err = require "agentbox.err"
local glob = require "agentbox.glob"
local json = require "agentbox.json"
local protect = require "agentbox.verify.protect"
local schema = require "agentbox.schema"
local sandbox = require "agentbox.sandbox"

local M = {}

---@class agentbox.Evidence
---@field task agentbox.Task
---@field spec table                 # the verifier's part of the task
---@field workspace string
---@field workdir string
---@field user? string|integer
---@field sandbox agentbox.Sandbox
---@field before agentbox.Sandbox
---@field after agentbox.Sandbox
---@field traj { task_id: string, messages: agentbox.Message[], stop_reason: string, steps: integer }
---@field tamper agentbox.Tamper     # filled when ev.sandbox was made
---@field rec? agentbox.Recorder      # where a judge's calls are noted; none when a stored record is judged
---@field data any                   # the task's data for verifiers
---@field params any
local Evidence = {}

--- Members that are made when first asked for.
local lazy = {}

function Evidence:__index(key)
  local make = lazy[key]
  if not make then return Evidence[key] end
  local value, problem = make(self)
  if value == nil then error(problem, 0) end
  rawset(self, key, value)
  return value
end

--- Results that do not depend on the agent, by task, for the life of the process.
local known, known_count = {}, 0
local MAX_KNOWN = 1024

---@param opts table
---@return agentbox.Evidence
function M.new(opts)
  return setmetatable({
    task = opts.task, spec = opts.spec, workspace = opts.stage.workspace, workdir = opts.stage.workdir,
    user = opts.spec.user or opts.user, agent_user = opts.user, traj = opts.traj, rec = opts.rec,
    data = opts.task.data, params = opts.spec.params or opts.task.params, tamper = opts.tamper,
    _stage = opts.stage, _remains = opts.remains, _open = {},
  }, Evidence)
end

--- Evidence of the same work with sandboxes of its own, for one part of a composition.
---@param spec? table
---@return agentbox.Evidence
function Evidence:part(spec)
  return M.new {
    task = self.task, spec = spec or self.spec, stage = self._stage, user = self.agent_user, remains = self._remains,
    traj = self.traj, tamper = self.tamper, rec = self.rec,
  }
end

local function keep(self, sb, problem)
  if sb then self._open[#self._open + 1] = sb end
  return sb, problem
end

--- Keeps a sandbox until the evidence is closed.
---@param sb agentbox.Sandbox?
---@param problem? agentbox.Err
---@return agentbox.Sandbox?
---@return agentbox.Err?
function Evidence:keep(sb, problem) return keep(self, sb, problem) end

--- The agent's whole sandbox, or a copy where the backend can make one, with every process of the agent dead and nothing of
--- the task's laid over it.
---@async
---@return agentbox.Sandbox?
---@return agentbox.Err?
function Evidence:whole()
  local sb, problem = keep(self, self._remains:copy())
  if sb or problem.code ~= "unsupported" then return sb, problem end
  return self._remains:sandbox()
end

--- What the sandboxes of this work are made of, for one of another image.
---@return agentbox.SandboxSpec
function Evidence:sandbox_spec() return self._stage.spec end

--- Does something once per task, whatever the number of rollouts; those who come while it runs wait for it.
---@async
---@param name string
---@param fn fun(): any, any
---@return any value
---@return any err
function Evidence:once(name, fn)
  local key = table.concat({ self.task.hash, self._stage.spec.image or "", self._stage.spec.backend or "", name }, "\0")
  local entry = known[key]
  if not entry then
    if known_count >= MAX_KNOWN then known, known_count = {}, 0 end
    known_count = known_count + 1
    entry = { lock = async.semaphore(1) }
    known[key] = entry
  end
  local held <close> = entry.lock:acquire() -- luacheck: ignore
  if entry.value == nil then
    local value, problem = fn()
    if value == nil then return nil, problem end
    entry.value = value
  end
  return entry.value
end

--- The names of the files that are the task's own word on what passes: shipped and hidden ones that match its globs.
---@return string[]
function Evidence:trusted_files()
  local matches = glob.compile(protect.globs(self.task))
  local names = {}
  for name in pairs(self.task.files) do names[name] = matches(name) or nil end
  for name in pairs(self.task.hidden) do names[name] = true end
  for name in pairs(rawget(self, "_pristine") and self._pristine.files or {}) do names[name] = true end
  return json.array(schema.names(names))
end

---@async
---@return agentbox.Sandbox? sb   # the caller closes it
---@return agentbox.Err?
function Evidence:pristine()
  local sb, problem = self._stage:fresh()
  if not sb then return nil, problem end
  for _, tree in ipairs { "solution", "hidden" } do
    local ok
    ok, problem = protect.lay(sb, self.workspace, self.task[tree])
    if not ok then
      sb:close()
      return nil, problem
    end
  end
  return sb
end

function lazy.before(self) return keep(self, self._stage:fresh()) end

function lazy.after(self) return self._remains:sandbox() end

local function merge(into, from)
  for _, kind in ipairs { "changed", "removed", "planted" } do
    local seen = {}
    for _, name in ipairs(into[kind]) do seen[name] = true end
    for _, name in ipairs(from[kind]) do
      if not seen[name] then table.insert(into[kind], name) end
    end
  end
  into.suspicious = into.suspicious or from.suspicious
end

--- Only a verifier that runs tests may take away what the agent added; and only when the task has tests of its own.
local function may_remove(self, pristine)
  if self.spec.protect then return #self.spec.protect > 0 end
  if not command_line.is_tests(self.spec) then return false end
  if next(pristine.files) then return true end
  for name in pairs(self.task.hidden) do
    if pristine.matches(name) then return true end
  end
  return false
end

--- What only the agent's tree can be the cause of: paths too long, links in a ring, a file for a folder, more than the
--- disk holds.
local OF_THE_TREE = { toobig = true, notfound = true, invalid = true, full = true, exists = true, denied = true }

--- An error of working with the agent's tree, with the one whose doing it is. Otherwise an agent could make its
--- failures go unscored.
---@param problem agentbox.Err
---@param doing string
---@return agentbox.Err
function M.blame(problem, doing)
  if OF_THE_TREE[problem.code] and not problem.host then
    return err.new("verifier", ("%s: %s"):format(doing, problem.msg), { class = "policy" })
  end
  return err.wrap(problem, doing)
end

local function lay_over(self, sb, pristine)
  local tamper, problem = protect.restore(sb, self.workspace, pristine, { remove = may_remove(self, pristine) })
  merge(self.tamper, tamper)
  if problem then return nil, problem end
  return protect.lay(sb, self.workspace, self.task.hidden)
end

--- A copy of the agent's whole sandbox, for tasks whose result lies outside the workspace. The protected files still
--- come from a sandbox that the agent never saw.
local function copy_of_agent(self)
  local pristine, problem = protect.remember(self.before, self.workspace, protect.globs(self.task))
  if not pristine then return nil, problem end
  local sb
  sb, problem = keep(self, self._remains:copy())
  if not sb then return nil, problem end
  return sb, pristine
end

local function fresh_with_workspace(self)
  local sb, problem = keep(self, self._stage:fresh())
  if not sb then return nil, problem end
  local pristine
  pristine, problem = protect.remember(sb, self.workspace, protect.globs(self.task))
  if not pristine then return nil, problem end
  local ok
  ok, problem = sb:remove(self.workspace, { recursive = true }) -- what the agent deleted stays deleted
  if not ok then return nil, problem end
  ok, problem = sandbox.copy_tree(self.after, self.workspace, sb, self.workspace)
  if not ok then return nil, M.blame(problem, "copying the workspace to the verifier's sandbox") end
  return sb, pristine
end

function lazy.sandbox(self)
  local make = self.spec.sandbox == "agent" and copy_of_agent or fresh_with_workspace
  local sb, pristine = make(self)
  if not sb then return nil, pristine end
  self._pristine = pristine
  local ok, problem = lay_over(self, sb, pristine)
  if not ok then return nil, M.blame(problem, "putting the task's files over the agent's") end
  return sb
end

--- Records an indicator of tampering that no file shows.
---@param text string
function Evidence:suspect(text)
  self.tamper.suspicious = true
  self.tamper.notes = self.tamper.notes or json.array {}
  table.insert(self.tamper.notes, text)
end

local function tree_of(sb, workspace)
  local list, problem = sb:list(workspace, { recursive = true })
  if not list then return nil, problem end
  local map = {}
  for _, entry in ipairs(list) do
    if entry.type == "file" then map[entry.name] = entry end
  end
  return map
end

---@class agentbox.Diff
---@field added string[]
---@field changed string[]
---@field removed string[]
local Diff = {}
Diff.__index = Diff

function Diff:__len() return #self.added + #self.changed + #self.removed end

--- Whether every difference lies below a folder.
---@param prefix string
---@return boolean
function Diff:all_under(prefix)
  for _, kind in ipairs { "added", "changed", "removed" } do
    for _, name in ipairs(self[kind]) do
      if name:sub(1, #prefix) ~= prefix then return false end
    end
  end
  return true
end

--- The files of the workspace that differ from the seeded ones.
---@async
---@return agentbox.Diff?
---@return agentbox.Err?
function Evidence:diff()
  local before, after = self.before, self.after
  local old, problem = tree_of(before, self.workspace)
  if not old then return nil, problem end
  local new
  new, problem = tree_of(after, self.workspace)
  if not new then return nil, problem end
  local diff = setmetatable({ added = {}, changed = {}, removed = {} }, Diff)
  for _, name in ipairs(schema.names(new)) do
    if not old[name] then
      table.insert(diff.added, name)
    elseif old[name].size ~= new[name].size then
      table.insert(diff.changed, name)
    else
      local path = self.workspace .. "/" .. name
      local a, a_problem = before:read(path)
      local b, b_problem = after:read(path)
      if not a or not b then return nil, a_problem or b_problem end
      if a ~= b then table.insert(diff.changed, name) end
    end
  end
  for _, name in ipairs(schema.names(old)) do
    if not new[name] then table.insert(diff.removed, name) end
  end
  return diff
end

--- What the network of the sandboxes refused to what ran in them for the verifier; nil when it had no list.
---@return agentbox.Denial[]?
function Evidence:denied()
  local all
  for _, sb in ipairs(self._open) do
    if sb:traffic() then
      local some = sb:denied()
      all = table.move(some, 1, #some, #(all or {}) + 1, all or {})
    end
  end
  return all
end

--- Closes what was opened. May be called twice.
function Evidence:close()
  for _, sb in ipairs(self._open) do sb:close() end
  self._open = {}
end

Evidence.__close = Evidence.close

return M
