--- strip: from the whole solution the starter's stubs; the solution is kept apart and never seeded.
local language_ = require "agentbox.generate.language"
local regions = require "agentbox.generate.regions"
local source = require "agentbox.generate.source"

return function(cand, ctx)
  local read, problem = source.read(ctx, cand.sources, cand.tests)
  if not read then
    if type(problem) == "string" then return false, problem end
    return nil, problem
  end
  local broken = source.broken(read, cand.sources) or source.broken(read, cand.tests)
  if broken then return false, broken end
  cand.read, cand.starter, cand.solution = read, {}, {}
  for path, text in pairs(cand.sources) do
    if language_.is_source(ctx.language, path) then
      local stub, why = ctx.language.stub(path, text, read[path])
      if not stub then return false, why end
      cand.starter[path] = stub
      if stub ~= text then cand.solution[path] = regions.unmarked(text) end
    else
      cand.starter[path] = text
    end
  end
  if not next(cand.solution) then return false, "nothing was left out: the starter is the solution" end
  return true
end
