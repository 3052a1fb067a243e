--- static: what can be told without running anything: stubs, assertions, leaks, imports.
local json = require "agentbox.json"

local LEAKS = { "#%s*BUG", "//%s*BUG", "BEGIN SOLUTION", "END SOLUTION" }

local function python_errors(cand, errors)
  for path in pairs(cand.starter) do
    for _, fn in ipairs(cand.read[path] and cand.read[path].functions or {}) do
      if cand.starter[path] == cand.sources[path] and not (fn.stub or fn.private or fn.stores) then
        errors[#errors + 1] = ("%s: %s is not a stub"):format(path, fn.name)
      end
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

local function missing_modules(cand)
  local out = {}
  for path in pairs(cand.tests) do
    for _, name in ipairs(cand.read[path] and cand.read[path].imports or {}) do
      local file = name:gsub("%.", "/")
      local top = name:match "^[^.]+"
      local ours = cand.starter[top .. ".py"] or cand.starter[top .. "/__init__.py"]
      if ours and not (cand.starter[file .. ".py"] or cand.starter[file .. "/__init__.py"]) then out[#out + 1] = name end
    end
  end
  return out
end

return function(cand, ctx)
  local errors, warnings = json.array {}, json.array {}
  python_errors(cand, errors)
  local n = assertions(cand)
  if n < ctx.opts.min_asserts then errors[#errors + 1] = ("%d assertions in the tests, at least %d are wanted"):format(n, ctx.opts.min_asserts) end
  for path, text in pairs(cand.starter) do
    for _, pattern in ipairs(LEAKS) do
      if text:find(pattern) then errors[#errors + 1] = path .. ": gives the solution away" end
    end
  end
  if cand.description:find "#%s*BUG" then errors[#errors + 1] = "the description gives the solution away" end
  for _, name in ipairs(missing_modules(cand)) do warnings[#warnings + 1] = "tests import " .. name .. ", which is not there" end
  table.sort(errors)
  return #errors == 0, errors[1], { errors = errors, warnings = warnings, asserts = n }
end
