--- Tasks that a trainer sends: a stream for a run that survives the run's process.
---
---     tasks.jsonl   in the run's folder: one line per batch, written before the trainer is told that it was taken
---
--- A batch has a key of the trainer's choosing; the same key again adds nothing, so that who does not know whether a
--- batch arrived sends it again. A resumed run reads the batches from the first one on, as any stream.
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local frame = require "agentbox.store.frame"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local log = require "agentbox.store.log"
local regular = require "agentbox.store.regular"
local secret = require "agentbox.secret"
local task = require "agentbox.task"

local M = {}

---@class agentbox.Inbox
---@field count integer    # tasks sent so far
---@field ended boolean    # no more will come
local Inbox = {}
Inbox.__index = Inbox

--- An inbox for `runner.start { tasks = inbox }`. `first` is what comes before: a list, or a function.
---@param first? table|function
---@return agentbox.Inbox
function M.new(first)
  return setmetatable({
    count = 0, ended = false, _first = first, _begun = 0, _keys = {}, _queue = {}, _at = 1, _batches = 0, _read = 0,
    _waiters = {},
  }, Inbox)
end

local function wake(self)
  for waiter in pairs(self._waiters) do waiter:wake() end
end

local function wait(self)
  local me = fiber.current()
  local _ <close> = setmetatable({}, { __close = function() self._waiters[me] = nil end }) -- luacheck: ignore 211
  self._waiters[me] = true
  fiber.park()
end

-- A batch that is in the file, once: its tasks are counted, its key is known.
local function note(self, batch)
  if self._keys[batch.key] then return false end
  self._keys[batch.key] = true
  self.count = self.count + #batch.tasks
  self.ended = self.ended or batch["end"] == true
  return true
end

local function decode(line, path, n)
  local text, whole = frame.read(line)
  local batch = whole and json.decode(text)
  if json.is_object(batch) and type(batch.key) == "string" and json.is_array(batch.tasks) then return batch end
  return nil, err.new("parse", ("%s:%d: not a batch of tasks as it was written"):format(path, n))
end

-- Reads what an earlier process was sent.
local function recall(self)
  local file <close>, problem = regular(self._path)
  if not file then return nil, problem end
  for line in file:lines "L" do
    self._batches = self._batches + 1
    local batch
    batch, problem = decode(line, self._path, self._batches)
    if not batch then return nil, problem end
    note(self, batch)
  end
  return true
end

--- Ties it to a run's folder; without one what is sent lives as long as the process.
---@async
---@param run_dir? string
---@return boolean? ok
---@return agentbox.Err? err
function Inbox:attach(run_dir)
  if self._attached then error("the inbox belongs to a run already", 2) end
  if run_dir then
    self._path = run_dir .. "/tasks.jsonl"
    local problem
    local there = fs.stat(self._path) ~= nil
    self._log, problem = log.open { path = function() return self._path end }
    if not self._log then return nil, problem end
    local ok = true
    if there then ok, problem = recall(self) end
    if not ok then return nil, problem end
  end
  self._attached, self._seen = true, {}
  wake(self)
  return true
end

-- ---------------------------------------------------------------- in

-- Whether each of them is a task, before any of them counts.
local function check(tasks)
  for i, one in ipairs(tasks) do
    if not json.is_object(one) then return nil, err.new("badarg", ("task %d is not an object"):format(i)) end
    local found, problem = task.resolve(one)
    if not found then return nil, err.new("badarg", ("task %d: %s"):format(i, problem.msg)) end
  end
  return true
end

local function append(self, batch)
  if self._log then
    local line = frame.close(secret.redact(json.encode(batch)))
    local entry, problem = self._log:append { line = line }
    if not entry then return nil, problem end
  end
  self._batches = self._batches + 1
  if not note(self, batch) then return false end -- the same key came twice at once
  if not self._log then table.insert(self._queue, batch) end
  wake(self)
  return true
end

--- Takes a batch. When this returns it survives a crash. `added` is 0 when a batch of that key is there already.
---@async
---@param batch { tasks: table[], key: string, ["end"]?: boolean }
---@return { added: integer, total: integer }?
---@return agentbox.Err? err
function Inbox:add(batch)
  if not self._attached then return nil, err.new("busy", "the run is not ready for tasks yet") end
  if self._keys[batch.key] then return { added = 0, total = self.count } end
  if self.ended then return nil, err.new("exists", "no more tasks: the end was said") end
  local ok, problem = check(batch.tasks)
  if not ok then return nil, problem end
  -- In a fiber of its own: a client that leaves takes only its answer with it.
  local writer = fiber.spawn(append, self, batch)
  local ended, added, failed = writer:join()
  if not ended then return nil, added end
  if failed then return nil, failed end
  return { added = added and #batch.tasks or 0, total = self.count }
end

-- ---------------------------------------------------------------- out

-- The next batch that is there, or nil. Of a key that is there twice, from two tries that both arrived, the first one
-- counts.
local function next_batch(self)
  if not self._log then return table.remove(self._queue, 1) end
  while self._read < self._batches do
    self._file = self._file or assert(regular(self._path))
    local line = self._file:read "L"
    if not line then return nil end
    self._read = self._read + 1
    local batch, problem = decode(line, self._path, self._read)
    if not batch then error(problem, 0) end
    if not self._seen[batch.key] then
      self._seen[batch.key] = true
      return batch
    end
  end
end

local function first_task(self)
  local first = self._first
  if first == nil then return nil end
  self._begun = self._begun + 1
  local value
  if type(first) == "function" then value = first() else value = first[self._begun] end
  if value == nil then self._first = nil end
  return value
end

--- The next task; waits for one. Nil when the end was said.
---@async
function Inbox:__call()
  while not self._attached do wait(self) end -- until the door has recalled what an earlier process knew
  local early = first_task(self)
  if early ~= nil then return early end
  while true do
    local batch = self._batch
    if batch and self._at <= #batch.tasks then
      self._at = self._at + 1
      return batch.tasks[self._at - 1]
    end
    self._batch, self._at = next_batch(self), 1
    if not self._batch then
      if self.ended then return nil end
      wait(self)
    end
  end
end

--- Lets go of its file.
function Inbox:close()
  if self._log then self._log:close() end
  if self._file then self._file:close() end
  self._file = nil
end

return M
