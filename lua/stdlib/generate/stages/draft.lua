--- draft: the teacher's answer, as text.
local brief = require "agentbox.generate.brief"

return function(cand, ctx)
  cand.signature = brief.signature(ctx.two_stage)
  local text, problem = ctx:say(cand, cand.signature, brief.prompt(cand, ctx), "candidate-" .. cand.index, nil, cand.spec.salt)
  if not text then return nil, problem end
  cand.draft = text
  return true
end
