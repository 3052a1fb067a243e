--- judge: models read the task with its solution and what the sandbox said of it; several votes, the majority decides.
local judge = require "agentbox.generate.judge"

return function(cand, ctx)
  local question = judge.payload(cand.task, ctx.language.support, cand.report)
  local verdict, problem = judge.ask(ctx.opts.judge, question, function(signature, text, vote)
    return ctx:say(cand, signature, text, ("judge-%d-%d"):format(cand.index, vote), ctx.judge_model, ctx.opts.judge.votes > 1 and vote or nil)
  end)
  if not verdict then return nil, problem end
  verdict.model = ctx.judge_model.name
  return verdict.accept, verdict.why, verdict
end
