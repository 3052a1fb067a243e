--- A run on a terminal: a few lines that are painted over, as readable at 2,000 rollouts as at two.
local os_ = require "agentbox.sys.os"
local out = require "agentbox.cli._out"
local summary = require "agentbox.cli._summary"
local time = require "agentbox.time"

local M = {}

local REPAINT_S, SLOWEST = 0.5, 3

local Live = {}
Live.__index = Live

---A view of a run on standard error.
---@param run agentbox.Run
---@param total? integer   # rollouts, when that is known
---@return table
function M.new(run, total)
  local now = time.monotonic() -- the first picture is of a run that has begun
  return setmetatable({ run = run, total = total, painted = 0, at = now, last = { at = now, tokens = 0 }, per_s = 0 }, Live)
end

local function bar(done, total, width)
  local full = math.floor(width * math.min(1, done / total))
  return ("#"):rep(full) .. ("."):rep(width - full)
end

-- Tokens a second since the last painting, a little smoothed.
local function token_rate(self, stats)
  local now, tokens = time.monotonic(), stats.prompt_tokens + stats.completion_tokens
  local span = now - self.last.at
  if span >= REPAINT_S then
    self.per_s = 0.5 * self.per_s + 0.5 * (tokens - self.last.tokens) / span
    self.last = { at = now, tokens = tokens }
  end
  return self.per_s
end

local function progress(self, stats)
  local numbers = stats.numbers
  local done = numbers.rollouts
  local parts = {}
  if self.total and self.total > 0 then
    parts[1] = ("[%s] %d/%d"):format(bar(done, self.total, 24), done, self.total)
  else
    parts[1] = ("%d ended"):format(done)
  end
  parts[#parts + 1] = ("%d running"):format(stats.running)
  parts[#parts + 1] = ("%.3g/s"):format(stats.rate)
  if self.total and stats.rate > 0 and done < self.total then
    parts[#parts + 1] = "about " .. summary.duration((self.total - done) / stats.rate) .. " left"
  end
  return table.concat(parts, "  ")
end

local function failures(stats)
  local numbers = stats.numbers
  local line = ("solved %d, not solved %d"):format(numbers.solved, numbers.scored - numbers.solved)
  if numbers.unscored > 0 then line = line .. "; unscored: " .. summary.counts(numbers.by_class) end
  if numbers.retries > 0 then line = line .. ("; made again: %s"):format(summary.counts(numbers.failed_attempts)) end
  return line
end

local function servers(self, stats)
  local line = ("model calls %d"):format(stats.calls)
  if stats.waiting_calls > 0 then line = line .. (" (%d wait for another try or for their turn)"):format(stats.waiting_calls) end
  for _, one in ipairs(stats.stuck) do
    line = line .. (one.role == "agent" and ": " or ("; models.%s: "):format(out.line(one.role))) .. out.line(one.msg)
  end
  line = line .. ("; %.0f tokens/s"):format(token_rate(self, stats))
  local numbers = stats.numbers
  if numbers.groups.closed > 0 then line = line .. ("; groups closed %d"):format(numbers.groups.closed) end
  if stats.full_s then line = line .. ("; the disk is full since %s"):format(summary.duration(stats.full_s)) end
  if stats.paused then line = line .. "; paused" end
  if stats.state ~= "running" then line = line .. "; " .. stats.state end
  return line
end

---What is on the screen now.
---@return string[]
function Live:lines()
  local stats = self.run:stats()
  local list = { progress(self, stats), failures(stats), servers(self, stats) }
  local slowest, width = self.run:slowest(SLOWEST), 0
  for _, one in ipairs(slowest) do width = math.max(width, math.min(40, #out.line(one.id))) end
  for _, one in ipairs(slowest) do
    local cpu = one.cpu_s and (", %.1f s of CPU"):format(one.cpu_s) or ""
    list[#list + 1] = ("  %s%s %8s  %s%s"):format(out.line(one.id), (" "):rep(width - #out.line(one.id)), summary.duration(one.seconds), one.doing, cpu)
  end
  return list
end

local function wipe(self)
  return self.painted > 0 and ("\27[%dA\27[J"):format(self.painted) or ""
end

---Paints; at most every half second.
function Live:paint()
  local now = time.monotonic()
  if self.at and now - self.at < REPAINT_S then return end
  self.at = now
  local columns = os_.winsize() or 80
  local parts = { wipe(self) }
  local list = self:lines()
  for _, line in ipairs(list) do
    if utf8.len(line) and utf8.len(line) >= columns then line = line:sub(1, utf8.offset(line, columns - 1) - 1) end
    parts[#parts + 1] = line .. "\n"
  end
  self.painted = #list
  os_.write(2, table.concat(parts))
end

---A line above the view, that stays.
---@param line string
function Live:say(line)
  os_.write(2, wipe(self) .. line .. "\n")
  self.painted, self.at = 0, nil
  self:paint()
end

---Takes the view away.
function Live:close()
  os_.write(2, wipe(self))
  self.painted = 0
end

return M
