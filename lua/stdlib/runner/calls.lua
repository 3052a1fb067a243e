--- Every model call of a run goes through here: it waits while the run is paused, learns which weights it is for at the
--- moment it is sent, and is counted.
---
--- With `inflight = "restart"` each call has a fiber of its own, so that new weights can end it and have it asked again.
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local gate = require "agentbox.async.gate"

local M = {}

--- What all calls of a role have in common, whichever model they go to: weights, pause, counts.
---@class agentbox.CallsState
---@field version? integer     # of the weights, as last announced
---@field served? string       # the name the server knows them by, when it changes with them
---@field gate agentbox.Gate   # calls in flight
---@field paused? boolean
---@field prompt_tokens integer
---@field completion_tokens integer
---@field failures integer
---@field restarts integer
---@field repeats integer      # tries that failed and were made again
---@field private waiters table
---@field private inflight table
---@field private models table<agentbox.Model, agentbox.Calls>   # by the model they go to
---@field private restart boolean
---@field private on_call fun(session: string?, version: integer?)

---@class agentbox.Calls: agentbox.Model
---@field private _state agentbox.CallsState
---@field private _model agentbox.Model
---@field private _renamed boolean   # new weights may have another name here
local Calls = {}
Calls.__name = "agentbox.Model"

-- What the role has, each of its models shows.
function Calls:__index(key)
  local method = Calls[key]
  if method ~= nil then return method end
  return rawget(self, "_state")[key]
end

local function wrap(state, model, renamed)
  local self = setmetatable({
    name = model.name, keeps_time = model.keeps_time, seed_per_member = model.seed_per_member, _state = state, _model = model,
    _renamed = renamed,
  }, Calls)
  state.models[model] = self
  return self
end

--- A model that calls `model`.
---@param model agentbox.Model
---@param opts { policy?: table, restart: boolean, on_call: fun(session: string?, version: integer?) }
---@return agentbox.Calls
function M.new(model, opts)
  local state = {
    gate = gate.new(), prompt_tokens = 0, completion_tokens = 0, failures = 0, restarts = 0, repeats = 0, restart = opts.restart,
    on_call = opts.on_call, inflight = {}, waiters = {}, models = setmetatable({}, { __mode = "k" }),
  }
  if opts.policy then state.version, state.served = opts.policy.version, opts.policy.model end
  return wrap(state, model, true)
end

--- The same for another model in this one's place, as a rollout may have one of its own: paused, counted and versioned with
--- it, but under its own name.
---@param model agentbox.Model
---@return agentbox.Calls
function Calls:beside(model)
  if getmetatable(model) == Calls then return model end
  return self._state.models[model] or wrap(self._state, model, false)
end

local going_on = { __close = function(clock) clock[1]:go() end }

local function wait_while_paused(state, request)
  if not state.paused then return end
  local clock = request.clock and request:clock()
  if clock then clock:hold() end
  local _ <close> = clock and setmetatable({ clock }, going_on) -- luacheck: ignore
  while state.paused do
    local place <close> = setmetatable({ fiber.current() }, { __close = function(mine) state.waiters[mine] = nil end })
    state.waiters[place] = true
    fiber.park()
  end
end

-- Called by a model right before a request leaves, for every try: what is read here is what the call is recorded with.
local function dispatcher(self, request)
  local state = self._state
  return function()
    wait_while_paused(state, request)
    if request.tried then state.repeats = state.repeats + 1 end
    request.tried, request.version = true, state.version
    state.on_call(request.session, state.version)
    return self._renamed and state.served or nil
  end
end

local function once(self, request)
  local state = self._state
  if not state.restart then return self._model:complete(request) end
  local mine <close> = setmetatable({ fiber.spawn(self._model.complete, self._model, request) }, {
    __close = function(call)
      state.inflight[call] = nil
      call[1]:cancel()
    end,
  })
  state.inflight[mine] = true
  local ok, response, problem = mine[1]:join()
  if ok then return response, problem end
  if err.is(response) and response.superseded then return nil, response end
  error(response, 0)
end

---@async
---@param request agentbox.Request
---@return agentbox.Response? response
---@return agentbox.Err? err
function Calls:complete(request)
  local state = self._state
  local pass <close> = state.gate:enter() -- luacheck: ignore
  request.dispatch = dispatcher(self, request)
  local response, problem
  repeat
    request.version, request.tried = nil, nil
    if not self._model.dispatches then request.dispatch() end -- a model that does not say when it sends
    response, problem = once(self, request)
    local again = problem and problem.superseded
    if again then state.restarts = state.restarts + 1 end
  until not again
  if not response then
    state.failures = state.failures + 1
    return nil, problem
  end
  response.version = request.version
  local usage = response.usage or {}
  state.prompt_tokens = state.prompt_tokens + (usage.prompt or 0)
  state.completion_tokens = state.completion_tokens + (usage.completion or 0)
  return response
end

--- Calls from now on wait, until `resume`. Those in flight end.
function Calls:pause() self._state.paused = true end

function Calls:resume()
  self._state.paused = false
  for place in pairs(self._state.waiters) do place[1]:wake() end
end

--- New weights. Calls that are sent from now on are theirs; with `restart` those in flight are ended and sent again.
---@param policy { version: integer, model?: string }
---@param restart boolean
function Calls:announce(policy, restart)
  local state = self._state
  state.version, state.served = policy.version, policy.model or state.served
  if not restart then return end
  local reason = err.new("cancelled", "superseded by new weights", { superseded = true })
  for call in pairs(state.inflight) do call[1]:cancel(reason) end
end

-- Of each model that knows something of its servers.
local function each_stats(self)
  local models = self._state.models
  local model
  return function()
    repeat model = next(models, model) until not model or model.stats
    return model and model:stats()
  end
end

--- Calls that wait: for another try, or for a server's turn.
---@return integer
function Calls:waiting()
  local sum = 0
  for stats in each_stats(self) do sum = sum + (stats.waiting or 0) + (stats.held or 0) end
  return sum
end

--- Why calls wait for another try, as the last of them was told; nil when none waits.
---@return string?
function Calls:trouble()
  for stats in each_stats(self) do
    if stats.trouble then return stats.trouble end
  end
end

--- What the models know of their servers.
---@return table[]?
function Calls:places()
  local list
  for stats in each_stats(self) do
    list = list or {}
    table.move(stats.places or {}, 1, #(stats.places or {}), #list + 1, list)
  end
  return list
end

function Calls:describe() return self._model:describe() end

--- Tells the model that no more calls of that session will come.
function Calls:forget(session)
  if self._model.forget then self._model:forget(session) end
end

function Calls.close() end
Calls.__close = Calls.close

return M
