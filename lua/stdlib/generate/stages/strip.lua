--- strip: from the whole solution the starter's stubs; the solution is kept apart and never seeded.
local language_ = require "agentbox.generate.language"
local regions = require "agentbox.generate.regions"

-- What the sandboxed interpreter knows of all Python files, for this stage and the static gate.
local function read_python(cand, ctx)
  local files = {}
  for _, tree in ipairs { cand.sources, cand.tests } do
    for path, text in pairs(tree) do
      if path:find "%.py$" then files[path] = text end
    end
  end
  if not next(files) then return {} end
  local answer, problem = ctx.workshop:ask("read", files)
  return answer and answer.files, problem
end

return function(cand, ctx)
  local read, problem = read_python(cand, ctx)
  if not read then
    if problem.code == "parse" then return false, problem.msg end
    return nil, problem
  end
  cand.read, cand.starter, cand.solution = read, {}, {}
  for path, text in pairs(cand.sources) do
    local known = read[path]
    if known and known.error then return false, ("%s: %s"):format(path, known.error) end
    if language_.is_source(ctx.language, path) then
      local stub, why = ctx.language.stub(path, text, known)
      if not stub then return false, why end
      cand.starter[path] = stub
      if stub ~= text then cand.solution[path] = regions.unmarked(text) end
    else
      cand.starter[path] = text
    end
  end
  for path in pairs(cand.tests) do
    if read[path] and read[path].error then return false, ("%s: %s"):format(path, read[path].error) end
  end
  if not next(cand.solution) then return false, "nothing was left out: the starter is the solution" end
  return true
end
