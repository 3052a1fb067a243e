--- dedup: whether an accepted task is nearly this one. Acceptance asks again, under its lock.
return function(cand, ctx)
  local same, likeness = ctx.index:find(cand)
  if not same then return true end
  return false, ("a duplicate of %s (%.2f alike)"):format(same, likeness), { of = same, likeness = likeness }
end
