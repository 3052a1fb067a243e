--- limits.lua: how much of each thing may go on at once in a run: sandboxes being created, commands, judgements.
---
--- The limits belong to the fiber that set them and to all that it starts, so that two runs in one engine do not share
--- theirs, and a rollout outside of a run has none.
local fiber = require "agentbox.sys.fiber"
local gate = require "agentbox.async.gate"

local M = {}

--- What can be limited: sandboxes being created; turns of tool calls, setups and verifiers' commands; judgements.
M.NAMES = { "creating", "commands", "judges" }

local KEYS = { creating = "inside_creating", commands = "inside_commands", judges = "inside_judges" }

---@class agentbox.Limits: table<string, agentbox.Gate>
local Limits = {}
Limits.__index = Limits

local open = setmetatable({}, { __close = function() end }) -- where nothing is limited

--- New limits; what has no number is counted only.
---@param max table<string, number>
---@return agentbox.Limits
function M.new(max)
  local self = setmetatable({}, Limits)
  for _, name in ipairs(M.NAMES) do self[name] = gate.new(max[name]) end
  return self
end

--- Makes them the limits of this fiber and of those it starts from now on.
function Limits:use()
  fiber.current():locals().limits = self
end

--- The most that were inside at once, and the limits.
---@return table<string, { peak: integer, max?: number }>
function Limits:peaks()
  local out = {}
  for _, name in ipairs(M.NAMES) do
    local one = self[name]
    out[name] = { peak = one.peak, max = one.max < math.huge and one.max or nil }
  end
  return out
end

local Held = {}
Held.__index = Held

function Held:release()
  if not self.pass then return end
  self.locals[self.key] = nil
  self.pass:release()
  self.pass = nil
end
Held.__close = Held.release

local held = { __close = function(clock) clock[1]:go() end }

local function pass_of(one, clock)
  if not clock or one.running < one.max and one.waiting == 0 then return one:enter() end
  clock:hold()
  local _ <close> = setmetatable({ clock }, held) -- luacheck: ignore
  return one:enter()
end

--- Waits for room under the running fiber's limit: `local pass <close> = limits.enter "commands"`. Who is inside already,
--- or was started by one who is, does not wait again. The clock of a rollout stands still meanwhile.
---@async
---@param name "creating"|"commands"|"judges"
---@param clock? agentbox.Budget
---@return table pass
function M.enter(name, clock)
  local locals, key = fiber.current():locals(), KEYS[name]
  if not locals.limits or locals[key] then return open end
  local pass = pass_of(locals.limits[name], clock)
  locals[key] = true
  return setmetatable({ pass = pass, locals = locals, key = key }, Held)
end

return M
