--- verify/jury.lua: asking models for a judgement, for verifiers and for the ranking of groups.
---
--- What is judged was written by a model that would like a good mark. So it stands between marks that it cannot know, is
--- cut to a size, and an answer that does not have the asked form is no vote.
local err = require "agentbox.err"
local hex = require "agentbox.sys.rand"
local text = require "agentbox.text"

local M = {}

--- Of one message, and of one file.
M.MAX_MESSAGE, M.MAX_FILE = 4000, 8000

--- The options that everything has that asks judges.
M.OPTIONS = {
  model = { "any", default = "judge" },            -- a role of the run, a model, or the options of model.open
  rubric = { "string", required = true },
  votes = { "integer", default = 1, min = 1, max = 64 },
  tries = { "integer", default = 2, min = 1, max = 16 },   -- of each vote
  timeout_s = { "number", default = 120, min = 0 },        -- of each try
  sampling = { "map" },
  max_chars = { "integer", default = 60000, min = 1000 },  -- of what is shown
}

--- Puts what somebody else wrote between two marks that it cannot hold.
---@param name string
---@param body string
---@return string
function M.fenced(name, body)
  local mark = ("%s-%s"):format(name, (hex.bytes(6):gsub(".", function(c) return ("%02x"):format(c:byte()) end)))
  return ("<%s>\n%s\n</%s>"):format(mark, body, mark)
end

local function calls_of(message)
  local out = {}
  for _, call in ipairs(type(message.tool_calls) == "table" and message.tool_calls or {}) do
    local fn = call["function"]
    out[#out + 1] = ("[calls %s %s]"):format(fn.name, (text.cut(fn.arguments, M.MAX_MESSAGE)))
  end
  return out
end

local function one_message(message)
  local parts = { ("[%s]"):format(message.role) }
  local said = require("agentbox.traj").text(message)
  if said ~= "" then parts[#parts + 1] = (text.cut(text.scrub(said), M.MAX_MESSAGE)) end
  table.move(calls_of(message), 1, #calls_of(message), #parts + 1, parts)
  return table.concat(parts, "\n")
end

--- A conversation as text of at most so many bytes: of a long one the first messages and the last.
---@param messages agentbox.Message[]
---@param max integer
---@param from? integer      # the first one that is shown; 1
---@return string
function M.conversation(messages, max, from)
  local all, total = {}, 0
  for i = from or 1, #messages do
    all[#all + 1] = one_message(messages[i])
    total = total + #all[#all]
  end
  if total <= max then return table.concat(all, "\n\n") end
  local head, tail, used, gone = {}, {}, 0, #all
  local first, last = 1, #all
  while first <= last do -- two from the end for each one from the beginning
    local at_head = #head * 2 < #tail
    local piece = at_head and all[first] or all[last]
    if used + #piece > max and #head + #tail > 0 then break end
    used, gone = used + #piece, gone - 1
    if at_head then head[#head + 1], first = piece, first + 1 else tail[#tail + 1], last = piece, last - 1 end
  end
  head[#head + 1] = ("[%d messages are left out here]"):format(gone)
  for i = #tail, 1, -1 do head[#head + 1] = tail[i] end
  return (text.cut_bytes(table.concat(head, "\n\n"), max + 1000))
end

local function note_call(rec, request, response, problem)
  if not rec then return end
  rec:call {
    response = response, error = not response and problem or nil, request = request, purpose = "judge", agent = "judge",
    trainable = false, thread = "judge",
  }
end

---@class agentbox.Vote
---@field values? table         # nil: there is no vote
---@field model? string         # that gave it, by the server's own name
---@field response_id? string
---@field error? string
---@field tries integer

--- One vote: asks until the answer has the form that `read` wants, at most `opts.tries` times.
---@async
---@param judge agentbox.Model
---@param signature agentbox.Signature
---@param prompt string
---@param opts { tries: integer, timeout_s: number, sampling?: table, session?: string }
---@param rec? agentbox.Recorder                          # that notes the calls
---@param read? fun(values: table): table?, string?       # a check of its own: nil, what is wrong
---@return agentbox.Vote
function M.vote(judge, signature, prompt, opts, rec, read)
  local vote = { tries = 0 }
  repeat
    vote.tries = vote.tries + 1
    local asked = { sampling = opts.sampling, timeout_s = opts.timeout_s, session = opts.session }
    local values, problem, response = signature:ask(judge, prompt, asked)
    note_call(rec, asked, response, problem)
    vote.model = response and response.served_model or judge.name
    vote.response_id = response and response.response_id
    local why
    if values and read then values, why = read(values) end
    vote.values = values
    vote.error = not values and (why or tostring(problem.msg)) or nil
  until values or vote.tries >= opts.tries
  return vote
end

--- The middle of some numbers.
---@param numbers number[]
---@return number
function M.median(numbers)
  local sorted = table.move(numbers, 1, #numbers, 1, {})
  table.sort(sorted)
  local n = #sorted
  return (sorted[(n + 1) // 2] + sorted[n // 2 + 1]) / 2
end

--- Why too few votes are there to decide, or nil: more than half of those that were asked for are needed.
---@param got integer
---@param votes agentbox.Vote[]
---@return agentbox.Err?
function M.too_few(got, votes)
  if got * 2 > #votes then return nil end
  local why
  for _, vote in ipairs(votes) do why = why or vote.error end
  return err.new("verifier", ("the judge gave %d of %d votes: %s"):format(got, #votes, why or "no reason"))
end

return M
