--- Token evidence of the calls: packing it so that a record grows linearly with its turns, and unpacking it.
---
--- The prompt of a call mostly repeats the prompt and the output of the call before. It is stored as
--- `{"base":k,"keep":n,"tail":[...]}`: the first n ids of (prompt + out of call k), then the tail. All of it is
--- done on the servers' own JSON text, by comparing bytes; nothing becomes a table before somebody asks.
local json = require "agentbox.json"
local plane = require "agentbox.sys.plane"

local M = {}

--- Sources of token ids that training may rely on; "local" ids were made from text and may differ.
M.RL_GRADE = { engine = true, token_id_strings = true }

local BLANKS = { " ", "\n", "\r", "\t" }

--- A plane as JSON text without blanks, so that equal lists are equal texts.
---@param list any     # a list, raw or text
---@return string
function M.text(list)
  local text = type(list) == "string" and list or json.type(list) == "raw" and list:text() or json.encode(list)
  for _, blank in ipairs(BLANKS) do
    if text:find(blank, 1, true) then return json.encode(json.decode(text)) end
  end
  return text
end

-- What stands between the brackets.
local function inner(list) return M.text(list):sub(2, -2) end

local function count(list)
  if list == "" then return 0 end
  local n, at = 1, 0
  while true do
    at = list:find(",", at + 1, true)
    if not at then return n end
    n = n + 1
  end
end

local function join(a, b)
  if a == "" then return b end
  return b == "" and a or a .. "," .. b
end

-- How many leading elements two lists share. Binary search on string equality: no loop over bytes in Lua.
local function shared(a, b)
  a, b = a .. ",", b .. ","
  local low, high = 0, math.min(#a, #b)
  while low < high do
    local mid = (low + high + 1) // 2
    if a:sub(1, mid) == b:sub(1, mid) then low = mid else high = mid - 1 end
  end
  local prefix = a:sub(1, low)
  local n, at = 0, 0
  while true do
    local comma = prefix:find(",", at + 1, true)
    if not comma then return n, at end
    n, at = n + 1, comma
  end
end

--- What the packer remembers of one thread's last call with tokens.
---@class agentbox.TokenBase
---@field call integer
---@field full string        # ids of prompt and output, comma separated
---@field n_prompt integer
---@field n_full integer

local function drift_class(base, keep)
  if not base then return "first" end
  if keep == base.n_full then return "clean" end
  return keep >= base.n_prompt and "realign" or "fork"
end

--- Packs the token planes of call number `call`.
---
--- Drift against the call before on the thread: `first`, `clean` (its ids are a prefix), `realign` (they differ
--- inside its output: the server or a template rewrote what was sampled), `fork` (they differ earlier), or
--- `unknown` when the server gave no prompt ids.
---@param tokens { src: string, prompt?: agentbox.JsonRaw, out?: agentbox.JsonRaw, lp?: agentbox.JsonRaw }?
---@param call integer
---@param base agentbox.TokenBase?
---@return table? packed             # the `tokens` member of a call; nil without evidence
---@return agentbox.TokenBase? base  # for the next call
function M.pack(tokens, call, base)
  if not tokens or not tokens.out or tokens.src == "none" then return nil, base end
  local packed = {}
  packed.src = tokens.src or "engine"
  local out = inner(tokens.out)
  local n_out = count(out)
  if tokens.prompt then
    local prompt = inner(tokens.prompt)
    local keep, cut = 0, 0
    if base then keep, cut = shared(base.full, prompt) end
    packed.drift = drift_class(base, keep)
    if keep > 0 then
      local by_base = {}
      by_base.base = base.call
      by_base.keep = keep
      by_base.tail = json.raw("[" .. prompt:sub(cut + 1) .. "]")
      packed.prompt = by_base
    else
      packed.prompt = json.raw("[" .. prompt .. "]")
    end
    local n_prompt = count(prompt)
    base = { call = call, full = join(prompt, out), n_prompt = n_prompt, n_full = n_prompt + n_out }
  else
    packed.drift = "unknown"
  end
  packed.out = json.raw("[" .. out .. "]")
  if tokens.lp then packed.lp = json.raw("[" .. inner(tokens.lp) .. "]") end
  packed.n_out = n_out
  return packed, base
end

local function list_of(value)
  if value == nil or value == json.null then return nil end
  return json.type(value) == "raw" and value:decode() or value
end

local function prompt_of(calls, tokens, memo)
  if memo[tokens] then return memo[tokens] end
  local prompt = tokens.prompt
  if prompt == nil or prompt == json.null then return nil end
  if json.type(prompt) == "raw" then prompt = prompt:decode() end
  if prompt.keep == nil then
    memo[tokens] = prompt
    return prompt
  end
  local base = calls[prompt.base + 1] and calls[prompt.base + 1].tokens
  local ids = base and prompt_of(calls, base, memo)
  if not ids then return nil end
  local whole = table.move(ids, 1, #ids, 1, {})
  local out = list_of(base.out)
  table.move(out, 1, #out, #whole + 1, whole)
  if prompt.keep > #whole then return nil end
  local kept = table.move(whole, 1, prompt.keep, 1, {})
  local tail = list_of(prompt.tail)
  memo[tokens] = table.move(tail, 1, #tail, #kept + 1, kept)
  return kept
end

-- The text of the first n of the ids in a text.
local function first(text, n)
  local at = 0
  for _ = 1, n do at = text:find(",", at + 1, true) or #text + 1 end
  return text:sub(1, at - 1)
end

--- The ids of a call's prompt as text, with commas between them and without brackets; "" when they are not known. Put together
--- from slices: what the prompts of a conversation share is copied, never read.
---@param calls agentbox.PlaneCall[]    # the record's calls
---@param call agentbox.PlaneCall       # one of them
---@param memo table                    # one table for all of them
---@return string text
---@return integer n
function M.prompt_text(calls, call, memo)
  local given = call.tokens
  local known = memo[given]
  if known then return known.text, known.n end
  local text, n = "", 0
  if given.keep then
    local base = calls[given.base + 1]
    local before, n_before = M.prompt_text(calls, base, memo)
    local whole, n_whole = join(before, inner(base.tokens.out)), n_before + base.tokens.n_out
    if given.keep > n_whole then return "", 0 end
    local tail = inner(given.tail)
    text, n = join(given.keep == n_whole and whole or first(whole, given.keep), tail), given.keep + count(tail)
  elseif given.prompt then
    text = inner(given.prompt)
    n = count(text)
  end
  memo[given] = { text = text, n = n }
  return text, n
end

--- Whether the server told the ids of a call's prompt.
---@param call agentbox.PlaneCall
---@return boolean
function M.has_prompt(call) return call.tokens.prompt ~= nil end

--- The token planes of one recorded call as plain lists.
---@param calls table[]    # the record's calls
---@param call table       # one of them
---@param memo? table      # one table for several calls spares rebuilding the earlier prompts
---@return { src: string, drift: string, prompt?: integer[], out: integer[], lp?: number[] }? planes
function M.unpack(calls, call, memo)
  local tokens = call.tokens
  if not tokens or tokens == json.null then return nil end
  return {
    src = tokens.src, drift = tokens.drift, prompt = prompt_of(calls, tokens, memo or {}),
    out = list_of(tokens.out), lp = list_of(tokens.lp),
  }
end

--- Whether a call carries evidence that training may use: ids from the server, one log-prob for each.
---@param call table
---@return boolean
function M.is_rl_grade(call)
  local tokens = call.tokens
  return tokens ~= nil and tokens ~= json.null and M.RL_GRADE[tokens.src] == true
      and tokens.out ~= nil and tokens.lp ~= nil and (tokens.n_out or 0) > 0
end

--- What is wrong with a call's planes, or nil.
---@param call table
---@return string? problem
function M.problem(call)
  if not M.is_rl_grade(call) then return nil end
  local tokens = call.tokens
  local n_lp, lowest, highest = plane.measure(json.type(tokens.lp) == "raw" and tokens.lp or json.encode(tokens.lp))
  if not n_lp then return "a log-prob is no number" end
  if n_lp ~= tokens.n_out then return ("%d token ids but %d log-probs"):format(tokens.n_out, n_lp) end
  if lowest <= -9999 then return "a log-prob of -9999 stands for a missing one" end
  if highest > 1e-3 then return ("a log-prob is %g, above zero"):format(highest) end
end

return M
