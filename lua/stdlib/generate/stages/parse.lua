--- parse: fields and files from the answer; every path that the model wrote is checked here, before anything uses it.
local jail = require "agentbox.jail"
local shape = require "agentbox.task.shape"

local MAX_FILES, MAX_BYTES = 40, 256 << 10

-- Copies a map of files with clean names, or tells what is wrong with one. A name that an earlier map has is left to that.
local function add(into, files, taken)
  for path, text in pairs(files or {}) do
    if type(path) ~= "string" or type(text) ~= "string" then return "a file is not a text" end
    local clean, why = jail.starter(path)
    if not clean or path:find "%c" then return "unsafe path: " .. (why or "a control character in it") end
    if path:find "^/" or path:find "%.%." then return "unsafe path: " .. path end
    if not taken[clean] then
      into[clean], taken[clean] = text, true
      taken.count, taken.bytes = (taken.count or 0) + 1, (taken.bytes or 0) + #text
    end
  end
  if (taken.count or 0) > MAX_FILES then return ("more than %d files"):format(MAX_FILES) end
  if (taken.bytes or 0) > MAX_BYTES then return ("more than %d bytes of files"):format(MAX_BYTES) end
end

-- Two stages: all that is no test is the solution, from which the starter is made. One stage: both are given. Tests are tests
-- wherever they stand.
local function files_of(cand, ctx, fields)
  local tests, solution, starter, taken = {}, {}, {}, {}
  local wrong = add(tests, fields.test_files, taken) or add(solution, fields.solution_files, taken)
  local own = ctx.two_stage and taken or { count = taken.count, bytes = taken.bytes }
  wrong = wrong or add(ctx.two_stage and solution or starter, fields.starter_files, own)
  if wrong then return wrong end
  cand.sources, cand.given, cand.tests = {}, {}, {}
  for i, files in ipairs { tests, solution, starter } do
    for path, text in pairs(files) do
      local into = ctx.language.is_test(path) and cand.tests or i == 3 and cand.given or cand.sources
      if into[path] == nil then into[path] = text end
    end
  end
end

return function(cand, ctx)
  local fields, problem = cand.signature:read(cand.draft)
  if not fields then return false, problem.msg end
  local id = fields.task_id:match "^%s*(.-)%s*$"
  local wrong = shape.id_problem(id)
  if wrong then return false, "task_id " .. wrong end
  if not fields.description:find "%S" then return false, "the description is empty" end
  cand.id, cand.description, cand.metadata = id, fields.description:match "^%s*(.-)%s*$", fields.metadata or {}
  wrong = files_of(cand, ctx, fields)
  if wrong then return false, wrong end
  if not next(ctx.two_stage and cand.sources or cand.given) then return false, "there are no source files" end
  if not next(cand.tests) then return false, "there are no tests" end
  return true
end
