--- static: what can be told without running anything: stubs, assertions, leaks, imports, layout.
local heuristic = require "agentbox.generate.heuristic"
local json = require "agentbox.json"
local language_ = require "agentbox.generate.language"

local LEAKS = { "#%s*BUG", "//%s*BUG", "BEGIN SOLUTION", "END SOLUTION" }
local HINTS = { "[Ss]hould be", "[Ii]nstead of", "#%s*FIXME", "//%s*FIXME" }
local MAX_LINES = 200

-- Names of a task's own fields that a model wrote among its files.
local FIELDS = { setup_commands = true, verifier = true, metadata = true, task_id = true, description = true }

-- Functions that the agent is to write and that are written already: in files that nothing was taken out of, or that came as stubs.
local function python_errors(cand, errors)
  for path, text in pairs(cand.starter) do
    local read = (cand.given_read or cand.read)[path]
    local own = cand.given_read and cand.solution[path] or not cand.given_read and text == cand.sources[path]
    for _, fn in ipairs(own and read and read.functions or {}) do
      if not (fn.stub or fn.private or fn.stores) then errors[#errors + 1] = ("%s: %s is not a stub"):format(path, fn.name) end
    end
  end
end

-- Assertions: those the interpreter counted, else words that languages use for them.
local function assertions(cand)
  local n = 0
  for path, text in pairs(cand.tests) do
    if cand.read[path] then
      n = n + cand.read[path].asserts
    else
      for _, word in ipairs { "assert[%w_.]*%s*%(", "%f[%w]CHECK%s*%(", "%f[%w]check%s+[\"']", "t%.[EF][ra][rt][oa][rl]%w*%(" } do
        n = n + select(2, text:gsub(word, ""))
      end
    end
  end
  return n
end

local function missing_modules(cand, out)
  for path in pairs(cand.tests) do
    for _, name in ipairs(cand.read[path] and cand.read[path].imports or {}) do
      local file = name:gsub("%.", "/")
      local top = name:match "^[^.]+"
      local ours = cand.starter[top .. ".py"] or cand.starter[top .. "/__init__.py"]
      if ours and not (cand.starter[file .. ".py"] or cand.starter[file .. "/__init__.py"]) then
        out[#out + 1] = "tests import " .. name .. ", which is not there"
      end
    end
  end
end

-- An agent finds its files by the description.
local function unnamed(cand, out)
  for path in pairs(cand.starter) do
    if cand.description:find(path:match "[^/]*$", 1, true) then return end
  end
  out[#out + 1] = "the description names no file of the starter"
end

local function leaks(cand, language, errors, warnings)
  for path, text in pairs(cand.starter) do
    for _, pattern in ipairs(LEAKS) do
      if text:find(pattern) then errors[#errors + 1] = path .. ": gives the solution away" end
    end
    for _, pattern in ipairs(HINTS) do
      if text:find(pattern) then warnings[#warnings + 1] = path .. ": may hint at the solution" end
    end
    if FIELDS[path] then errors[#errors + 1] = path .. ": a field of the task among its files" end
    if language_.is_source(language, path) and select(2, text:gsub("\n", "")) > MAX_LINES then
      warnings[#warnings + 1] = ("%s: is longer than %d lines"):format(path, MAX_LINES)
    end
  end
  if cand.description:find "#%s*BUG" then errors[#errors + 1] = "the description gives the solution away" end
end

local function all_texts(cand)
  local out = {}
  for path, text in pairs(cand.starter) do out[path] = text end
  for path, text in pairs(cand.tests) do out[path] = text end
  return out
end

return function(cand, ctx)
  local errors, warnings, layout = json.array {}, json.array {}, {}
  python_errors(cand, errors)
  local n = assertions(cand)
  if n < ctx.opts.min_asserts then errors[#errors + 1] = ("%d assertions in the tests, at least %d are wanted"):format(n, ctx.opts.min_asserts) end
  leaks(cand, ctx.language, errors, warnings)
  missing_modules(cand, layout)
  unnamed(cand, layout)
  local into = ctx.opts.strict_paths and errors or warnings
  table.move(layout, 1, #layout, #into + 1, into)
  table.sort(errors)
  table.sort(warnings)
  return #errors == 0, errors[1], { errors = errors, warnings = warnings, asserts = n, difficulty = heuristic.of(all_texts(cand), n) }
end
