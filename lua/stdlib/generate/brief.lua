--- generate/brief.lua: what a teacher is asked.
local schema = require "agentbox.schema"
local signature = require "agentbox.generate.signature"
local text_ = require "agentbox.text"

local M = {}

local RULES = [[
Rules: the description tells the required behaviour and the public interface, and names the files; it gives no hint how. Tests
check behaviour and edge cases, at least four assertions, no randomness, no clock, no network. Files are small and complete.]]

local TWO_STAGE = [[
You write programming tasks for coding agents: a complete, correct solution and tests that prove it. The task given to an
agent is made from it by removing the bodies. ]] .. RULES

local ONE_STAGE = [[
You write programming tasks for coding agents: the files that the agent starts from, in which the work is left out (stubs that
fail, no half-finished or subtly wrong code, no remarks about what is missing), a complete, correct solution, and tests that
fail with the one and pass with the other. ]] .. RULES

local FIELDS = { { "task_id", "string", "short, lower case, with underscores" }, { "description", "string", "what the agent is told" } }
local LATER = { { "metadata", "map", "difficulty, tags", optional = true },
  { "verifier", "map", "only when the language's own way of running tests does not do", optional = true } }

local function declare(name, instructions, own)
  local given = { name = name, instructions = instructions }
  for _, list in ipairs { FIELDS, own, LATER } do table.move(list, 1, #list, #given + 1, given) end
  return signature.new(given)
end

local two = declare("task", TWO_STAGE, {
  { "solution_files", "map", "path to the whole text of each source file", optional = true },
  { "test_files", "map", "path to the whole text of each file of tests", optional = true },
  { "starter_files", "map", "only for files that are neither solution nor tests", optional = true } })

local one = declare("task", ONE_STAGE, {
  { "starter_files", "map", "path to the whole text of each file that the agent starts from" },
  { "test_files", "map", "path to the whole text of each file of tests" },
  { "solution_files", "map", "path to the whole text of each of these files, solved", optional = true } })

--- What a teacher is to answer.
---@param two_stage boolean
---@return agentbox.Signature
function M.signature(two_stage) return two_stage and two or one end

local HOW = {
  vary = "Write a new task of the same skill and difficulty as the one below, about something else: other names, other data, other "
    .. "behaviour at the edges. Its tests must not pass with the old solution.",
  evolve = "Write a harder task that grows out of the one below: more requirements, more cases, or the same under a constraint that "
    .. "makes the old solution fail. It stands alone: it does not mention the old one.",
}

local MAX_FILE = 6000

local function parent_of(cand, ctx)
  local parent = cand.spec.parent and ctx.opts.parents and ctx.opts.parents[cand.spec.parent]
  if not parent then return nil end
  local parts = { HOW[ctx.opts.how], "The task:", parent.description }
  for _, tree in ipairs { "solution", "files" } do
    for _, path in ipairs(schema.names(parent[tree])) do
      local theirs = tree == "files" and (parent.solution[path] or not ctx.language.is_test(path) or ctx.language.support[path])
      if not theirs then
        parts[#parts + 1] = ("--- %s %s\n%s"):format(tree == "files" and "tests" or "solution", path,
          (text_.cut(text_.scrub(parent[tree][path].bytes), MAX_FILE)))
      end
    end
  end
  return table.concat(parts, "\n")
end

--- The question for one candidate.
---@param cand agentbox.Candidate
---@param ctx agentbox.GenerateCtx
---@return string
function M.prompt(cand, ctx)
  local spec = cand.spec
  local lines = { ctx.language.teach, "Difficulty: " .. spec.difficulty, "Topic: " .. spec.family,
    "Constraints: " .. (spec.constraints ~= "" and spec.constraints or "none") }
  if not ctx.two_stage then lines[#lines + 1] = "Leave out marks: starter_files has the stubs themselves." end
  if spec.idea then lines[#lines + 1] = "Take this as the seed of an idea: " .. spec.idea end
  lines[#lines + 1] = parent_of(cand, ctx)
  lines[#lines + 1] = "Make it unlike other tasks of this topic; variant " .. cand.index .. "."
  return table.concat(lines, "\n")
end

return M
