--- contamination: whether the task stands in a corpus that the models to be trained or measured may have seen; only if the pipeline
--- has one.
local schema = require "agentbox.schema"

-- The description, and what the author wrote as code: each must be new by itself.
local function parts_of(cand, ctx)
  local code = {}
  for _, tree in ipairs { "files", "solution" } do
    for _, path in ipairs(schema.names(cand.task[tree])) do
      if not ctx.language.support[path] then code[#code + 1] = cand.task[tree][path].bytes end
    end
  end
  return { { "description", cand.task.description }, { "code", table.concat(code, "\n") } }
end

return function(cand, ctx)
  local facts = {}
  for _, part in ipairs(parts_of(cand, ctx)) do
    local found = ctx.opts.corpus:look(part[2])
    facts[part[1]] = found
    if found.share > ctx.opts.corpus.max_share then
      return false, ("%.0f %% of its %s is in the corpus, %d words in a row: %s"):format(found.share * 100, part[1], found.words, found.passage), facts
    end
  end
  return true, nil, facts
end
