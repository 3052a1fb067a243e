--- repair: what follows from rules and needs no model: our files over the teacher's, the verifier, the metadata; then the
--- task itself, checked like any other.
local json = require "agentbox.json"
local shape = require "agentbox.task.shape"

local function put_texts(out, files)
  for path, text in pairs(files) do out[path] = { bytes = text, mode = 420 } end
end

-- Tests are run by the language's own way; a command that a model wrote is never used.
local function verifier_of(language)
  local out = {}
  for key, value in pairs(language.verifier) do out[key] = value end
  out.protect = json.array(table.move(language.protect, 1, #language.protect, 1, {}))
  return out
end

local function metadata_of(cand, ctx)
  local out = json.object {}
  for _, key in ipairs { "difficulty", "tags", "estimated_steps" } do
    local value = cand.metadata[key]
    if type(value) == "string" or type(value) == "number" or json.is_array(value) then out[key] = value end
  end
  out.difficulty = out.difficulty or cand.spec.difficulty
  out.language, out.source, out.generator_model = ctx.language.name, "generate", ctx.model.name
  out.generation = json.object { index = cand.index, family = cand.spec.family, idea = cand.spec.idea, seed = cand.spec.salt }
  local parent = cand.spec.parent and ctx.opts.parents and ctx.opts.parents[cand.spec.parent]
  if parent then out.generation.parent = json.object { task_id = parent.task_id, hash = parent.hash, how = ctx.opts.how } end
  return out
end

return function(cand, ctx)
  local files, solution = {}, {}
  put_texts(files, cand.starter)
  put_texts(files, cand.tests)
  for path, file in pairs(ctx.language.support) do
    if path:find "/" or not files[path] then files[path] = file end
  end
  put_texts(solution, cand.solution)
  local task, problem = shape.build({
    task_id = cand.id, description = cand.description, verifier = verifier_of(ctx.language), metadata = metadata_of(cand, ctx),
  }, { where = "candidate", folder = { files = files, solution = solution } })
  if not task then return false, problem.msg end
  cand.task = task
  return true
end
