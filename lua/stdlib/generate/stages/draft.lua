--- draft: the teacher's answer, as text. An answer that was paid for before a crash is not asked for again.
local signature = require "agentbox.generate.signature"

local INSTRUCTIONS = [[
You write programming tasks for coding agents: a complete, correct solution and tests that prove it. The task given to an
agent is made from it by removing the bodies. Rules: the description tells the required behaviour and the public interface,
and names the files; it gives no hint how. Tests check behaviour and edge cases, at least four assertions, no randomness,
no clock, no network. Files are small and complete.]]

local SIGNATURE = signature.new { name = "task", instructions = INSTRUCTIONS,
  { "task_id", "string", "short, lower case, with underscores" },
  { "description", "string", "what the agent is told" },
  { "solution_files", "map", "path to the whole text of each source file", optional = true },
  { "test_files", "map", "path to the whole text of each file of tests", optional = true },
  { "starter_files", "map", "only for files that are neither solution nor tests", optional = true },
  { "metadata", "map", "difficulty, tags", optional = true },
  { "verifier", "map", "only when the language's own way of running tests does not do", optional = true } }

local function prompt_of(cand, ctx)
  return table.concat({ ctx.language.teach, "Difficulty: " .. cand.spec.difficulty, "Topic: " .. cand.spec.family,
    "Constraints: " .. (cand.spec.constraints ~= "" and cand.spec.constraints or "none"),
    "Make it unlike other tasks of this topic; variant " .. cand.index .. "." }, "\n")
end

return function(cand, ctx)
  cand.signature = SIGNATURE
  if cand.draft then return true end
  local text, problem = ctx:say(SIGNATURE, prompt_of(cand, ctx), "candidate-" .. cand.index)
  if not text then return nil, problem end
  cand.draft = text
  return ctx:keep_draft(cand)
end
