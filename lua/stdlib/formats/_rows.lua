--- The lineariser: the calls of a rollout as rows of token ids, with a mask and a log-prob for each, for trainers that
--- take sequences.
---
--- A row is what one call saw and said, `prompt .. out`, and goes on while the next call's prompt begins with exactly that
--- (**clean**: only the tail is new, mask 0, then its output, mask 1). A prompt that differs inside the last output
--- (**realign**) overwrites it from there with mask 0, so that no log-prob is kept under another prefix than its own;
--- one that differs earlier, or by more than `realign` ids, begins a new row (**fork**). Each output is trained once.
---
--- Ids and log-probs stay the text that the server sent: a row is put together by joining slices.
local choice = require "agentbox.formats._choice"
local hash = require "agentbox.hash"
local json = require "agentbox.json"
local membership = require "agentbox.record.membership"
local plane = require "agentbox.sys.plane"
local sys = require "agentbox.sys.json"
local tokens = require "agentbox.record.tokens"

local M = {
  --- What formats of rows take besides their own options.
  OPTIONS = { mode = { "merge", "stepwise", "strict" }, realign = "number" },
  NEVER = { "messages", "calls that failed", "tool timings", "requests" },
}

-- A difference inside the last output of more ids than this begins a new row.
local REALIGN = 1024

---@class agentbox.RowSegment
---@field ids string        # comma separated
---@field n integer
---@field lp? string        # of a sampled segment
---@field call? table

---@class agentbox.Row
---@field segs agentbox.RowSegment[]
---@field n integer           # ids in all
---@field calls agentbox.PlaneCall[]   # those whose output it trains
---@field prompt_len integer  # ids before the first trained one
---@field realigned integer   # sampled ids that a later prompt overwrote

-- What stands between the brackets of a list, without blanks.
local function inner(list) return tokens.text(list):sub(2, -2) end

-- The first n elements of a list.
local function first(text, n)
  local at = 0
  for _ = 1, n do at = text:find(",", at + 1, true) or #text + 1 end
  return text:sub(1, at - 1)
end

local function add(segs, ids, n, lp, call)
  if n > 0 then segs[#segs + 1] = { ids = ids, n = n, lp = lp, call = call } end
end

-- The first n ids of what a call saw and said; the sampled ones stay so only for the row that goes on.
local function take(full, n, trained)
  local segs, left = {}, n
  for i = 1, full.count do
    local seg = full.segs[i]
    if left <= 0 then break end
    local lp = trained and seg.lp or nil
    if seg.n <= left then
      segs[i] = (lp or not seg.lp) and seg or { ids = seg.ids, n = seg.n }
    else
      segs[i] = { ids = first(seg.ids, left), n = left, lp = lp and first(lp, left), call = lp and seg.call }
    end
    left = left - seg.n
  end
  return segs
end

local function new_row(segs, n)
  return { segs = segs, n = n, calls = {}, realigned = 0 }
end

-- What a call's prompt is, seen from its base: the class, how many ids are kept, and the new ones.
local function prompt_of(call, fulls, limit)
  local given = call.tokens
  if given.prompt:byte() ~= 123 then return "first", nil, 0, given.prompt end -- "{"
  local full = fulls[given.base]
  local class = "fork"
  if full.row.last == given.base then
    local gone = full.n - given.keep
    if gone == 0 then class = "clean"
    elseif given.keep >= full.n_prompt and gone <= limit then class = "realign" end
  end
  return class, full, given.keep, given.tail
end

-- The row that a call's output goes to, with its prompt in place.
local function row_for(self, call, mode)
  local class, full, keep, tail = prompt_of(call, self.fulls, self.limit)
  if mode == "strict" and class ~= "clean" and call.trainable and self.trained then
    return nil, ("call %d does not go on from the one before (%s)"):format(call.i, call.tokens.drift)
  end
  local row
  if mode == "stepwise" or class == "fork" then
    row = new_row(full and take(full, keep) or {}, keep)
  elseif class == "first" then
    row = new_row({}, 0)
  else
    row = full.row
    if class == "realign" then
      row.realigned = row.realigned + full.n - keep
      row.segs, row.n = take(full, keep, true), keep
    end
  end
  if row ~= (full and full.row) then self.rows[#self.rows + 1] = row end
  local n = plane.count(tail) or 0
  add(row.segs, inner(tail), n)
  row.n = row.n + n
  return row
end

local function take_call(self, call, mode)
  local row, why = row_for(self, call, mode)
  if not row then return why end
  local planes, n_prompt = call.tokens, row.n
  local trained = call.trainable and tokens.is_rl_grade(call)
  add(row.segs, inner(planes.out), planes.n_out, trained and inner(planes.lp) or nil, trained and call or nil)
  row.n, row.last = row.n + planes.n_out, call.i
  if trained then row.calls[#row.calls + 1], self.trained = call, true end
  self.fulls[call.i] = { row = row, segs = row.segs, count = #row.segs, n = row.n, n_prompt = n_prompt }
end

-- Cuts what follows the last trained id, and finds the first one; false for a row that trains nothing.
local function close(row)
  local segs = row.segs
  while segs[#segs] and not segs[#segs].lp do
    row.n = row.n - segs[#segs].n
    segs[#segs] = nil
  end
  local at = 0
  for i, seg in ipairs(segs) do
    if seg.lp then
      row.prompt_len, row.first = at, i
      return at > 0
    end
    at = at + seg.n
  end
  return false
end

local function unfit(t)
  if not t.scored then return "unscored" end
  local use = t.line.use
  if use.rl then return nil end
  local why = choice.plain(use.why) or {}
  return "not for training on tokens: " .. table.concat(why, ", ")
end

--- The rows of a rollout, in the order of its calls.
---
--- Returns nil and the reason when it has none, or (`strict`) when they would be more than one unbroken sequence.
---@param t agentbox.Traj
---@param opts { mode?: "merge"|"stepwise"|"strict", realign?: number }
---@return agentbox.Row[]? rows
---@return string? reason
function M.of(t, opts)
  local reason = unfit(t)
  if reason then return nil, reason end
  local self = { rows = {}, fulls = {}, limit = opts.realign or REALIGN }
  for _, call in ipairs(t.planes) do
    local planes = call.tokens
    if planes and tokens.RL_GRADE[planes.src] and planes.prompt ~= nil then
      local why = take_call(self, call, opts.mode or "merge")
      if why then return nil, why end
    end
  end
  local rows = {}
  for _, row in ipairs(self.rows) do
    if close(row) then rows[#rows + 1] = row end
  end
  if #rows == 0 then return nil, "no call to train on" end
  return rows
end

local FILL = { mask = { "1", "0" }, bool = { "true", "false" } }

-- One segment's part of a list.
local function part(seg, what)
  if what == "ids" then return seg.ids end
  if what == "lp" then return seg.lp or ("0.0"):rep(seg.n, ",") end
  if what == "labels" then return seg.lp and seg.ids or ("-100"):rep(seg.n, ",") end
  return FILL[what][seg.lp and 1 or 2]:rep(seg.n, ",")
end

--- A list of a row as JSON text: `ids`, `mask` (1 and 0), `bool` (the mask as true and false), `lp` (0.0 where the mask
--- is 0) or `labels` (-100 where the mask is 0).
---@param row agentbox.Row
---@param what "ids"|"mask"|"bool"|"lp"|"labels"
---@param side? "prompt"|"response"    # before, or from the first trained id on; default: all
---@return agentbox.JsonRaw
function M.list(row, what, side)
  local from = side == "response" and row.first or 1
  local to = side == "prompt" and row.first - 1 or #row.segs
  local parts = {}
  for i = from, to do parts[#parts + 1] = part(row.segs[i], what) end
  return sys.later(sys.joined, parts, ",", "[", "]")
end

--- A list of one value for every id of a row.
---@param row agentbox.Row
---@param text string
---@return agentbox.JsonRaw
function M.fill(row, text)
  return sys.trusted("[" .. text:rep(row.n, ",") .. "]")
end

--- The places of the trained outputs in a row, `[[begin, end), ...]` from 0.
---@param row agentbox.Row
---@return integer[][]
function M.ranges(row)
  local out, at = json.array {}, 0
  for _, seg in ipairs(row.segs) do
    if seg.lp then out[#out + 1] = json.array { at, at + seg.n } end
    at = at + seg.n
  end
  return out
end

--- What versions of the weights a call was sampled with: the number of its first id, and the version from there on.
---@param call agentbox.PlaneCall
---@return { n: integer, v: any }[]
function M.segments(call)
  return call.versions and choice.plain(json.decode(call.versions)) or {}
end

--- The lowest and highest version of the weights that a row was sampled with; nil when nobody told.
---@param row agentbox.Row
---@return integer? low
---@return integer? high
function M.versions(row)
  local low, high
  for _, call in ipairs(row.calls) do
    for _, segment in ipairs(M.segments(call)) do
      local v = math.tointeger(segment.v)
      if v then low, high = math.min(low or v, v), math.max(high or v, v) end
    end
  end
  return low, high
end

--- The group of a rollout, by a name that none of another run has, and its place in it.
---@param t agentbox.Traj
---@return string name
---@return integer index
function M.group(t)
  local _, index, _, name = membership(t)
  return name, index
end

--- A number for something of a run that has a name, for formats that count with integers: as many bits of a hash as a double holds.
---@param t agentbox.Traj
---@param name string
---@return integer
function M.number(t, name)
  return tonumber(hash.sha256(t.run_id .. "\0" .. name):sub(1, 13), 16)
end

--- The reward of a row: that of its speaker, where the verifier gave one, else the rollout's.
---@param t agentbox.Traj
---@param row agentbox.Row
---@return number
function M.reward(t, row)
  local agents = choice.plain(t.line.reward.agents)
  return (agents and agents[row.calls[1].agent] or t.reward) + 0.0
end

--- Whether the last thing that a row says was cut off by a limit.
---@param row agentbox.Row
---@return boolean
function M.truncated(row)
  return row.calls[#row.calls].norm == "length"
end

--- What of a rollout the rows do not train, for the loss report.
---@param t agentbox.Traj
---@param rows agentbox.Row[]
---@return string[] losses
function M.losses(t, rows)
  local realigned, losses = 0, {}
  for _, row in ipairs(rows) do realigned = realigned + row.realigned end
  if realigned > 0 then losses[1] = "sampled ids that a later prompt rewrote (they are context)" end
  for _, call in ipairs(t.planes) do
    if call.trainable and not call.failed and not tokens.is_rl_grade(call) then
      losses[#losses + 1] = choice.NO_TOKENS
      break
    end
  end
  return losses
end

return M
