--- The token ledger of a record: what each call was given and gave, how much of its prompt the server had seen before,
--- and whether that is what the record says of it.
---
--- A call's prompt is compared with prompt and output of the call it goes on from. `keep` ids are common to both; the
--- class of the drift follows from where they part:
---
---     first     there is no call before
---     clean     all of them are common: the prompt goes on from what was sampled
---     realign   they part inside the output: what was sampled came back rewritten
---     fork      they part earlier: another conversation
---     unknown   the server gave no prompt ids
local json = require "agentbox.json"
local plane = require "agentbox.sys.plane"
local tokens = require "agentbox.record.tokens"

local M = {}

local TAIL = { raw = { "tail" } }

---@class agentbox.LedgerEntry
---@field call integer
---@field src string
---@field drift string       # as recorded
---@field base integer?      # the call it is compared with
---@field prompt integer?    # ids of the prompt; nil when the server gave none
---@field keep integer       # how many are common with the base, from the first on
---@field tail integer       # how many are new
---@field out integer        # ids sampled
---@field lp integer?        # log-probs; nil without

local function count(list)
  if list == nil or list == json.null then return nil end
  if json.type(list) == "raw" then return plane.count(list) end
  return #list
end

local function prompt_of(given)
  local prompt = given.prompt
  if prompt == nil or prompt == json.null then return nil end
  if json.type(prompt) == "raw" and prompt:text():sub(1, 1) == "{" then return json.decode(prompt:text(), TAIL) end
  if json.is_object(prompt) or type(prompt) == "table" and prompt.keep then return prompt end
  return { tail = prompt, keep = 0 }
end

local function list_of(self, list)
  local known = self.lists[list]
  if not known then
    known = json.type(list) == "raw" and list:decode() or list
    self.lists[list] = known
  end
  return known
end

-- Id number `at` (from 0) of prompt and output of a call, found without building either.
local function id_at(self, index, at)
  local entry, prompt = self[index], self.prompts[index]
  while prompt do
    if at >= entry.prompt then return list_of(self, self.calls[index + 1].tokens.out)[at - entry.prompt + 1] end
    if at >= prompt.keep then return list_of(self, prompt.tail)[at - prompt.keep + 1] end
    index = prompt.base
    entry, prompt = self[index], self.prompts[index]
  end
end

local function class_of(entry, base)
  if not entry.prompt then return "unknown" end
  if not base then return "first" end
  if entry.keep == base.prompt + base.out then return "clean" end
  return entry.keep >= base.prompt and "realign" or "fork"
end

-- What is wrong with the base of a packed prompt, or nil and the entry of the base.
local function check_base(self, entry, prompt)
  local base = self[prompt.base]
  if not base or not base.prompt then return "its prompt goes on from a call without token ids" end
  local whole = base.prompt + base.out
  if prompt.keep > whole then return ("it keeps %d ids of a call that has %d"):format(prompt.keep, whole) end
  if prompt.keep < whole and entry.tail > 0
      and id_at(self, prompt.base, prompt.keep) == list_of(self, prompt.tail)[1] then
    return ("it has more than %d ids in common with call %d"):format(prompt.keep, prompt.base)
  end
  return nil, base
end

local function add(self, call, found)
  local given = call.tokens
  local prompt = prompt_of(given)
  local entry = {
    call = call.i, src = given.src, drift = given.drift, keep = prompt and prompt.keep or 0, tail = 0,
    out = count(given.out) or 0, lp = count(given.lp),
  }
  self[call.i], self.prompts[call.i] = entry, prompt
  local function wrong(rule, msg)
    found[#found + 1] = { rule = rule, where = ("calls[%d]"):format(call.i), msg = msg }
  end
  if given.n_out and given.n_out ~= entry.out then
    wrong(2, ("%d ids were sampled, and the record says %s"):format(entry.out, tostring(given.n_out)))
  end
  local base
  if prompt then
    entry.tail = count(prompt.tail) or 0
    entry.prompt, entry.base = prompt.keep + entry.tail, prompt.base
    local problem
    if prompt.base then problem, base = check_base(self, entry, prompt) end
    if not prompt.base and prompt.keep > 0 then problem = "it keeps ids of no call" end
    if problem then return wrong(2, problem) end
  end
  local class = class_of(entry, base)
  -- A prompt that shares nothing with the call before stands by itself, as a first one does.
  local alone = class == "first" and given.drift == "fork" and self.last ~= nil
  if class ~= given.drift and not alone then
    wrong(3, ("its drift is %s, and the record says %s"):format(class, tostring(given.drift)))
  end
  if prompt then self.last = call.i end
end

--- Makes the ledger of a record: a list with an entry for each call that has token ids, in order.
---@param line table
---@return agentbox.LedgerEntry[] entries
---@return agentbox.Violation[] violations   # of rules 2 and 3
function M.of(line)
  local self = { calls = line.calls, prompts = {}, lists = {} }
  local entries, found = {}, {}
  for _, call in ipairs(line.calls) do
    local given = call.tokens
    if given and given ~= json.null and given.out then
      add(self, call, found)
      entries[#entries + 1] = self[call.i]
    end
  end
  return entries, found
end

--- Whether training may rely on a call: ids from the server, and a log-prob for each.
M.is_rl_grade = tokens.is_rl_grade

return M
