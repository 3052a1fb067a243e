--- A model that says what a script says.
---
---     ab.model.scripted { { tool_calls = { { name = "run_command", arguments = { command = "ls" } } } }, "done" }
---
--- A turn is a text, a message, or a function (request, n) → text or message, or nil, err. Any number of rollouts may
--- share one handle: where a rollout is follows from its session, and for a session not seen before from the number
--- of assistant messages it brings along, so that a fork or a resumed rollout goes on where its history ends.
local async = require "agentbox.async"
local fn = require "agentbox.models.fn"
local synthetic = require "agentbox.models.synthetic"
local time = require "agentbox.time"

local M = {}

local END = "The script has no more turns."
local MAX_SESSIONS = 8192 -- positions remembered; older ones are known by their histories

local Model = { __name = "agentbox.Model", close = function() end }
Model.__index = Model
Model.keeps_time = true -- request.timeout_s needs no second clock
Model.__close = Model.close

local function answered(messages)
  local n = 0
  for _, message in ipairs(messages) do
    if message.role == "assistant" then n = n + 1 end
  end
  return n
end

local function next_position(self, request)
  local session = request.session or ""
  local at = self._recent[session]
  if not at then
    at = self._old[session] or answered(request.messages)
    if self._count >= MAX_SESSIONS then self._old, self._recent, self._count = self._recent, {}, 0 end
    self._count = self._count + 1
  end
  self._recent[session] = at + 1
  return at + 1
end

---@async
---@param request agentbox.Request
---@return agentbox.Response? response
---@return agentbox.Err? err
function Model:complete(request)
  local queued = time.now()
  local n = next_position(self, request)
  local turn = self._turns[n]
  if turn == nil then turn = self._then or END end
  if type(turn) == "function" then
    local answer, err = turn(request, n)
    if answer == nil then
      return fn.new(function() return nil, err end, self.name):complete(request)
    end
    turn = answer
  end
  if type(turn) == "table" and turn.delay_s then async.sleep(turn.delay_s) end
  return synthetic.response(self.name, request, turn, queued)
end

function Model:describe()
  return { name = self.name, kind = "scripted", turns = #self._turns }
end

---@param turns table    # the list of turns; `name` and `last` (said after the end) beside them
---@return agentbox.Model
function M.new(turns)
  if type(turns) ~= "table" then error("model.scripted: list of turns expected, got " .. type(turns), 3) end
  for key in pairs(turns) do
    if math.type(key) ~= "integer" and key ~= "name" and key ~= "last" then
      error(("model.scripted: unknown option '%s'"):format(tostring(key)), 3)
    end
  end
  return setmetatable({
    name = turns.name or "scripted", _turns = turns, _then = turns.last, _recent = {}, _old = {}, _count = 0,
  }, Model)
end

return M
