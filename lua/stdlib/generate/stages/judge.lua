--- judge: models read the task with its solution and say whether it may be used; several votes, the majority decides.
local json = require "agentbox.json"
local schema = require "agentbox.schema"
local signature = require "agentbox.generate.signature"
local text_ = require "agentbox.text"

local SIGNATURE = signature.new { name = "verdict", instructions = [[
You judge programming tasks for coding agents. Accept stubs with a clear contract that the tests check, and work that is not
trivial. Reject starters that are nearly solved, descriptions that give the solution away, tests that ask for what the
description does not say. Score: 0.2 unusable, 0.4 weak, 0.6 usable, 0.8 good, 1.0 excellent.]],
  { "accept", "boolean", "whether it may be used" }, { "score", "number", "0 to 1", min = 0, max = 1 },
  { "starter_is_near_solution", "boolean", "little is left to do", default = false },
  { "description_leaks_fix", "boolean", "it says how", default = false },
  { "reasons", "list", "why", default = {} } }

local MAX_FILE = 6000

local function payload(cand, ctx)
  local parts = { "task_id: " .. cand.task.task_id, "language: " .. ctx.language.name, "description: " .. cand.task.description }
  for _, tree in ipairs { "files", "solution" } do
    for _, path in ipairs(schema.names(cand.task[tree])) do
      if not ctx.language.support[path] then
        parts[#parts + 1] = ("--- %s %s\n%s"):format(tree == "files" and "starter" or "SOLUTION, not given to the agent:", path,
          (text_.cut(text_.scrub(cand.task[tree][path].bytes), MAX_FILE)))
      end
    end
  end
  return table.concat(parts, "\n")
end

local function objection(vote, least)
  if not vote.accept then return "the judge rejects it" end
  if vote.score < least then return ("score %.2f is below %.2f"):format(vote.score, least) end
  if vote.starter_is_near_solution then return "the starter is nearly the solution" end
  if vote.description_leaks_fix then return "the description gives the solution away" end
end

return function(cand, ctx)
  local conf = ctx.opts.judge
  local yes, sum, reasons, why = 0, 0, json.array {}, nil
  for n = 1, conf.votes do
    local text, problem = ctx:say(SIGNATURE, payload(cand, ctx), ("judge-%d-%d"):format(cand.index, n), ctx.judge_model)
    if not text then return nil, problem end
    local vote
    vote, problem = SIGNATURE:read(text)
    vote = vote or { accept = false, score = 0, reasons = { "the verdict cannot be read: " .. problem.msg } }
    local no = objection(vote, conf.min_score)
    yes, sum, why = yes + (no and 0 or 1), sum + vote.score, why or no
    for _, reason in ipairs(vote.reasons or {}) do reasons[#reasons + 1] = text_.cut(tostring(reason), 300) end
  end
  local agreement = math.max(yes, conf.votes - yes) / conf.votes
  return yes * 2 > conf.votes, why, { score = sum / conf.votes, votes = conf.votes, agreement = agreement, reasons = reasons }
end
