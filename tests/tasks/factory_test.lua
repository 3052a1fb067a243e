-- The twenty tasks of tasks/factory: complete, and each through the gates of a task factory: its starter fails because tests fail, its
-- solution earns 1 again and again, an idle agent and one that only ends the program earn 0, its tests notice faults.
local ab = require "agentbox"
local async = require "agentbox.async"
local lu = require "luaunit"

local LANGUAGES = { py = "python", js = "javascript", go = "go", c = "c", sh = "shell" }
local PROGRAMS = { js = "command -v node", go = "PATH=$PATH:/usr/local/go/bin:/usr/lib/go/bin; command -v go", c = "command -v cc" }

local M = {}

local function by_language()
  local groups = {}
  for _, task in ipairs(assert(ab.task.dir "tasks/factory")) do
    local short = task.task_id:match "^(%l+)_%l"
    groups[short] = groups[short] or {}
    table.insert(groups[short], task)
  end
  return groups
end

function M.test_four_a_language_with_all_that_a_task_has()
  for short, tasks in pairs(by_language()) do
    lu.assertEquals(#tasks, 4, short)
    for _, task in ipairs(tasks) do
      local about, id = task.metadata, task.task_id
      lu.assertEquals(task.dir, "tasks/factory/" .. id)
      lu.assertEquals(about.language, LANGUAGES[short], id)
      lu.assertEquals(about.license, "Apache-2.0", id)
      lu.assertTrue(about.difficulty == "medium" or about.difficulty == "hard", id)
      lu.assertTrue(about.kind == "implement" or about.kind == "repair", id)
      lu.assertTrue(#about.family > 0 and #about.tags >= 3 and about.estimated_steps < task.max_steps, id)
      lu.assertTrue(#task.description > 300 and task.description:find("tests/", 1, true) ~= nil, id)
      lu.assertNotNil(next(task.solution), id)
      for path, file in pairs(task.solution) do
        lu.assertTrue(not task.files[path] or task.files[path].bytes ~= file.bytes, id .. ": " .. path)
      end
    end
  end
end

local function proves_itself(task, failed)
  local ok, reason, facts = ab.generate.validate(task, { repeats = 2, mutants = 2 })
  if not ok then failed[#failed + 1] = ("%s: %s"):format(task.task_id, tostring(reason)) end
  if ok and task.metadata.language ~= "go" and facts.clock ~= "moved by +200d" and ab.fs.exists "/usr/share/doc/libfaketime" then
    failed[#failed + 1] = task.task_id .. ": the clock was not moved"
  end
end

for short, name in pairs(LANGUAGES) do
  M["test_" .. name] = function()
    if PROGRAMS[short] then
      local box <close> = assert(ab.sandbox.create {})
      if assert(box:exec(PROGRAMS[short])).exit_code ~= 0 then lu.skip("no program for " .. name .. " here; ./setup test installs it") end
    end
    local failed = {}
    async.each(by_language()[short], function(task) proves_itself(task, failed) end, { limit = 2 })
    table.sort(failed)
    lu.assertEquals(failed, {})
  end
end

function M.test_the_page_lists_them()
  local listed = {}
  for id in assert(ab.fs.read "docs/tasks.md"):gmatch "\n| `factory/([%w_]+)` |" do listed[#listed + 1] = id end
  local there = {}
  for i, task in ipairs(assert(ab.task.dir "tasks/factory")) do there[i] = task.task_id end
  lu.assertEquals(listed, there)
end

return M
