--- pair: the one-stage way's `strip`: the teacher wrote starter and solution side by side. What differs between them is the
--- solution; a task without one is rejected, since nothing would prove that it can be solved.
local source = require "agentbox.generate.source"

local function failed(problem)
  if type(problem) == "string" then return false, problem end
  return nil, problem
end

return function(cand, ctx)
  local read, problem = source.read(ctx, cand.sources, cand.tests)
  if not read then return failed(problem) end
  local given
  given, problem = source.read(ctx, cand.given)
  if not given then return failed(problem) end
  local broken = source.broken(read, cand.sources) or source.broken(read, cand.tests) or source.broken(given, cand.given)
  if broken then return false, broken end
  cand.read, cand.given_read, cand.starter, cand.solution = read, given, cand.given, {}
  for path, text in pairs(cand.sources) do
    if text ~= cand.starter[path] then cand.solution[path] = text end
  end
  if not next(cand.sources) then return false, "no solution came with it: nothing proves that it can be solved" end
  if not next(cand.solution) then return false, "nothing was left out: the starter is the solution" end
  return true
end
