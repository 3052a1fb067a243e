--- Batches for the tests of generation: a teacher that answers by the candidate's number, everything in a folder that goes away.
---
---     local made <close> = factory.run({ answer1, answer2 }, { judge = ... }, { concurrency = 1 })
---     made.accepted, made.rejects, made.prompts, made.out
local ab = require "agentbox"

local M = {}

--- A folder that is removed when it is closed.
---@return { path: string }
function M.folder()
  return setmetatable({ path = assert(ab.fs.tmpdir "agentbox-generate") }, { __close = function(self) ab.fs.remove(self.path, true) end })
end

--- A task as a teacher writes it: a Python function of its own with as many assertions as wanted.
---@param name string
---@param more? { body?: string, tests?: string, asserts?: integer, files?: table, [string]: any }
---@return table
function M.task(name, more)
  more = more or {}
  local n = #name
  local body = more.body or ("def %s(x):\n    \"\"\"x times %d plus %d, as a text after '%s'.\"\"\"\n    return '%s' + str(x * %d + %d)\n")
    :format(name, n, n * 7, name, name, n, n * 7)
  local lines = { ("from %s_kit import %s\n\n"):format(name, name) }
  for i = 1, more.asserts or 4 do
    lines[#lines + 1] = ("\ndef test_%s_%d():\n    assert %s(%d) == '%s%d'\n"):format(name, i, name, i, name, n * (i + 7))
  end
  local out = ab.json.object { task_id = name, description = ("Implement %s() in %s_kit.py."):format(name, name) }
  out.solution_files = ab.json.object(more.files or { [name .. "_kit.py"] = body })
  out.test_files = ab.json.object { [("tests/test_%s.py"):format(name)] = more.tests or table.concat(lines) }
  for key, value in pairs(more.fields or {}) do out[key] = value end
  return out
end

--- A teacher: answers by candidate; a function gets the request. What it was asked is kept in `prompts`.
---@param answers table
---@return agentbox.Model model
---@return string[] prompts
function M.teacher(answers)
  local prompts = {}
  return ab.model.fn(function(request)
    local i = math.tointeger(tonumber(request.session:match "^candidate%-(%d+)$"))
    prompts[i] = request.messages[2].content
    local answer = answers[i]
    if type(answer) == "function" then answer = answer(request) end
    if type(answer) == "table" then answer = ab.json.encode(answer) end
    return { content = answer or "nothing more", usage = { prompt_tokens = 100, completion_tokens = 50 } }
  end), prompts
end

--- The stages without those named.
function M.without(...)
  local stages = ab.generate.two_stage()
  for _, name in ipairs { ... } do stages:remove(name) end
  return stages
end

--- Runs one candidate for each answer.
---@param answers table
---@param pipeline? table     # stages: without the sandbox unless given
---@param batch? table
function M.run(answers, pipeline, batch)
  local dir = M.folder()
  local made = setmetatable({ out = dir.path .. "/tasks", dir = dir.path }, { __close = function() getmetatable(dir).__close(dir) end })
  local opts = { stages = M.without "sandbox", max_tokens = 1000, mutants = 2, repeats = 2 }
  opts.model, made.prompts = M.teacher(answers)
  for key, value in pairs(pipeline or {}) do opts[key] = value end
  local go = { target = #answers, max_rounds = 1, concurrency = 1, out = made.out }
  for key, value in pairs(batch or {}) do go[key] = value end
  local run <close> = assert(ab.generate.pipeline(opts):start(go))
  made.accepted, made.reports = {}, {}
  while true do
    local one = run.results:take()
    if not one then break end
    made.accepted[#made.accepted + 1], made.reports[one[1].task_id] = one[1], one[2]
  end
  made.summary, made.failure = run:summary(), run.failure
  made.rejects = {}
  for _, line in ipairs(assert(ab.generate.rejects(made.out))) do made.rejects[line.index] = line end
  return made
end

return M
