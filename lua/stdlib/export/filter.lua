--- Which trajectories an export takes.
local choice = require "agentbox.formats._choice"
local err = require "agentbox.err"
local hash = require "agentbox.sys.hash"
local json = require "agentbox.json"
local membership = require "agentbox.record.membership"
local read = require "agentbox.store.read"

local M = {}

---@class agentbox.ExportFilter
---@field min_reward? number     # leaves out what is unscored or below
---@field max_reward? number     # leaves out what is unscored or above
---@field status? string[]       # AgentBox's words: success, failed, timeout, error, max_steps
---@field best? integer          # the best n of each group (of each task, where no group was planned), by reward
---@field dedupe? boolean        # leaves out what has the same messages as one before
---@field max_tokens? integer    # leaves out what has a call with more tokens, prompt and output, as the server counted

local KINDS = { min_reward = "number", max_reward = "number", best = "integer", max_tokens = "integer", dedupe = "boolean", status = "table" }

local STATUSES = { success = true, failed = true, timeout = true, error = true, max_steps = true }

local function bad(msg, ...)
  return nil, err.new("badarg", msg:format(...))
end

local function checked(opts)
  for name, value in pairs(opts) do
    local kind = KINDS[name]
    if not kind then return bad("filter has no option %s", name) end
    if kind ~= "integer" and type(value) ~= kind then return bad("filter.%s must be a %s", name, kind) end
    if kind == "integer" and (math.type(value) ~= "integer" or value < 1) then return bad("filter.%s must be an integer of at least 1", name) end
  end
  for _, status in ipairs(opts.status or {}) do
    if not STATUSES[status] then return bad("filter.status: unknown status %s", tostring(status)) end
  end
  return true
end

-- A later attempt is another place for the same id.
local function place_of(t)
  return ("%s\0%s\0%d"):format(t.run_id, t.id, choice.plain(t.line.attempt) or 0)
end

local function better(a, b)
  if a.reward ~= b.reward then return a.reward > b.reward end
  return a.n < b.n
end

-- The places of the best of each group: one pass over the input beforehand.
local function best_of(inputs, n, ranks)
  local groups, chosen, count = {}, {}, 0
  for _, path in ipairs(inputs) do
    local ok, problem = read.visit(path, function(t)
      local rank = ranks and ranks[t.id]
      if rank then t:with_reward(rank.reward or nil) end
      if not t.scored then return end
      count = count + 1
      local key = select(4, membership(t))
      local list = groups[key] or {}
      groups[key] = list
      list[#list + 1] = { place = place_of(t), reward = t.reward, n = count }
      table.sort(list, better)
      list[n + 1] = nil
    end)
    if not ok then return nil, problem end
  end
  for _, list in pairs(groups) do
    for _, entry in ipairs(list) do chosen[entry.place] = true end
  end
  return chosen
end

local function tokens_of(t)
  local most
  for _, call in ipairs(t.line.calls) do
    local usage = choice.plain(call.usage)
    if usage and usage.prompt then most = math.max(most or 0, usage.prompt + (usage.completion or 0)) end
  end
  return most
end

local function messages_hash(t)
  local hasher = hash.hasher()
  for _, step in ipairs(t:path()) do hasher:update(json.encode(step.message, { sorted = true })) end
  return hasher:hex():sub(1, 32)
end

local function by_reward(t, opts)
  if not opts.min_reward and not opts.max_reward then return nil end
  if not t.scored then return "filtered: unscored" end
  if opts.min_reward and t.reward < opts.min_reward then return ("filtered: reward below %g"):format(opts.min_reward) end
  if opts.max_reward and t.reward > opts.max_reward then return ("filtered: reward above %g"):format(opts.max_reward) end
end

local function by_length(t, most)
  local n = most and tokens_of(t)
  if most and not n then return "filtered: the server told no number of tokens" end
  if n and n > most then return ("filtered: more than %d tokens"):format(most) end
end

--- A function that tells why a trajectory is left out, nil for one that is taken; nil when nothing is filtered.
---
--- Returns nil, err: `badarg` for a filter that is none, and what reading the input gives.
---@async
---@nodiscard
---@param opts agentbox.ExportFilter?
---@param inputs string[]
---@param ranks? table<string, { reward: number|false }>
---@return (fun(t: agentbox.Traj): string?)? filter
---@return agentbox.Err? err
function M.new(opts, inputs, ranks)
  if not opts or next(opts) == nil then return nil end
  local ok, problem = checked(opts)
  if not ok then return nil, problem end
  local best, statuses, seen
  if opts.best then
    best, problem = best_of(inputs, opts.best, ranks)
    if not best then return nil, problem end
  end
  if opts.dedupe then seen = {} end
  if opts.status then
    statuses = {}
    for _, status in ipairs(opts.status) do statuses[status] = true end
  end
  return function(t)
    if statuses and not statuses[t.final_status] then return "filtered: status " .. t.final_status end
    local reason = by_reward(t, opts) or by_length(t, opts.max_tokens)
    if reason then return reason end
    if best and not best[place_of(t)] then return ("filtered: not among the %d best of its group"):format(opts.best) end
    if not seen then return nil end
    local key = messages_hash(t)
    if seen[key] then return "filtered: the same messages as one before" end
    seen[key] = true
  end
end

return M
