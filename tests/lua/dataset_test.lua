--- Many tasks in one file, filters, the order of a curriculum.
local dataset = require "agentbox.dataset"
local fs = require "agentbox.fs"
local lu = require "luaunit"
local runner = require "agentbox.runner"
local task = require "agentbox.task"

local M = {}
local dir

function M.setUp() dir = assert(fs.tmpdir "agentbox-dataset-") end

function M.tearDown() assert(fs.remove(dir, true)) end

local function make(id, metadata)
  return task.new { task_id = id, description = "d " .. id, starter_files = { ["a.txt"] = "ä\n" }, verifier = { command = "true" }, metadata = metadata }
end

local function ids(list)
  local out = {}
  for i, one in ipairs(list) do out[i] = one.task_id end
  return out
end

local function written(name, text)
  assert(fs.write(dir .. "/" .. name, text))
  return dir .. "/" .. name
end

local ALL

local function all()
  ALL = ALL or {
    make("a", { difficulty = "easy", tags = { "lists", "io" }, domain = "text", language = "python", estimated_steps = 5 }),
    make("b", { difficulty = "hard", tags = { "io" }, estimated_steps = "12" }), make("c", { difficulty = "medium", tags = { "lists" } }),
    make("d", { difficulty = "easy", language = "go" }), make("e", {}), make("f", { difficulty = "odd" }),
  }
  return ALL
end

function M.test_lines_round_trip()
  local path = dir .. "/t.jsonl"
  assert(dataset.save(path, all()))
  local back = assert(dataset.load(path))
  lu.assertEquals(ids(back), { "a", "b", "c", "d", "e", "f" })
  for i, one in ipairs(back) do lu.assertEquals(one.hash, all()[i].hash) end
  assert(fs.write(path, "\n  \n" .. assert(fs.read(path)) .. "\n"))
  lu.assertEquals(#assert(dataset.load(path)), 6)
end

function M.test_a_bad_line_is_named()
  for text, said in pairs {
    ['{"task_id": "a", "description": "d", "verifier": {"command": "true"}}\n{"task_id": 1\n'] = ":2: ",
    ['{"task_id": "a", "description": "d"}\n'] = ":1: ", ["[]\n"] = ":1: not a JSON object",
    [('{"task_id": "a", "description": "d", "verifier": {"command": "true"}}\n'):rep(2)] = "comes twice",
  } do
    local list, problem = dataset.load(written("bad.jsonl", text))
    lu.assertEquals({ list, problem.code }, { nil, "task" }, text)
    lu.assertStrContains(problem.msg, said)
  end
  lu.assertEquals(select(2, dataset.each(dir .. "/none.jsonl")).code, "notfound")
  lu.assertEquals(select(2, dataset.each(dir .. "/none.txt")).code, "badarg")
end

function M.test_a_table()
  local path = written("t.csv", "\u{FEFF}task_id,description,verifier.command,verifier.timeout_s,metadata.difficulty,metadata.tags,starter_files.src/a.py\r\n"
    .. 'one,"say ""hi"", then\nstop",true,45,easy,"[""x"",""y""]","print(1)\n"\r\n\r\n2,plain,exit 0,,,,[1]\r\n')
  local list = assert(dataset.load(path))
  lu.assertEquals(ids(list), { "one", "2" })
  lu.assertEquals({ list[1].description, list[1].verifier.timeout_s, list[1].metadata.tags[2] }, { 'say "hi", then\nstop', 45, "y" })
  lu.assertEquals({ list[1].files["src/a.py"].bytes, list[2].files["src/a.py"].bytes }, { "print(1)\n", "[1]" })
  lu.assertEquals({ list[2].verifier.command, list[2].verifier.timeout_s }, { "exit 0", 60 })
  for text, said in pairs { ['task_id\n"open\n'] = ":2: a quoted cell", ["task_id\na,b\n"] = ":2: 2 cells, but 1 columns" } do
    local none, problem = dataset.load(written("bad.csv", text))
    lu.assertNil(none)
    lu.assertStrContains(problem.msg, said)
  end
end

-- B128: what is odd about a file is understood or named with its line, and nothing is taken for something else.
function M.test_B128_odd_files_load_right_or_fail_by_line()
  local good = '{"task_id": "%s", "description": "d", "verifier": {"command": "true"}}'
  local long = '{"task_id": "long", "description": "d", "metadata": {"n": "' .. ("x"):rep(5 << 20)
    .. '"}, "verifier": {"command": "true"}}'
  local odd = "\u{FEFF}" .. good:format "a" .. "\r\n\r\n" .. long .. "\n" .. good:format "z"
  lu.assertEquals(ids(assert(dataset.load(written("odd.jsonl", odd)))), { "a", "long", "z" })
  local head = "task_id,description,verifier.command,metadata.score\n"
  for text, said in pairs {
    [head .. "a,d,true\n"] = ":2: 3 cells, but 4 columns", [head .. "a,d,true,1,\n"] = ":2: 5 cells, but 4 columns",
    ["task_id,,description\na,b,c\n"] = ":1: column 2 has no name", ["task_id,task_id\na,b\n"] = ":1: two columns are called task_id",
  } do
    local none, problem = dataset.load(written("bad.csv", text))
    lu.assertNil(none, text)
    lu.assertStrContains(problem.msg, said)
  end
  lu.assertEquals(assert(dataset.load(written("nan.csv", head .. "a,d,true,\n")))[1].metadata.score, nil)
  lu.assertEquals(assert(dataset.load(written("nan.csv", head .. "a,d,true,NaN\n")))[1].metadata.score, "NaN")
  local none, problem = dataset.load(written("nan.jsonl", good:format "a" .. '\n{"task_id": NaN}\n'))
  lu.assertNil(none)
  lu.assertStrContains(problem.msg, ":2: ")
end

function M.test_rows_become_tasks_and_feed_a_run()
  local path = written("q.csv", "question,answer\nwhat is 1+1?,2\nskip,\n")
  local next_task = assert(dataset.each(path, function(row)
    if not row.answer then return nil end
    return { task_id = row.question, description = row.question, verifier = { command = "true" }, data = row }
  end))
  local run = assert(runner.start { tasks = next_task, model = { "2" }, sandbox = { backend = "none" }, verifier = function(ev)
    return ev.traj.messages[#ev.traj.messages].content == tostring(ev.data.answer) and 1 or 0
  end })
  local sum = run:wait()
  lu.assertEquals({ sum.rollouts, sum.solved }, { 1, 1 })
end

function M.test_filters()
  for _, case in ipairs {
    { { difficulty = "easy" }, { "a", "d" } }, { { difficulty = { "easy", "hard" } }, { "a", "b", "d" } },
    { { tags = { "lists", "io" } }, { "a", "b", "c" } }, { { tags = { "lists", "io" }, all_tags = true }, { "a" } },
    { { tags = {} }, { "a", "b", "c", "d", "e", "f" } }, { { language = "go" }, { "d" } }, { { domain = "text" }, { "a" } },
    { { min_steps = 6 }, { "b" } }, { { max_steps = 12 }, { "a", "b" } },
    { { where = function(one) return one.task_id > "d" end, difficulty = "odd" }, { "f" } },
  } do
    lu.assertEquals(ids(dataset.filter(all(), case[1])), case[2])
  end
  lu.assertErrorMsgContains("estimated_steps is no number", dataset.filter, { make("x", { estimated_steps = "many" }) }, { min_steps = 1 })
  lu.assertErrorMsgContains("unknown key", dataset.filter, {}, { tag = "x" })
end

function M.test_the_easy_ones_come_first()
  local list = dataset.curriculum(all(), 10, { seed = 3 })
  lu.assertEquals(#list, 6)
  local first = ids({ list[1], list[2] })
  table.sort(first)
  lu.assertEquals({ first, list[3].task_id, list[4].task_id }, { { "a", "d" }, "c", "b" })
  lu.assertEquals(ids(dataset.curriculum(all(), 10, { seed = 3 })), ids(list))
  lu.assertEquals(#dataset.curriculum(all(), 3), 3)
  lu.assertEquals(ids(dataset.curriculum(all(), 1, { order = { "odd" } })), { "f" })
  local groups = dataset.by_difficulty(all())
  lu.assertEquals({ #groups.easy, #groups.unknown, ids(groups.odd) }, { 2, 1, { "f" } })
end

return M
