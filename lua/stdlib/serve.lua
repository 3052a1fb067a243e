--- A run's door for a trainer in another process: tasks in, groups out, acknowledgements, new weights.
---
---     local inbox = ab.serve.inbox()
---     local run <close> = assert(ab.runner.start { tasks = inbox, model = model, group_size = 16, max_lead = 4 })
---     local door <close> = assert(run:serve { listen = "127.0.0.1:7000", inbox = inbox })
---     door:wait()                       -- until the run is over and every group was acknowledged
---
--- A group is given out until it is acknowledged, in the order in which groups were closed, and never afterwards,
--- whichever process dies. One trainer at a time: who connects last is the one that may acknowledge, and who was
--- connected before is told so (409). From Python: `agentbox.connect(url)`. The protocol is in docs/serve.md.
local deliver = require "agentbox.serve.deliver"
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local fs = require "agentbox.sys.fs"
local http_server = require "agentbox.http_server"
local inbox = require "agentbox.serve.inbox"
local json = require "agentbox.json"
local metrics = require "agentbox.runner.metrics"
local rand = require "agentbox.sys.rand"
local schema = require "agentbox.schema"

local M = { inbox = inbox.new }

local MAX_WAIT_S, GRACE_S = 300, 5

---@class agentbox.ServeOptions
---@field listen string|integer        # "127.0.0.1:7000", "unix:/run/x.sock"
---@field token? string|agentbox.Secret   # needed beyond the loopback
---@field inbox? agentbox.Inbox        # where tasks go that a trainer sends
---@field stale? "drop"|"keep"         # groups older than max_staleness when they are fetched; default drop
---@field body_bytes? integer          # of a batch of tasks; default 16 MiB
---@field stall_timeout_s? number      # a trainer that takes nothing of an answer; default 30
local OPTIONS = {
  listen = { "string|integer", required = true }, token = { "any" }, inbox = { "any" },
  stale = { "string", enum = { "drop", "keep" }, default = "drop" }, body_bytes = { "integer", min = 1024 },
  stall_timeout_s = { "number", min = 0.001 },
}

---@class agentbox.Serve
---@field url string
---@field address string
---@field consumer? string   # the name that the trainer gave
local Serve = {}
Serve.__index = Serve

-- ---------------------------------------------------------------- what a request asks for

-- The members of a request's object, each of its type (or "list"). What nobody reads is refused: a word that is spelt wrong says nothing.
local function object(req, members)
  local doc, problem = req:json()
  if problem then return nil, problem end
  if not json.is_object(doc) then return nil, err.new("badarg", "a JSON object is expected") end
  for name, value in pairs(doc) do
    local wanted = members[name]
    if not wanted then return nil, err.new("badarg", ("%s: there is no such member"):format(name)) end
    local kind = json.is_array(value) and "list" or type(value)
    if not wanted:find(kind, 1, true) then
      return nil, err.new("badarg", ("%s: %s is expected"):format(name, wanted:gsub("|", " or ")))
    end
  end
  return doc
end

local function refused(code, msg) return http_server.problem(409, code, msg) end

-- Only the trainer that connected last takes groups and acknowledges them: one that was taken for dead may come back.
local function check_session(self, req)
  local session = req:header "Agentbox-Session"
  if session == nil then return http_server.problem(400, "badarg", "no Agentbox-Session: connect first") end
  if session == self._session then return nil end
  if self._session then return refused("superseded", "another trainer has connected since") end
  return refused("session", "no such session: connect again")
end

-- What a restarted engine must know, in the run's folder: its trainer, and the weights that were announced last.
local function keep(run, name, text)
  if not run.run_dir then return true end
  return fs.write(("%s/%s"):format(run.run_dir, name), text .. "\n", { mode = 384, sync = true })
end

local function kept(run, name)
  local path = run.run_dir and ("%s/%s"):format(run.run_dir, name)
  return path and fs.stat(path) and fs.read(path, 4096) or nil
end

local function connect(self, req)
  local doc, problem = object(req, { consumer = "string" })
  if not doc then return nil, problem end
  local session = rand.uuid4()
  local ok, bad = keep(self.run, "session", session)
  if not ok then return nil, bad end
  self._session = session
  self.consumer = doc.consumer
  self.run:_event("connect", { consumer = self.consumer })
  self.run:_poke() -- who waits with an older session is told
  return { json = json.object {
    schema = "agentbox.serve/1", session = self._session, instance = self._instance, run = self.run.run_id,
    cursor = self.run.cursor, state = self.run.state, max_lead = self.run.opts.max_lead,
  } }
end

local function tasks(self, req)
  if not self._inbox then return refused("unsupported", "this run has its tasks already") end
  local doc, problem = object(req, { tasks = "list", key = "string", ["end"] = "boolean" })
  if not doc then return nil, problem end
  if doc.key and #doc.key > 200 then return nil, err.new("badarg", "key: at most 200 bytes are expected") end
  local taken
  taken, problem = self._inbox:add {
    key = doc.key or rand.uuid4(), tasks = doc.tasks or json.array {}, ["end"] = doc["end"] == true,
  }
  if not taken then return nil, problem end
  return { json = json.object { added = taken.added, total = taken.total, ended = self._inbox.ended } }
end

local function number_of(query, name, default, min, max)
  local value = query[name]
  if value == nil then return default end
  local number = tonumber(value)
  if not number or number < min or number > max then
    return nil, err.new("badarg", ("%s: a number from %d to %d is expected"):format(name, min, max))
  end
  return number
end

-- Waits for groups; an answer without any says whether more can come.
local function groups(self, req)
  local query, problem = req:query()
  if not query then return nil, problem end
  local after, wait_s, most
  after, problem = number_of(query, "after", 0, 0, 2 ^ 53)
  if after then wait_s, problem = number_of(query, "wait", 30, 0, MAX_WAIT_S) end
  if wait_s then most, problem = number_of(query, "max", 1, 1, 1000) end
  if not most then return nil, problem end
  local formats
  formats, problem = deliver.formats(query.formats)
  if not formats then return nil, problem end
  req:allow(wait_s + 60)
  local until_s = self.run.now() + wait_s
  while true do
    local wrong = check_session(self, req)
    if wrong then return wrong end
    local ready, bad = deliver.ready(self, after // 1, most // 1, formats)
    if not ready then return nil, bad end
    local left = until_s - self.run.now()
    if #ready > 0 or left <= 0 or self:_exhausted() then return deliver.answer(self, ready) end
    self.run:_await(left)
  end
end

local function group(self, req)
  local query, problem = req:query()
  if not query then return nil, problem end
  local formats
  formats, problem = deliver.formats(query.formats)
  if not formats then return nil, problem end
  return deliver.one(self, tonumber(req.params.seq), formats)
end

local function ack(self, req)
  local wrong = check_session(self, req)
  if wrong then return wrong end
  local doc, problem = object(req, { seq = "list|number" })
  if not doc then return nil, problem end
  if doc.seq == nil then return nil, err.new("badarg", "seq: a list of numbers is expected") end
  local list = json.is_array(doc.seq) and doc.seq or json.array { doc.seq }
  for _, seq in ipairs(list) do
    if math.type(seq) ~= "integer" or seq < 1 or seq > self.run.closed then
      return nil, err.new("badarg", "seq: numbers of groups that were given out are expected")
    end
  end
  -- In a fiber of its own: a trainer that leaves now has acknowledged all the same.
  local writer = fiber.spawn(function()
    for _, seq in ipairs(list) do
      local ok, bad = self.run:ack { seq = seq }
      if not ok then return nil, bad end
    end
    return true
  end)
  local ended, ok, bad = writer:join()
  if not ended then return nil, ok end
  if not ok then return nil, bad end
  local failure = self.run.failure
  return { json = json.object { cursor = self.run.cursor, ended = self:_tell_end(), failure = failure and failure.msg or nil } }
end

local function policy(self, req)
  local doc, problem = object(req, { version = "number", model = "string" })
  if not doc then return nil, problem end
  local version, current = doc.version, self.run.models.agent.version
  if math.type(version) ~= "integer" or version < 0 then
    return nil, err.new("badarg", "version: a whole number is expected")
  end
  if doc.model == "" then return nil, err.new("badarg", "model: a name is expected") end
  if current and version < current then
    return refused("exists", ("version %d is older than %d"):format(version, current))
  end
  local ok
  ok, problem = keep(self.run, "policy", json.encode(json.object { version = version, model = doc.model }))
  if not ok then return nil, problem end
  current = self.run.models.agent.version
  if not current or version >= current then self.run:policy { version = version, model = doc.model } end
  return { json = json.object { version = version } }
end

local function cancel(self, req)
  local doc, problem = object(req, { id = "string", run = "string", why = "string" })
  if not doc then return nil, problem end
  if doc.run == "drain" then
    self.run:drain(doc.why or "the trainer asked for it")
  elseif doc.run == "stop" then
    self.run:stop(doc.why or "the trainer asked for it")
  elseif doc.id and not doc.run then
    if not self.run:abort(doc.id) then return nil, err.new("notfound", "no rollout of that id runs") end
  else
    return nil, err.new("badarg", 'id of a rollout, or run: "drain" or "stop", is expected')
  end
  return { json = json.object { state = self.run.state } }
end

local function status(self)
  local stats, run = self.run:stats(), self.run
  local numbers = stats.numbers
  return { json = json.object {
    run = run.run_id, state = run.state, paused = run.paused == true, version = stats.version, cursor = run.cursor,
    closed = run.closed, unacknowledged = run:_unacknowledged(), max_lead = run.opts.max_lead,
    running = stats.running, rollouts = numbers.rollouts, solved = numbers.solved, scored = numbers.scored,
    unscored = numbers.unscored, stale = numbers.stale,
    stale_groups = numbers.stale_groups, tasks = self._inbox and self._inbox.count or nil, consumer = self.consumer,
    failure = run.failure and run.failure.msg or nil, slowest = json.array(run:slowest(5)),
  } }
end

local function health(self)
  return { json = json.object { ok = self.run.failure == nil, state = self.run.state, instance = self._instance } }
end

local function routes(self)
  local list = {
    ["GET /health"] = health, ["GET /metrics"] = function() return metrics.answer(self.run) end,
    ["GET /v1/status"] = status, ["POST /v1/connect"] = connect, ["POST /v1/tasks"] = tasks,
    ["GET /v1/groups"] = groups, ["GET /v1/groups/:seq"] = group, ["POST /v1/ack"] = ack,
    ["POST /v1/policy"] = policy, ["POST /v1/cancel"] = cancel,
    ["POST /v1/pause"] = function() self.run:pause() return { json = json.object { paused = true } } end,
    ["POST /v1/resume"] = function() self.run:resume() return { json = json.object { paused = false } } end,
  }
  for route, fn in pairs(list) do
    list[route] = function(req) return fn(self, req) end
  end
  return list
end

-- ---------------------------------------------------------------- life

local function recall(self)
  local run = self.run
  self._session = (kept(run, "session") or ""):match "^[%x-]+" or nil
  local policy_before, current = json.decode(kept(run, "policy") or "null"), run.models.agent.version
  if json.is_object(policy_before) and (not current or policy_before.version > current) then
    run:policy { version = policy_before.version, model = policy_before.model }
  end
end

--- Opens the door of a run: see `Run:serve`.
---@async
---@param run agentbox.Run
---@param given agentbox.ServeOptions
---@return agentbox.Serve?
---@return agentbox.Err? err
function M.open(run, given)
  local opts = schema.options(given, OPTIONS, "run:serve")
  if not run.opts.grouping then error("run:serve: the run has no groups: give group_size or n", 3) end
  local before, size = run.size_before, run.opts.size
  if before and before ~= size then -- a trainer gets one group of a task, all of whose rewards are compared with each other
    return nil, err.new("config", ("run:serve: the run gave groups of %d rollouts, not of %d: its tasks would come again, with those that "
      .. "their groups lack; go on with groups of %d, or begin another run"):format(before, size, before))
  end
  local self = setmetatable({
    run = run, _inbox = opts.inbox, _instance = rand.uuid4(), _stale = opts.stale,
  }, Serve)
  local ok, problem = true, nil
  if run.run_dir then self._hold, problem = run.store:hold() end -- no other process gives out the same groups
  if problem then return nil, problem end
  recall(self)
  if opts.inbox then ok, problem = opts.inbox:attach(run.run_dir) end
  if ok then
    self._server, problem = http_server.serve {
      listen = opts.listen, token = opts.token, routes = routes(self), open = { "/health" }, body_bytes = opts.body_bytes,
      stall_timeout_s = opts.stall_timeout_s,
    }
  end
  if not self._server then
    if self._hold then self._hold:close() end
    return nil, problem
  end
  self.url, self.address = self._server.url, self._server.address
  return self
end

-- Whether no group is left that could be given out, now or later.
function Serve:_exhausted()
  return self.run.state == "over" and not self.run:_waiting(0)()
end

-- Whether that is so; the trainer is about to hear it.
function Serve:_tell_end()
  local ended = self:_exhausted()
  if ended and not self._told then
    self._told = true
    self.run:_poke()
  end
  return ended
end

--- Waits until the run is over and all its groups are acknowledged; then a moment longer, for the trainer to hear of
--- it.
---@async
---@param timeout_s? number
---@return boolean over
function Serve:wait(timeout_s)
  local until_s = timeout_s and self.run.now() + timeout_s or math.huge
  while not self:_exhausted() do
    local left = until_s - self.run.now()
    if left <= 0 then return false end
    self.run:_await(math.min(left, 60))
  end
  local last = self.run.now() + GRACE_S
  while self._session and not self._told and self.run.now() < last do self.run:_await(last - self.run.now()) end
  return true
end

--- Closes the door; the run goes on. May be called twice.
---@async
function Serve:close()
  if self._server then self._server:stop(5) end
  if self._inbox then self._inbox:close() end
  if self._hold then self._hold:close() end
end
Serve.__close = Serve.close

return M
