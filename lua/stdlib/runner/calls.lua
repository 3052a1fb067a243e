--- Every model call of a run goes through here: it waits while the run is paused, learns which weights it is for at the
--- moment it is sent, and is counted.
---
--- With `inflight = "restart"` each call has a fiber of its own, so that new weights can end it and have it asked again.
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local gate = require "agentbox.async.gate"

local M = {}

---@class agentbox.Calls: agentbox.Model
---@field version? integer     # of the weights, as last announced
---@field served? string       # the name the server knows them by, when it changes with them
---@field gate agentbox.Gate   # calls in flight
local Calls = {}
Calls.__index = Calls
Calls.__name = "agentbox.Model"

--- A model that calls `model`.
---@param model agentbox.Model
---@param opts { policy?: table, restart: boolean, on_call: fun(session: string?, version: integer?) }
---@return agentbox.Calls
function M.new(model, opts)
  local self = setmetatable({
    name = model.name, keeps_time = model.keeps_time, seed_per_member = model.seed_per_member, gate = gate.new(),
    prompt_tokens = 0, completion_tokens = 0, failures = 0, restarts = 0, _model = model, _restart = opts.restart,
    _on_call = opts.on_call, _inflight = {}, _paused = {},
  }, Calls)
  if opts.policy then self.version, self.served = opts.policy.version, opts.policy.model end
  return self
end

local going_on = { __close = function(clock) clock[1]:go() end }

local function wait_while_paused(self, clock)
  if not self.paused then return end
  if clock then clock:hold() end
  local _ <close> = clock and setmetatable({ clock }, going_on) -- luacheck: ignore
  while self.paused do
    local place <close> = setmetatable({ fiber.current() }, { __close = function(mine) self._paused[mine] = nil end })
    self._paused[place] = true
    fiber.park()
  end
end

-- Called by a model right before a request leaves, for every try: what is read here is what the call is recorded with.
local function dispatcher(self, request)
  return function()
    wait_while_paused(self, request.clock)
    request.version = self.version
    self._on_call(request.session, self.version)
    return self.served
  end
end

local function once(self, request)
  if not self._restart then return self._model:complete(request) end
  local mine <close> = setmetatable({ fiber.spawn(self._model.complete, self._model, request) }, {
    __close = function(call)
      self._inflight[call] = nil
      call[1]:cancel()
    end,
  })
  self._inflight[mine] = true
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
  local pass <close> = self.gate:enter() -- luacheck: ignore
  request.dispatch = dispatcher(self, request)
  local response, problem
  repeat
    request.version = nil
    if not self._model.dispatches then request.dispatch() end -- a model that does not say when it sends
    response, problem = once(self, request)
    local again = problem and problem.superseded
    if again then self.restarts = self.restarts + 1 end
  until not again
  if not response then
    self.failures = self.failures + 1
    return nil, problem
  end
  response.version = request.version
  local usage = response.usage or {}
  self.prompt_tokens = self.prompt_tokens + (usage.prompt or 0)
  self.completion_tokens = self.completion_tokens + (usage.completion or 0)
  return response
end

--- Calls from now on wait, until `resume`. Those in flight end.
function Calls:pause() self.paused = true end

function Calls:resume()
  self.paused = false
  for place in pairs(self._paused) do place[1]:wake() end
end

--- New weights. Calls that are sent from now on are theirs; with `restart` those in flight are ended and sent again.
---@param policy { version: integer, model?: string }
---@param restart boolean
function Calls:announce(policy, restart)
  self.version, self.served = policy.version, policy.model or self.served
  if not restart then return end
  local reason = err.new("cancelled", "superseded by new weights", { superseded = true })
  for call in pairs(self._inflight) do call[1]:cancel(reason) end
end

--- Calls that wait: for another try, or for a server's turn.
---@return integer
function Calls:waiting()
  local stats = self._model.stats and self._model:stats()
  return stats and (stats.waiting or 0) + (stats.held or 0) or 0
end

--- What the model knows of its servers.
---@return table[]?
function Calls:places()
  local stats = self._model.stats and self._model:stats()
  return stats and stats.places
end

function Calls:describe() return self._model:describe() end

--- Tells the model that no more calls of that session will come.
function Calls:forget(session)
  if self._model.forget then self._model:forget(session) end
end

function Calls.close() end
Calls.__close = Calls.close

return M
