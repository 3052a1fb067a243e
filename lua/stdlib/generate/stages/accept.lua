--- accept: the task's folder in the output directory, whole or not at all, and one line in the journal.
return function(cand, ctx) return ctx:accept(cand) end
