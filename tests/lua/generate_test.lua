-- A batch against a teacher that answers well, badly, with fences, cut off, hostile and twice.
local ab = require "agentbox"
local lu = require "luaunit"

local teacher = dofile "tests/support/teacher.lua"

local M = {}

local function folder()
  local dir = assert(ab.fs.tmpdir "agentbox-generate")
  return dir, setmetatable({}, { __close = function() ab.fs.remove(dir, true) end })
end

local function pipeline(model, more)
  local opts = { model = model, mutants = 2, repeats = 2, max_tokens = 1000 }
  for key, value in pairs(more or {}) do opts[key] = value end
  return ab.generate.pipeline(opts)
end

local function drain(factory, opts)
  local ids = {}
  for task in factory:batch(opts) do ids[#ids + 1] = task.task_id end
  table.sort(ids)
  return ids
end

function M.test_exactly_the_good_are_accepted_and_every_reject_has_its_reason()
  local dir, gone <close> = folder() -- luacheck: ignore gone
  local out = dir .. "/tasks"
  local ids = drain(pipeline(teacher.new().model), { target = 17, max_rounds = 1, concurrency = 3, out = out })
  lu.assertEquals(ids, { "clamp", "flatten", "roman", "runs", "vowels" })
  local rejects = assert(ab.generate.rejects(out))
  local by_index = {}
  for _, one in ipairs(rejects) do by_index[one.index] = one end
  for i, answer in ipairs(teacher.ANSWERS) do
    local one = by_index[i]
    if answer.accepted then
      lu.assertNil(one, one and one.reason)
    else
      local stage = one.stage == "accept" and "dedup" or one.stage -- acceptance asks again
      lu.assertEquals({ i, stage }, { i, answer.stage }, one.reason)
      lu.assertStrContains(one.reason, answer.reason)
    end
  end
  local stats = assert(ab.generate.stats(out))
  lu.assertEquals({ stats.accepted, stats.tried, stats.spent.calls }, { 5, 17, 17 })
  lu.assertFalse(ab.fs.exists(dir .. "/escape"))
  local task = assert(ab.task.load(out .. "/flatten"))
  lu.assertEquals(task.verifier.type, "pytest") -- the teacher's own command was not used
  lu.assertStrContains(task.files["flatten_kit.py"].bytes, "raise NotImplementedError")
  lu.assertStrContains(task.solution["flatten_kit.py"].bytes, "isinstance")
end

-- A child that kills itself at the nth write, for thirty n; then one that goes on. Nothing is lost and nothing is there twice.
function M.test_a_batch_that_is_killed_goes_on()
  local program = assert(ab.fs.readlink "/proc/self/exe")
  for n = 1, 30 do
    local dir, gone <close> = folder() -- luacheck: ignore gone
    local command = "KILL_AT=%d '%s' script tests/support/generate_run.lua '%s/tasks' >/dev/null 2>&1"
    local killed = os.execute(command:format(n, program, dir))
    lu.assertNil(killed, "was not killed at " .. n)
    lu.assertTrue(os.execute(command:format(0, program, dir)), "went on after " .. n)
    local names = {}
    for i, entry in ipairs(assert(ab.fs.list(dir .. "/tasks"))) do names[i] = entry.name end
    lu.assertEquals(names, { "t1", "t2", "t3", "t4", "t5", "t6" }, "after a kill at " .. n)
    local ends, drafts = {}, {}
    for line in assert(ab.fs.read_text(dir .. "/tasks.state/journal.jsonl")):gmatch "[^\n]+" do
      local one = ab.json.decode(line)
      local into = one.event == "end" and ends or drafts
      into[one.index] = (into[one.index] or 0) + 1
    end
    for i = 1, 6 do lu.assertEquals({ n, i, ends[i] }, { n, i, 1 }) end
    for i, count in pairs(drafts) do lu.assertEquals({ n, i, count }, { n, i, 1 }) end
  end
end

function M.test_caps_stop_a_batch_before_they_are_passed()
  local dir, gone <close> = folder() -- luacheck: ignore gone
  local asked = teacher.new()
  local factory = pipeline(asked.model, { stages = ab.generate.two_stage():remove "sandbox" })
  local run <close> = assert(factory:start { target = 17, out = dir .. "/tasks", concurrency = 3, caps = { calls = 4 } })
  while run.results:take() do end
  lu.assertEquals(asked.calls, 4)
  lu.assertStrContains(run:summary().why, "the cap of 4 on calls is reached")
end

function M.test_deleted_and_broken_tasks_do_not_count()
  local dir, gone <close> = folder() -- luacheck: ignore gone
  local out = dir .. "/tasks"
  local function again(target)
    return drain(pipeline(teacher.new().model, { stages = ab.generate.two_stage():remove "sandbox" }),
      { target = target, out = out, concurrency = 1 })
  end
  lu.assertEquals(again(2), { "clamp", "vowels" })
  lu.assertEquals(again(2), {})
  assert(ab.fs.remove(out .. "/clamp", true))
  assert(ab.fs.write(out .. "/vowels/task.json", '{"task_id": "vowels"}'))
  lu.assertEquals(again(2), { "clamp", "runs" }) -- the second clamp is no duplicate of anything any more
  lu.assertEquals(#assert(ab.generate.stats(out)).bad, 1)
end

function M.test_two_output_folders_share_nothing()
  local dir, gone <close> = folder() -- luacheck: ignore gone
  for _, name in ipairs { "a", "b" } do
    local factory = pipeline(teacher.new().model, { stages = ab.generate.two_stage():remove "sandbox" })
    lu.assertEquals(drain(factory, { target = 1, out = dir .. "/" .. name, concurrency = 1 }), { "clamp" })
  end
end

function M.test_stages_are_edited_by_name()
  local stages = ab.generate.two_stage():after("sandbox", "asan", function() return true end):remove "judge"
  local names = {}
  for i, stage in ipairs(stages) do names[i] = stage.name end
  lu.assertEquals(table.concat(names, " "), "draft parse strip repair static contamination dedup sandbox asan solve accept")
  lu.assertEquals(ab.generate.one_stage()[3].name, "pair")
  lu.assertErrorMsgContains("no stage 'sandbx'", function() stages:before("sandbx", "x", print) end)
  lu.assertErrorMsgContains("there is a stage 'asan' already", function() stages:after("draft", "asan", print) end)
end

return M
