--- The servers of one model: which of them a call goes to, how many calls each gets, and when none may leave.
---
---     enter ─► the session's own server, else the one with the fewest sessions
---          ─► it is down: one call tries it, the others wait ─► a Retry-After is waited for
---          ─► its gate (fixed, or as wide as the server takes) ─► the budget a minute ─► the request
---     leave ─► all well: the gate widens │ too much: it narrows │ failed, again and again: the server is down
---
--- Time spent in here is nobody's: it counts against no deadline of the call, and the rollout's clock stands still.
local async = require "agentbox.async"
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local gates = require "agentbox.async.gate"
local rate = require "agentbox.models.rate"
local time = require "agentbox.time"

local M = {}

local DOWN_AFTER = 5             -- failures in a row, of what is not a matter of too many calls
local DOWN_BASE_S, DOWN_CAP_S = 0.5, 5
local NARROW, LEAST = 0.7, 1     -- what is left of a gate after "too many"
local WIDEN = 0.02               -- of the gate's width, a round
local AFTER_DOWN = 8             -- calls at once when a server has come back
local MAX_SESSIONS = 65536

---@class agentbox.Place
---@field url string
---@field gate agentbox.Gate
---@field down boolean
---@field sessions integer

---@class agentbox.Places
local Places = {}
Places.__index = Places

local function place_of(url, opts)
  return {
    url = url, gate = gates.new(opts.limit), max = opts.limit or math.huge, not_before = 0, failures = 0, down = false,
    sessions = 0, latency_s = nil, narrowed_at = 0, narrowed = 0, downs = 0, waiters = {},
  }
end

---@class agentbox.PlacesOpts
---@field limit? integer              # calls at once, of each server
---@field adaptive? boolean           # narrow the gate when a server says that it is too much
---@field target_latency_s? number    # an answer that took longer means too much, too
---@field requests_per_minute? number
---@field tokens_per_minute? number
---@field max_wait_s? number          # for all of it together; default an hour
---@field on_state? fun(place: agentbox.Place, state: "down"|"up"|"narrowed")

---@param urls string[]
---@param opts agentbox.PlacesOpts
---@return agentbox.Places
function M.new(urls, opts)
  local self = setmetatable({
    _list = {}, _of = {}, _count = 0, _opts = opts, _adaptive = opts.adaptive ~= false, waiting = 0,
    _requests = opts.requests_per_minute and rate.new(opts.requests_per_minute),
    _tokens = opts.tokens_per_minute and rate.new(opts.tokens_per_minute), _mean = 0,
  }, Places)
  for i, url in ipairs(urls) do
    self._list[i] = place_of(url, opts)
    self._list[i].owner = self
  end
  return self
end

-- ---------------------------------------------------------------- which

local function assign(self, session, place)
  local before = self._of[session]
  if before then
    before.sessions = before.sessions - 1
  else
    if self._count >= MAX_SESSIONS then
      self._of, self._count = {}, 0
      for _, one in ipairs(self._list) do one.sessions = 0 end
    end
    self._count = self._count + 1
  end
  self._of[session] = place
  place.sessions = place.sessions + 1
end

local function fewest(self, not_this)
  local best
  for _, place in ipairs(self._list) do
    local better = not best or (best.down and not place.down)
        or best.down == place.down and place.sessions < best.sessions
    if place ~= not_this and better then best = place end
  end
  return best
end

-- A session stays where its prefix is known. It leaves a server that is down, or that has just failed it.
local function pick(self, session, failed)
  if #self._list == 1 then return self._list[1] end
  session = session or ""
  local place = self._of[session]
  if place and not place.down and place ~= failed then return place end
  local other = fewest(self, failed)
  if place and place ~= failed and other.down then return place end
  if other ~= place then assign(self, session, other) end
  return other
end

--- No more calls of that session will come.
---@param session string
function Places:forget(session)
  local place = self._of[session]
  if not place then return end
  place.sessions = place.sessions - 1
  self._of[session], self._count = nil, self._count - 1
end

-- ---------------------------------------------------------------- when

-- Sleeps, or until somebody says that the place has changed; the clock of the rollout stands still.
local function rest(place, seconds)
  local me <close> = setmetatable({ fiber = fiber.current() }, { __close = function(one) place.waiters[one.fiber] = nil end })
  place.waiters[me.fiber] = true
  fiber.park(seconds)
end

local function tell(place)
  for waiter in pairs(place.waiters) do waiter:wake() end
end

-- Seconds to wait before this place may be asked, and whether the caller is the one to try it.
local function hold_s(place)
  local now = time.monotonic()
  if place.down then
    if place.probing then return 60 end
    if now < place.down_until then return place.down_until - now end
    return 0, true
  end
  local wait = place.not_before - now
  if wait > 0 then return wait + math.random() * math.min(wait, 1) end
  return 0
end

local function budget_s(self)
  local a = self._requests and self._requests:wait_s() or 0
  local b = self._tokens and self._tokens:wait_s() or 0
  return math.max(a, b)
end

---@class agentbox.Turn
---@field place agentbox.Place
---@field waited_s number|false     # false until it is known
local Turn = {} -- a fifth member, which only budgets of tokens need, makes it twice as large
Turn.__index = Turn

-- Through everything that may hold a call back. What was waited for may have changed meanwhile, so it is asked again.
local function pass_through(self, session, failed, deadline)
  while true do
    local place = pick(self, session, failed)
    local wait, probe = hold_s(place)
    local left = deadline - time.monotonic()
    if wait > left or left <= 0 then
      return nil, err.new("timeout", ("no server could be asked within %g s"):format(self._opts.max_wait_s or 3600))
    end
    if wait > 0 then
      rest(place, math.min(wait, left))
    else
      local pass, late = place.gate:enter(left)
      if not pass then return nil, late end
      local turn = setmetatable({ place = place, waited_s = false, _pass = pass, _began = time.monotonic() }, Turn)
      if hold_s(place) == 0 and (not probe or place.down and not place.probing) then
        if probe then place.probing, turn._probe = true, true end
        return turn
      end
      turn:release()
    end
  end
end

local function must_wait(self, session, failed)
  local place = pick(self, session, failed)
  return hold_s(place) > 0 or place.gate.running >= place.gate.max or place.gate.waiting > 0 or budget_s(self) > 0
end

local function wait_for_budget(self)
  while true do
    local wait = budget_s(self)
    if wait <= 0 then return end
    async.sleep(wait)
  end
end

local function spend(self, bytes, turn)
  if self._requests then self._requests:take(1) end
  if not self._tokens then return end
  turn._guess = bytes / 4 + self._mean
  self._tokens:take(turn._guess)
end

--- Waits until a request may leave. The caller says with `turn:done` how it went, and releases the turn on every path:
--- `local turn <close>, problem = places:enter { ... }`.
---@async
---@param call { session?: string, failed?: agentbox.Place, bytes?: integer, clock?: agentbox.Budget }
---@return agentbox.Turn? turn
---@return agentbox.Err? err     # code `timeout`
function Places:enter(call)
  local began = time.monotonic()
  if not must_wait(self, call.session, call.failed) then
    local turn = pass_through(self, call.session, call.failed, began + 60)
    turn.waited_s = 0
    spend(self, call.bytes or 0, turn)
    return turn
  end
  if call.clock then call.clock:hold() end
  self.waiting = self.waiting + 1
  local _ <close> = setmetatable({}, { __close = function()
    self.waiting = self.waiting - 1
    if call.clock then call.clock:go() end
  end })
  local turn, problem = pass_through(self, call.session, call.failed, began + (self._opts.max_wait_s or 3600))
  if not turn then return nil, problem end
  local done <close> = setmetatable({}, { __close = function() if not turn.waited_s then turn:release() end end }) -- luacheck: ignore
  wait_for_budget(self)
  spend(self, call.bytes or 0, turn)
  turn.waited_s = time.monotonic() - began
  turn._began = time.monotonic()
  return turn
end

-- ---------------------------------------------------------------- what comes of it

local function note(self, place, state)
  if self._opts.on_state then self._opts.on_state(place, state) end
end

local function go_down(self, place)
  place.down, place.probing = true, false
  place.downs = place.downs + 1
  local ceiling = math.min(DOWN_CAP_S, DOWN_BASE_S * 2 ^ (place.downs - 1))
  place.down_until = time.monotonic() + ceiling * (0.5 + math.random() / 2)
  note(self, place, "down")
  tell(place)
end

local function come_up(self, place)
  place.down, place.probing, place.downs = false, false, 0
  if self._adaptive then
    place.quick_to = math.min(place.max, math.max(place.gate.max, AFTER_DOWN))
    place.gate:resize(math.min(place.max, AFTER_DOWN))
  end
  note(self, place, "up")
  tell(place)
end

-- Once a round: the answers to what was sent before the gate was narrowed say nothing new.
local function narrow(self, place)
  if not self._adaptive then return end
  local now = time.monotonic()
  if now - place.narrowed_at < math.max(0.25, place.latency_s or 0) then return end
  place.narrowed_at, place.narrowed = now, place.narrowed + 1
  place.quick_to = nil
  place.gate:resize(math.max(LEAST, math.floor(place.gate.running * NARROW)))
  note(self, place, "narrowed")
end

local function widen(place)
  local gate = place.gate
  if gate.max >= place.max or gate.running < gate.max * 0.9 and gate.waiting == 0 then return end
  local step = place.quick_to and gate.max < place.quick_to and 1 or math.max(1, WIDEN * gate.max) / gate.max
  place.credit = (place.credit or 0) + step
  if place.credit < 1 then return end
  gate:resize(math.min(place.max, gate.max + math.floor(place.credit)))
  place.credit = 0
end

local function went_well(self, place, latency_s, turn)
  place.failures = 0
  if turn._probe then come_up(self, place) end
  place.latency_s = place.latency_s and 0.9 * place.latency_s + 0.1 * latency_s or latency_s
  local target = self._opts.target_latency_s
  if target and latency_s > target then narrow(self, place) else widen(place) end
end

--- How the request went: `ok` (the server answered, if only to refuse), `busy` (too many requests; not before `after_s`),
--- `bad` (it failed, or nothing came).
---@param how "ok"|"busy"|"bad"
---@param facts? { after_s?: number, tokens?: integer }
function Turn:done(how, facts)
  local place, tokens = self.place, facts and facts.tokens
  local self_ = place.owner
  if self._guess then
    local used = tokens or how ~= "ok" and 0 or self._guess
    self_._tokens:take(used - self._guess)
    if tokens then self_._mean = 0.9 * self_._mean + 0.1 * math.max(0, tokens - (self._guess - self_._mean)) end
  end
  if how == "ok" then
    went_well(self_, place, time.monotonic() - self._began, self)
  elseif how == "busy" then
    if self._probe then come_up(self_, place) end
    narrow(self_, place)
    if facts and facts.after_s then place.not_before = math.max(place.not_before, time.monotonic() + facts.after_s) end
  else
    place.failures = place.failures + 1
    if self._probe or not place.down and place.failures >= DOWN_AFTER then go_down(self_, place) end
  end
  self._probe = nil
end

--- Gives the place in the gate back. May be called twice.
function Turn:release()
  if self._probe then -- the one that tried it was cancelled: the next one tries
    self._probe, self.place.probing = nil, false
    tell(self.place)
  end
  self._pass:release()
end
Turn.__close = Turn.release

--- Each server: its address, calls in flight, the most there were, how many it may have now, whether it is down.
---@return { url: string, running: integer, waiting: integer, peak: integer, max?: integer, down: boolean, sessions: integer, narrowed: integer }[]
function Places:list()
  local out = {}
  for i, place in ipairs(self._list) do
    local gate = place.gate
    out[i] = {
      url = place.url, running = gate.running, waiting = gate.waiting, peak = gate.peak,
      max = gate.max < math.huge and gate.max or nil, down = place.down, sessions = place.sessions, narrowed = place.narrowed,
    }
  end
  return out
end

return M
