--- The ranking of a closed group: its rewards become what comparing its members gives, before anybody sees the group.
---
--- It happens in a fiber of its own, so that no rollout waits for a judge. Until the group's line is written the group is not
--- closed on the disk: a run that dies meanwhile ranks it again when it is resumed. A ranking that fails drops the group with
--- the reason; the members are in the record and can be ranked later.
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local guard = require "agentbox.tool.guard"
local json = require "agentbox.json"
local limits = require "agentbox.limits"
local schema = require "agentbox.schema"
local verify = require "agentbox.verify"

local M = {}

--- For one group; the judge's calls have deadlines of their own.
local LIMITS, TIMEOUT_S = { cpu_s = 60, memory_bytes = 512 << 20 }, 3600

--- The option `rank` as a function.
---@param given function|table|nil
---@return function?
---@return agentbox.Err?
function M.option(given)
  if given == nil or type(given) == "function" then return given end
  if type(given) ~= "table" then return nil, err.new("config", "runner: rank must be a function or the options of verify.ranking") end
  local ok, made = pcall(verify.ranking, given)
  if ok then return made end
  return nil, err.new("config", "runner: rank: " .. tostring(made):gsub("^.-verify%.ranking: ", ""))
end

-- A finite number for each member and for nobody else; else what is wrong.
local function checked(scores, members)
  if type(scores) ~= "table" then return nil, "the ranking gave no scores" end
  local rewards, left = json.array {}, {}
  for id in pairs(scores) do left[id] = true end
  for i, id in ipairs(members) do
    local score = scores[id]
    if type(score) ~= "number" or score ~= score or math.abs(score) == math.huge then
      return nil, ("the score of %s is %s"):format(id, tostring(score))
    end
    rewards[i], left[id] = score + 0.0, nil
  end
  local stray = schema.names(left)[1]
  if stray then return nil, ("a score for %s, which is no member"):format(stray) end
  return rewards
end

--- Ranks trajectories with a function, whatever it does.
---@async
---@param rank function
---@param group { id: string, task?: string, trajectories: agentbox.Traj[] }
---@return number[]? rewards      # in the order of the trajectories
---@return table|string facts_or_why
function M.scores(rank, group)
  local pass <close> = limits.enter "judges" -- luacheck: ignore
  local ok, scores, info = guard.call(function() return rank(group) end, {
    cpu_s = LIMITS.cpu_s, memory_bytes = LIMITS.memory_bytes, blame = rank,
  }, TIMEOUT_S)
  if not ok then return nil, tostring(scores.msg or scores) end
  if scores == nil then return nil, tostring(err.is(info) and info.msg or info or "the ranking gave no scores") end
  local ids = {}
  for i, t in ipairs(group.trajectories) do ids[i] = t.id end
  local rewards, why = checked(scores, ids)
  if not rewards then return nil, why end
  return rewards, type(info) == "table" and info or { name = "function" }
end

local function all_equal(rewards)
  for i = 2, #rewards do
    if rewards[i] ~= rewards[1] then return false end
  end
  return #rewards > 1
end

--- Puts the ranks of a group into what is stored of it: `rewards` become them, `independent` keeps what the members were given
--- one by one.
---@async
---@param rank function
---@param facts table
---@param trajectories agentbox.Traj[]
function M.apply(rank, facts, trajectories)
  local task = trajectories[1] and trajectories[1].task.description
  local rewards, info = M.scores(rank, { id = facts.id, task = task, trajectories = trajectories })
  facts.independent = json.array(facts.rewards)
  if rewards then
    facts.rewards, facts.ranking, facts.zero_signal = rewards, info, all_equal(rewards)
    return
  end
  facts.rewards, facts.ranking = json.array {}, { error = info }
  for i = 1, #facts.members do facts.rewards[i] = json.null end
  facts.dropped = "the ranking failed: " .. info
end

--- Does something with a closed group in a fiber of its own, which the run's end waits for and a stop ends.
---@param run agentbox.Run
---@param group agentbox.Group_
---@param fn fun()
function M.spawn(run, group, fn)
  run.settling[group] = true
  run.ranking[group] = fiber.spawn(function()
    local _ <close> = setmetatable({}, { __close = function() -- luacheck: ignore
      run.settling[group], run.ranking[group] = nil, nil
      run:_poke()
    end })
    local ok, problem = xpcall(fn, function(raised)
      return err.is(raised) and raised or err.new("defect", tostring(raised), { traceback = debug.traceback(tostring(raised), 2) })
    end)
    if not ok then run:_fail(problem) end
  end)
end

return M
