--- The end of a run in a few lines: what was done, what it cost, and whether its numbers can be trusted.
local out = require "agentbox.cli._out"

local M = {}

local function counts(map)
  local names, parts = {}, {}
  for name in pairs(map) do names[#names + 1] = name end
  table.sort(names, function(a, b)
    if map[a] ~= map[b] then return map[a] > map[b] end
    return a < b
  end)
  for i, name in ipairs(names) do parts[i] = ("%s %d"):format(name, map[name]) end
  return table.concat(parts, ", ")
end

M.counts = counts

---A duration for people: 0.31 s, 4 min 10 s, 2 h 5 min.
---@param seconds number
---@return string
function M.duration(seconds)
  if seconds < 60 then return ("%.3g s"):format(seconds) end
  seconds = math.floor(seconds + 0.5)
  if seconds < 3600 then return ("%d min %d s"):format(seconds // 60, seconds % 60) end
  return ("%d h %d min"):format(seconds // 3600, seconds % 3600 // 60)
end

local function peaks_of(peaks)
  local parts = {}
  for _, name in ipairs { "rollouts", "model_calls", "creating", "commands", "judges" } do
    local one = peaks[name]
    if one then
      local words = name:gsub("_", " ")
      parts[#parts + 1] = ("%s %d%s"):format(words, one.peak, one.max and ("/%d"):format(one.max) or "")
    end
  end
  return table.concat(parts, ", ")
end

local function groups_of(sum)
  local groups = sum.groups
  local line = ("%d closed: %d whole, %d partial, %d dropped"):format(groups.closed, groups.whole, groups.partial, groups.dropped)
  if groups.zero_signal > 0 then line = line .. ("; %d without signal (all outcomes the same)"):format(groups.zero_signal) end
  return line
end

-- Why the numbers should be read with care; empty when they need not be.
local function doubts(sum)
  local list = {}
  local function add(...) list[#list + 1] = (...):format(select(2, ...)) end
  if sum.unscored > 0 then
    add("%d of %d rollouts have no score (%s); no mean counts them", sum.unscored, sum.rollouts, counts(sum.by_class))
  end
  if sum.evicted > 0 then add("%d were given up while they ran: stragglers, a group's time, or by hand", sum.evicted) end
  if sum.bad_tasks > 0 then add("%d tasks could not be read: %s", sum.bad_tasks, out.line(sum.bad_task)) end
  if #sum.quarantined > 0 then
    add("given up after repeated failures: %s", out.line(table.concat(sum.quarantined, ", ", 1, math.min(5, #sum.quarantined))))
  end
  if sum.groups.partial > 0 then add("%d groups have fewer members than wanted", sum.groups.partial) end
  if sum.groups.dropped > 0 then add("%d groups were dropped", sum.groups.dropped) end
  if sum.why then add("the run ended before its work did: %s", out.line(sum.why)) end
  return list
end

local function trust(sum)
  if sum.rollouts == 0 then return "no", { "nothing was run" } end
  local list = doubts(sum)
  if sum.failure then return "no", list end
  if sum.scored == 0 then return "no", list end
  return #list == 0 and "yes" or "with care", list
end

---Whether the run's numbers can be trusted: yes, with care, no.
---@param sum agentbox.RunSummary
---@return "yes"|"with care"|"no" word
---@return string[] why
function M.trust(sum) return trust(sum) end

local function tokens_of(sum)
  local line = ("%d calls"):format(sum.model_calls)
  if sum.prompt_tokens + sum.completion_tokens > 0 then
    line = line .. (", %d prompt and %d completion tokens"):format(sum.prompt_tokens, sum.completion_tokens)
  end
  if sum.repeated_tries > 0 then line = line .. (", %d tries failed and were made again"):format(sum.repeated_tries) end
  if sum.restarted_calls > 0 then line = line .. (", %d sent again for new weights"):format(sum.restarted_calls) end
  return line
end

---The lines, from "rollouts" to "trust".
---@param sum agentbox.RunSummary
---@return string[]
function M.lines(sum)
  local list = {}
  local function row(name, text) list[#list + 1] = ("%-9s %s"):format(name, text) end
  local ended = ("%d ended, %d solved, %d not solved, %d unscored"):format(sum.rollouts, sum.solved, sum.scored - sum.solved,
    sum.unscored)
  if sum.kept > 0 then ended = ended .. ("; %d of them before this resume"):format(sum.kept) end
  row("rollouts", ended)
  if sum.reward_mean then row("reward", ("mean %.4g over the %d scored"):format(sum.reward_mean, sum.scored)) end
  if sum.retries > 0 then
    row("attempts", ("%d, of which %d were made again (%s)"):format(sum.attempts, sum.retries, counts(sum.failed_attempts)))
  end
  if sum.stale > 0 then row("stale", ("%d attempts were ended for new weights and made again"):format(sum.stale)) end
  if sum.stale_groups > 0 then row("too old", ("%d groups were not given out: they had waited for too many versions"):format(sum.stale_groups)) end
  local times = M.duration(sum.wall_s)
  if sum.p50_s then
    times = times .. (", a rollout %s (p50), %s (p90), %s (p99)"):format(M.duration(sum.p50_s), M.duration(sum.p90_s),
      M.duration(sum.p99_s))
  end
  local since = sum.kept > 0 and " (since this resume)" or ""
  row("time", times .. since)
  row("model", tokens_of(sum) .. since)
  if sum.groups.closed > 0 then row("groups", groups_of(sum)) end
  if sum.waste.rollouts > 0 then
    row("surplus", ("%d rollouts, %d steps, %d tokens, %s of rollout time for nothing"):format(sum.waste.rollouts,
      sum.waste.steps, sum.waste.tokens, M.duration(sum.waste.seconds)))
  end
  row("peaks", peaks_of(sum.peaks))
  local word, why = trust(sum)
  row("trust", #why == 0 and word .. ": every rollout ended with a score" or word .. ": " .. why[1])
  for i = 2, #why do row("", why[i]) end
  return list
end

return M
