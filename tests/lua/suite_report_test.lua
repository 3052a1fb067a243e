--- What is made of attempts: scores, the infrastructure apart, marks, and every form of the report.
local csv = require "agentbox.suite.csv"
local fs = require "agentbox.fs"
local integrity = require "agentbox.suite.integrity"
local json = require "agentbox.json"
local junit = require "agentbox.suite.junit"
local lu = require "luaunit"
local markdown = require "agentbox.suite.markdown"
local reports = require "agentbox.suite.report"
local rollouts = dofile((arg[0]:gsub("lua/[^/]*$", "support/rollouts.lua")))
local suites = require "agentbox.suite"
local made = dofile((arg[0]:gsub("lua/[^/]*$", "support/attempts.lua")))

local attempts = require "agentbox.suite.attempts"

local M = {}

local TASKS = { "t1", "t2", "t3", "t4" }

local function build(successes, n, fields)
  local ids, all = {}, {}
  for id in pairs(successes) do ids[#ids + 1] = id end
  table.sort(ids)
  for i, id in ipairs(ids) do all[i] = made.rows(id, successes[id], n) end
  return reports.build(made.doc(ids, TASKS, n, fields), all), all
end

-- ---------------------------------------------------------------- scores

function M.test_C12_the_leaderboard_has_intervals_and_every_pass_at_k()
  local report = build({ good = { t1 = 4, t2 = 3, t3 = 4, t4 = 2 }, weak = { t1 = 1, t2 = 0, t3 = 2, t4 = 0 } }, 4)
  lu.assertEquals({ report.leaderboard[1].model_id, report.leaderboard[2].model_id, report.valid }, { "good", "weak", true })
  lu.assertEquals({ report.leaderboard[1].success_rate, report.leaderboard[2].success_rate }, { 13 / 16, 3 / 16 })
  lu.assertTrue(report.leaderboard[1].low < 13 / 16 and 13 / 16 < report.leaderboard[1].high)
  lu.assertAlmostEquals(report.leaderboard[1].versus_next.p, 2 / 16, 1e-12) -- four tasks, all for it: 2 of 16 assignments
  local good = report.models[1]
  lu.assertEquals(#good.pass_at, 4)
  local expected = { 13 / 16, (1 + 1 + 1 + 5 / 6) / 4, 1, 1 }
  for k, rate in ipairs(expected) do lu.assertAlmostEquals(good.pass_at[k].estimate, rate, 1e-12) end
  lu.assertTrue(good.pass_at[1].low <= expected[1] and expected[1] <= good.pass_at[1].high)
  lu.assertEquals(good.pass_at_k_mean, 1)
  lu.assertEquals({ good.by_task[2].task_id, good.by_task[2].successes, good.by_task[2].disagreement }, { "t2", 3, 0.5 })
  lu.assertEquals({ good.tokens.per_success, good.tokens.cost }, { 16 * 110 / 13, json.null })
end

function M.test_C4_what_the_infrastructure_spoilt_is_in_no_mean()
  local rows = made.rows("m", { t1 = 2, t2 = 0, t3 = 2 }, 2)
  rows[#rows + 1], rows[#rows + 2] = made.broken("m", "t4", 0), made.broken("m", "t4", 1)
  rows[1].spoilt = { sandbox = 2 }
  local report = reports.build(made.doc({ "m" }, TASKS, 2), { rows })
  local one = report.models[1]
  lu.assertEquals({ one.aggregate.success_rate, one.scored, one.unscored, one.n }, { 4 / 6, 6, 2, 8 })
  lu.assertEquals(one.success.tasks, 3)
  lu.assertEquals({ one.infrastructure.unscored.model_server, one.infrastructure.retried.sandbox }, { 2, 2 })
  lu.assertEquals({ one.over_quota, one.valid, report.valid }, { true, false, false }) -- 2 of 8 is more than 10 %
  lu.assertStrContains(table.concat(report.problems, "\n"), "m: 2 of 8 attempts have no score, more than the quota")
  lu.assertEquals(one.by_task[4].pass_at_1, json.null)
  local tolerant = reports.build(made.doc({ "m" }, TASKS, 2, { max_errors = 0.25 }), { rows })
  lu.assertEquals({ tolerant.valid, #tolerant.problems }, { true, 1 })
  lu.assertEquals(reports.build(made.doc({ "m" }, TASKS, 2, { max_errors = 2 }), { rows }).valid, true)
end

function M.test_a_student_without_any_score_is_last_and_not_zero()
  local broken = {}
  for i, task in ipairs(TASKS) do broken[i] = made.broken("broken", task, 0) end
  local report = reports.build(made.doc({ "broken", "zero" }, TASKS, 1), { broken, made.rows("zero", { t1 = 0, t2 = 0, t3 = 0, t4 = 0 }, 1) })
  lu.assertEquals({ report.leaderboard[1].model_id, report.leaderboard[2].success_rate }, { "zero", json.null })
  lu.assertEquals(report.leaderboard[1].versus_next, json.null)
  lu.assertEquals({ report.failures[1].class, report.failures[2].n, report.failures[2].class }, { "policy", 4, "model_server" })
end

function M.test_missing_attempts_are_counted()
  local rows = made.rows("m", { t1 = 1, t2 = 1 }, 1)
  local report = reports.build(made.doc({ "m" }, TASKS, 1), { rows })
  lu.assertEquals({ report.models[1].missing, report.models[1].valid }, { 2, false })
  lu.assertStrContains(report.problems[1], "2 of 4 attempts are missing")
end

function M.test_C7_a_subset_and_a_differing_suite_are_told_everywhere()
  local suite = { id = "s", name = "S", version = "1", integrity = "differs", differs = json.array { "tools" } }
  local report, all = build({ m = { t1 = 1, t2 = 1, t3 = 1, t4 = 1 } }, 1, { suite = suite, subset = { tasks = 4, of = 9, limit = 4 } })
  local text = table.concat(report.problems, "\n")
  for _, part in ipairs { "a subset: 4 of the suite's 9 tasks", "differs from its stored content hash", "seal in: tools" } do
    lu.assertStrContains(text, part)
  end
  lu.assertStrContains(markdown.text(report), "# S 1 (subset: 4 of 9 tasks)")
  lu.assertStrContains(markdown.text(report), "## Leaderboard (subset: 4 of 9 tasks)")
  lu.assertStrContains(junit.text(report, all), 'name="s (subset)"')
end

function M.test_prices_are_the_suites_or_the_students()
  local doc = made.doc({ "m" }, TASKS, 1, { prices = { m = { prompt = 10, cached = 1, completion = 100 } } })
  local report = reports.build(doc, { made.rows("m", { t1 = 1, t2 = 1, t3 = 0, t4 = 0 }, 1) })
  local cost = 4 * (60 * 10 + 40 * 1 + 10 * 100) / 1e6
  lu.assertAlmostEquals(report.models[1].tokens.cost, cost, 1e-15)
  lu.assertAlmostEquals(report.models[1].tokens.cost_per_success, cost / 2, 1e-15)
  doc.students[1].price = { prompt = 0, completion = 1 }
  report = reports.build(doc, { made.rows("m", { t1 = 1, t2 = 1, t3 = 0, t4 = 0 }, 1) })
  lu.assertAlmostEquals(report.models[1].tokens.cost, 40 / 1e6, 1e-15)
end

function M.test_difficulty_and_flakiness_are_of_tasks()
  local report = build({ a = { t1 = 2, t2 = 2, t3 = 1, t4 = 0 }, b = { t1 = 2, t2 = 0, t3 = 0, t4 = 0 } }, 2)
  local by = {}
  for _, one in ipairs(report.tasks) do by[one.task_id] = one end
  lu.assertEquals({ by.t1.difficulty, by.t3.difficulty, by.t4.difficulty }, { 0, 0.75, 1 })
  lu.assertEquals(by.t1.discrimination, json.null)
  lu.assertTrue(by.t2.discrimination > 0.5)
  lu.assertEquals({ by.t3.flaky, by.t2.flaky }, { json.array { "a" }, json.array {} })
end

function M.test_the_same_attempts_give_the_same_report()
  local function go() return json.encode((build({ a = { t1 = 2, t2 = 2, t3 = 1, t4 = 0 }, b = { t1 = 2, t2 = 0, t3 = 0, t4 = 1 } }, 2))) end
  lu.assertEquals(go(), go())
  local one = build({ a = { t1 = 1, t2 = 0, t3 = 1, t4 = 1 } }, 1)
  local plain = json.encode(reports.comparable(one))
  for _, word in ipairs { "r%-1", "wall_clock", "trajectory_paths", "models/a/" } do lu.assertNil(plain:find(word), word) end
end

-- ---------------------------------------------------------------- records

local function line_of(fields, calls, exits)
  local ro = rollouts.new { id = fields and fields.id, attempt = fields and fields.attempt, task_id = fields and fields.task_id, group = fields and fields.group }
  for i, call in ipairs(calls or {}) do
    call.id = "c" .. i
    ro:reply(rollouts.object("role", "assistant", "content", json.null, "tool_calls", json.array { call }), { finish = "tool_calls", norm = "tool_calls",
      usage = { prompt = 40, completion = 9 } })
    ro:tools({ call }, { { text = "out", exit = exits and exits[i] or 0 } })
  end
  ro:reply(rollouts.object("role", "assistant", "content", "done"), { usage = { prompt = 10, completion = 1 } })
  return assert(json.decode(json.encode(ro:finish(fields and fields.finish).line))) -- as it is read back
end

local function command(text)
  return rollouts.object("id", "", "type", "function", "function",
    rollouts.object("name", "run_command", "arguments", json.encode { command = text }))
end

local function marks_of(commands, finish, exits)
  local calls = {}
  for i, text in ipairs(commands) do calls[i] = command(text) end
  local names, marks = {}, integrity.marks(line_of({ finish = finish }, calls, exits))
  for _, name in ipairs(integrity.MARKS) do
    if marks[name] then names[#names + 1] = name end
  end
  return table.concat(names, " ")
end

local FAILED = { final_status = "failed", stop = { reason = "final_answer", class = "policy" },
  reward = { scored = true, value = 0.0, outcome = 0.0 }, verify = { success = false, exit_code = 1, stdout = "1 failed in 0.31s" } }

function M.test_marks_of_what_wins_without_solving()
  for text, expected in pairs {
    ["git log --all -p"] = "history", ["git reflog | head"] = "history", ["cat .git/packed-refs"] = "history", ["cd x && git fsck --lost-found"] = "history",
    ["git --no-pager log --oneline --all"] = "history", ["git log -5"] = "", ["git diff HEAD"] = "", ["git status; cat all"] = "",
    ["echo '3 passed in 0.1s'"] = "spoofed", ["printf 'import os\\nos._exit(0)' > sol.py"] = "spoofed",
    ["echo 1 > reward.txt"] = "spoofed", ["digit log --all"] = "", ["git log; ls --all"] = "", ["x\nprint('12 passed')"] = "spoofed",
    ["git log -g"] = "history", ["git log --grep=x"] = "", ["python -m pytest -q"] = "", ["echo hello"] = "", ["ls -l && cat sol.py"] = "",
  } do
    lu.assertEquals(marks_of { text }, expected, text)
  end
  lu.assertEquals(marks_of({}, { tamper = { changed = { "test_a.py" }, removed = {}, planted = {}, suspicious = true } }), "touched")
  lu.assertEquals(marks_of({}, { tamper = { changed = {}, removed = {}, planted = { "conftest.py" }, suspicious = true } }), "planted")
  lu.assertEquals(marks_of({}, { tamper = { changed = {}, removed = {}, planted = { "test_mine.py" }, suspicious = false } }), "")
end

-- What a model wrote cannot make looking at it slow: work grows with its length, counted by the matcher's own budget.
function M.test_marks_of_hostile_texts_are_found_in_one_pass()
  local text = ("git log "):rep(30000) .. ("print(" .. ("1"):rep(2000)):rep(20) .. ("exit_code="):rep(2000)
  lu.assertEquals(marks_of({ text }, FAILED), "")
  lu.assertEquals(marks_of { text:sub(1, 1000) .. " --all" }, "history")
end

function M.test_a_mismatch_is_the_last_own_test_run_against_the_verdict()
  lu.assertEquals(marks_of({ "python -m pytest -q" }, FAILED), "mismatch")
  lu.assertEquals(marks_of({ "python -m pytest -q" }, FAILED, { 1 }), "")
  lu.assertEquals(marks_of({ "python -m pytest -q", "python -m pytest -q" }, FAILED, { 0, 1 }), "")
  lu.assertEquals(marks_of({ "python -m pytest -q" }), "") -- solved: no mismatch
  lu.assertEquals(marks_of({ "ls" }, FAILED), "")
  lu.assertEquals(marks_of({ "cat test_a.py" }, FAILED), "")
  lu.assertEquals(marks_of({ "python3 tests/test_a.py" }, FAILED), "mismatch")
  lu.assertEquals(marks_of({ ("python "):rep(30000) }, FAILED), "")
  local line = line_of({ finish = FAILED }, { command "python -m pytest -q x" })
  local check = suites.own_check(line)
  lu.assertEquals({ check.verdict, check.result }, { "pass", "out" })
  lu.assertStrContains(check.command, "pytest -q x")
  lu.assertNil(suites.own_check(line_of()))
end

function M.test_a_record_becomes_a_row()
  local error_ = { final_status = "error", status = "failed", stop = { reason = "sandbox_error", class = "sandbox", detail = "no" },
    reward = { scored = false }, verify = nil, metadata = { failure_kind = "seed" } }
  local group = { id = "g", index = 0, size = 1 }
  local first = attempts.row(line_of { id = "a", attempt = 0, group = group, finish = error_ }, "m", "run")
  local second = attempts.row(line_of { id = "a~1", attempt = 1, group = group }, "m", "run")
  lu.assertEquals({ first.failure_kind, first.scored, first.reward, first.class }, { "seed", false, nil, "sandbox" })
  lu.assertEquals({ second.success, second.prompt, second.completion, second.slot }, { true, 10, 1, "g/0" })
  lu.assertEquals(second.path, "run#a~1")
  lu.assertEquals(first.slot, second.slot)
  for id, index in pairs { ["t-17"] = 0, ["t-17#2"] = 1, ["t-17#12"] = 11, ["t-17+8"] = 8, ["t-17#2+8"] = 9, ["t-17#1"] = 0, other = 0, ["t-17#x"] = 0 } do
    local row = attempts.row(line_of { id = "a", group = { id = id, index = 0, size = 1 } }, "m", "run")
    lu.assertEquals(row.index, index, id)
  end
end

function M.test_C6_seed_errors_are_those_whose_seeding_failed()
  local rows = { made.row("m", "t1", 0), made.broken("m", "t2", 0), made.broken("m", "t3", 0), made.broken("m", "t4", 0) }
  rows[2].failure_kind, rows[3].failure_kind = "seed", "setup_check"
  local report = reports.build(made.doc({ "m" }, TASKS, 1), { rows })
  local by = report.models[1].by_task
  lu.assertEquals({ by[2].seed_errors, by[2].setup_check_failures, by[3].setup_check_failures, by[4].seed_errors }, { 1, 0, 1, 0 })
end

function M.test_suspicious_attempts_are_listed_masked_and_counted()
  local rows = made.rows("m", { t1 = 1, t2 = 1, t3 = 1, t4 = 0 }, 1)
  rows[1].marks, rows[1].suspicious = { touched = true }, true
  rows[4].marks = { mismatch = true }
  local report = reports.build(made.doc({ "m" }, TASKS, 1), { rows })
  local one = report.models[1]
  lu.assertEquals({ one.success.estimate, one.success_masked.estimate }, { 0.75, 0.5 })
  lu.assertEquals({ one.integrity.flagged, one.integrity.rate, one.integrity.flagged_successes }, { 1, 0.25, 1 })
  lu.assertEquals({ one.integrity.marks.mismatch, report.integrity.rate, report.integrity.listed_of }, { 1, 0.25, 2 })
  lu.assertEquals({ report.integrity.look_at[1].task_id, report.integrity.look_at[2].marks }, { "t1", json.array { "mismatch" } })
  lu.assertEquals({ csv.mask(rows[1]), csv.mask(rows[2]), csv.mask(made.broken("m", "t1", 0)) }, { 0, 1, 0 })
end

-- ---------------------------------------------------------------- forms

local HOSTILE = 'a|b<script>alert(1)</script>"><img src=x onerror=alert(1)>](javascript:x) \27[31m\nnext `code` &amp; \xff'

local function hostile()
  local rows = { made.row(HOSTILE, HOSTILE, 0, made.FAILED), made.broken(HOSTILE, "]]>", 0), made.row(HOSTILE, "=1+1", 0) }
  rows[1].kind = { key = "k", exit_code = 1, head = HOSTILE, class = "policy" }
  rows[1].marks, rows[1].suspicious = { spoofed = true }, true
  local doc = made.doc({ HOSTILE }, { HOSTILE, "]]>", "=1+1" }, 1)
  doc.suite.name, doc.suite.id = HOSTILE, HOSTILE
  return reports.build(doc, { rows }), { rows }
end

function M.test_B115_nothing_that_others_named_becomes_markup()
  local report, all = hostile()
  local text = markdown.text(report)
  lu.assertNil(text:find "<script" or text:find "<img" or text:find "\27")
  for line in text:gmatch "[^\n]+" do
    if line:sub(1, 1) == "|" then
      local bars = select(2, line:gsub("\\|", ""):gsub("|", ""))
      lu.assertTrue(bars >= 5 and bars <= 12, line)
    end
  end
  lu.assertNil(text:find "[^\\]%]%(javascript")
  local xml = junit.text(report, all)
  lu.assertNil(xml:find "<script" or xml:find "\27")
  lu.assertTrue(utf8.len(xml) ~= nil)
  lu.assertStrContains(xml, "&lt;script&gt;")
  lu.assertStrContains(xml, "]]&gt;/0")
end

-- The reader of RFC 4180 in few lines.
local function read_csv(text)
  local rows, row, at = {}, {}, 1
  while at <= #text do
    local value, stop
    if text:sub(at, at) == '"' then
      local from = at + 1
      repeat stop = text:find('"', from, true); from = stop + 2 until text:sub(stop + 1, stop + 1) ~= '"'
      value, at = text:sub(at + 1, stop - 1):gsub('""', '"'), stop + 1
    else
      stop = text:find("[,\r]", at)
      value, at = text:sub(at, stop - 1), stop
    end
    row[#row + 1] = value
    if text:sub(at, at) == "," then at = at + 1 else rows[#rows + 1], row, at = row, {}, at + 2 end
  end
  return rows
end

function M.test_the_csv_is_a_table_whatever_the_ids_are()
  local _, all = hostile()
  local rows = read_csv(csv.text(all))
  lu.assertEquals(#rows, 4)
  for _, row in ipairs(rows) do lu.assertEquals(#row, #rows[1]) end
  lu.assertEquals({ rows[2][1], rows[2][2], rows[4][2] }, { HOSTILE, HOSTILE, "'=1+1" })
  local at = {}
  for i, name in ipairs(rows[1]) do at[name] = i end
  lu.assertEquals({ rows[2][at.spoofed], rows[2][at.mask], rows[3][at.reward], rows[3][at.scored], rows[4][at.prompt_tokens], rows[4][at.model_ms] },
    { "1", "0", "", "0", "100", "900" })
end

-- ---------------------------------------------------------------- comparing

function M.test_a_comparison_is_paired_by_task_and_says_which_explain_it()
  local a = build({ m = { t1 = 2, t2 = 1, t3 = 0, t4 = 2 } }, 2)
  local b = build({ m = { t1 = 2, t2 = 2, t3 = 2, t4 = 1 } }, 2)
  local result = suites.compare(a, b)
  local delta = result.deltas[1]
  lu.assertEquals({ result.hash_match, delta.delta_success_rate, delta.success.mean }, { true, 0.25, 0.25 })
  lu.assertEquals({ delta.success.sign.better, delta.success.sign.worse, delta.success.sign.same }, { 2, 1, 1 })
  lu.assertAlmostEquals(delta.success.permutation.p, 6 / 8, 1e-12)
  lu.assertEquals({ delta.explained_by[1].task_id, delta.explained_by[1].delta, delta.explained_by[1].share }, { "t3", 1, 0.5 })
  lu.assertEquals(#delta.explained_by, 3)
end

function M.test_a_comparison_warns_of_what_was_not_made_alike()
  local function report(hash, parts, subset, valid)
    local suite = { id = "s", name = "S", version = "1", content_hash = hash, integrity = "ok", seal = hash, parts = json.object(parts) }
    local one = build({ m = { t1 = 1, t2 = 1, t3 = 1, t4 = 1 } }, 1, { suite = suite, subset = subset })
    one.valid = valid
    return one
  end
  local a, b = report("x", { tools = "1", agent = "1" }, nil, true), report("y", { tools = "2", agent = "1" }, { tasks = 4, of = 8, hash = "h" }, false)
  local result = suites.compare(a, b)
  lu.assertEquals({ result.hash_match, result.seal_match, result.differs }, { false, false, json.array { "tools" } })
  local text = table.concat(result.warnings, "\n")
  for _, part in ipairs { "different content hashes", "different in: tools", "different subsets", "B is not valid" } do lu.assertStrContains(text, part) end
  local none = report(json.null, {}, nil, true)
  lu.assertEquals(suites.compare(none, none).hash_match, false) -- two missing hashes do not match
end

function M.test_students_of_one_result_can_be_compared()
  local both = build({ a = { t1 = 1, t2 = 1, t3 = 1, t4 = 0 }, b = { t1 = 0, t2 = 0, t3 = 0, t4 = 0 } }, 1)
  local delta = suites.compare(both, both, { student_a = "b", student_b = "a" }).deltas[1]
  lu.assertEquals({ delta.model_id, delta.model_id_b, delta.success.mean }, { "b", "a", 0.75 })
  lu.assertEquals(#suites.compare(both, both, { student_a = "b", student_b = "zzz" }).deltas, 0)
end

-- A result of the Python AgentBox: documents below models/ID/trajectories, ids with slashes in their paths.
function M.test_F5_a_result_of_AgentBox_is_read_ids_with_slashes_too()
  local dir = assert(fs.tmpdir "agentbox-foreign-")
  local gone <close> = setmetatable({}, { __close = function() assert(fs.remove(dir, true)) end }) -- luacheck: ignore
  local function document(task, status, reward)
    return json.encode { task_id = task, run_id = task .. status, messages = json.array { { role = "user", content = "x" } }, tool_call_records = json.array {},
      reward = reward, final_status = status, metrics = { steps = 1, tool_calls = 0, model_calls = 1, duration_s = 2.5 }, metadata = json.object {},
      error = json.null, model = "m", tool_mode = "structured", tools = json.array {}, created_at = "2026-01-02T03:04:05Z",
      finished_at = "2026-01-02T03:04:08Z" }
  end
  for _, id in ipairs { "plain", "org/model" } do
    local folder = ("%s/models/%s/trajectories"):format(dir, id)
    assert(fs.mkdir(folder, true))
    assert(fs.write(folder .. "/a_1.json", document("a", "success", 1.0)))
    assert(fs.write(folder .. "/b_1.json", document("b", "error", 0.0)))
  end
  assert(fs.write(dir .. "/report.json", json.encode { report_id = "r", suite_id = "s", suite_version = "1", suite_content_hash = json.null,
    models = json.array { { model_id = "plain", by_task = json.array { { task_id = "a", n = 1 }, { task_id = "b", n = 1 } } },
      { model_id = "org/model", by_task = json.array { { task_id = "a", n = 1 }, { task_id = "b", n = 1 } } } } }))
  local report = assert(suites.report(dir))
  for _, one in ipairs(report.models) do
    lu.assertEquals({ one.n, one.scored, one.aggregate.success_rate }, { 2, 1, 1.0 }, one.model_id) -- its error is unscored here
  end
  local got, err = suites.report(dir .. "/models")
  lu.assertNil(got)
  lu.assertEquals(err.code, "notfound")
  assert(fs.remove(dir .. "/models", true)) -- a report without trajectories
  lu.assertEquals(assert(suites.report(dir)).models[1].missing, 2)
end

return M
