--- A run where no terminal is: a line now and then, and one for what somebody should know.
local out = require "agentbox.cli._out"
local summary = require "agentbox.cli._summary"
local time = require "agentbox.time"

local M = {}

local EVERY_S = 30
local TENTHS_FROM = 100 -- rollouts
local MOST_TROUBLES = 5

local Progress = {}
Progress.__index = Progress

---@param run agentbox.Run
---@param total? integer
---@return table
function M.new(run, total)
  return setmetatable({ run = run, total = total, tenth = 0, at = time.monotonic(), told = {} }, Progress)
end

local function write(line) io.stderr:write(line, "\n") end

-- A server that answers nobody is told at once, not after all tries of the first rollouts.
local function tell_trouble(self, stats)
  for _, one in ipairs(stats.stuck) do
    local subject = one.role == "agent" and "model" or "models." .. one.role
    local why = ("%s: %s"):format(subject, out.line(one.msg))
    if not self.told[why] and #self.told < MOST_TROUBLES then
      self.told[why], self.told[#self.told + 1] = true, why
      write(("agentbox: %s; calls that wait to be made again: %d"):format(why, one.waiting))
    end
  end
end

---Every tenth of a longer run, and at least every half minute.
function Progress:paint()
  local stats = self.run:stats()
  tell_trouble(self, stats)
  local numbers = stats.numbers
  local tenth = self.total and self.total >= TENTHS_FROM and numbers.rollouts * 10 // self.total or 0
  if tenth == self.tenth and time.monotonic() - self.at < EVERY_S then return end
  if stats.state == "over" then return end
  self.tenth, self.at = tenth, time.monotonic()
  local line = ("agentbox: %d%s ended, %d running, %.3g/s; solved %d, not solved %d"):format(numbers.rollouts,
    self.total and "/" .. self.total or "", stats.running, stats.rate, numbers.solved, numbers.scored - numbers.solved)
  if numbers.unscored > 0 then line = line .. "; unscored: " .. summary.counts(numbers.by_class) end
  write(line)
end

---@param line string
function Progress:say(line) write(line) end -- luacheck: ignore 212

function Progress:close() end -- luacheck: ignore 212

return M
