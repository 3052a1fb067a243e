--- Pages: what is in them, what of it there is room for, and that nothing in them can become markup. How they look and
--- behave is tested in a browser (tests/peers/pages.sh).
local agentbox_json = require "agentbox.formats.agentbox"
local base64 = require "agentbox.image.credentials".base64
local cut = require "agentbox.render.cut"
local figures = require "agentbox.render.figures"
local fs = require "agentbox.sys.fs"
local hash = require "agentbox.hash"
local json = require "agentbox.json"
local lu = require "luaunit"
local render = require "agentbox.render"
local store = require "agentbox.store"
local made = dofile((arg[0]:gsub("lua/[^/]*$", "support/rollouts.lua")))

local M = {}
local dir

function M.setUp() dir = assert(fs.tmpdir "agentbox-render") end

function M.tearDown() assert(fs.remove(dir, true)) end

local FAILED = {
  final_status = "failed", reward = { scored = true, value = 0.5, outcome = 0.5, scorer = { name = "pytest" } },
  verify = { success = false, exit_code = 1, stdout = "1 failed\n", stderr = "", command = "pytest -q" },
}
local BROKEN = {
  status = "failed", final_status = "error", stop = { reason = "sandbox_error", class = "sandbox" }, reward = { scored = false },
  error = "sandbox: <gone>",
}

local function run_of(list)
  local s <close> = assert(store.open(dir .. "/runs", { run_id = "r", agentbox_json = false }))
  for _, t in ipairs(list) do assert(s:append(t)) end
  return s.run_dir
end

local function page_at(path, opts)
  local out = assert(render.file(path, dir .. "/page.html", opts))
  return assert(fs.read(out.path)), out
end

local function data(html, id)
  local text = html:match('<script type="application/json" id="' .. id .. '">(.-)</script>')
  return text and assert(json.decode(text))
end

local function column(columns, name)
  local list, out = columns[name], {}
  if list == nil then return out end
  if not list.d then return list end
  for i, at in ipairs(list.v) do out[i] = list.d[at + 1] end
  return out
end

function M.test_every_trajectory_is_a_row_with_what_the_record_says()
  local html = page_at(run_of { made.sample { id = "a" }:finish(), made.sample { id = "b", task_id = "t/x" }:finish(FAILED), made.sample { id = "c" }:finish(BROKEN) })
  local rows = data(html, "rows")
  lu.assertEquals(rows.n, 3)
  lu.assertEquals(column(rows, "id"), { "a", "b", "c" })
  lu.assertEquals(column(rows, "task"), { "t-17", "t/x", "t-17" })
  lu.assertEquals(column(rows, "status"), { "success", "failed", "error" })
  lu.assertEquals(column(rows, "reward"), { 1.0, 0.5, json.null }) -- F5: a fraction stays one, no score is no 0
  lu.assertEquals(column(rows, "dur"), { 3.2, 3.2, 3.2 })
  lu.assertEquals(rows.error[3], "sandbox: <gone>")
  local all = data(html, "page").figures.all
  lu.assertEquals({ all.rollouts, all.solved, all.unscored, all.success.value }, { 3, 1, 1, 0.5 })
end

function M.test_a_body_has_all_there_is_to_read()
  local html = page_at(run_of { made.sample({ id = "a" }, { tokens = true }):finish() })
  local body = data(html, "b0")
  lu.assertEquals({ body.task.description, body.verify.stdout, body.n_nodes, body.n_calls }, { "Make run.sh exit 0.", "2 passed\n", 5, 2 })
  lu.assertEquals({ body.nodes[5].text, body.nodes[5].reasoning, body.nodes[4].text }, { "Fixed.", "look first", "exit 3\n" })
  lu.assertEquals({ body.nodes[3].calls[1].name, body.runs[1].exit }, { "sh", 3 })
  lu.assertEquals({ body.ledger[1].drift, body.ledger[1].out }, { "first", 3 })
  lu.assertStrContains(body.calls[2].response.body, "chatcmpl-a-1")
end

-- The policy names the hashes of what the page has, and lets nothing else run or be asked.
function M.test_the_policy_is_that_of_its_own_script_and_style()
  local html = page_at(run_of { made.sample():finish() })
  local policy = html:match 'http%-equiv="Content%-Security%-Policy" content="([^"]*)"'
  local function sum(text)
    return "'sha256-" .. base64((hash.sha256(text):gsub("^sha256:", ""):gsub("%x%x", function(h) return string.char(tonumber(h, 16)) end))) .. "'"
  end
  local script, style = html:match "<script>(.-)</script>", html:match "<style>(.-)</style>"
  lu.assertStrContains(policy, "default-src 'none'")
  lu.assertStrContains(policy, "script-src " .. sum(script) .. ";")
  lu.assertStrContains(policy, "style-src " .. sum(style) .. ";")
  for _, word in ipairs { "unsafe", "connect-src", "http:", "https:", "*" } do lu.assertNil(policy:find(word, 1, true), word) end
  for _, word in ipairs { "innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "new Function" } do
    lu.assertNil(script:find(word, 1, true), word)
  end
end

local HOSTILE = "</script><script>alert(1)</script><!-- <script>\27[31m\u{202e}{{data}}{{script}}%1"

-- B115: whatever a model says is text.
function M.test_B115_nothing_of_a_model_is_markup()
  local ro = made.new { id = HOSTILE, task_id = HOSTILE, model = HOSTILE, user = HOSTILE, system = HOSTILE }
  ro:reply(made.object("role", "assistant", "content", HOSTILE, "reasoning_content", HOSTILE), {})
  local path = run_of { ro:finish { error = HOSTILE, metadata = { [HOSTILE] = HOSTILE } } }
  local html = page_at(path, { title = HOSTILE })
  local plain = page_at(path, { title = "x" })
  local function count(text) return select(2, html:gsub(text, "")), select(2, plain:gsub(text, "")) end
  for _, tag in ipairs { "<script", "</script", "<!%-%-", "<title" } do
    local hostile, without = count(tag)
    lu.assertEquals(hostile, without, tag)
  end
  lu.assertEquals(column(data(html, "rows"), "id"), { HOSTILE })
  lu.assertEquals(data(html, "b0").nodes[3].text, HOSTILE)
  lu.assertEquals(data(html, "page").title, HOSTILE)
end

function M.test_bodies_are_bounded_and_failures_come_first()
  local list = {}
  for i = 1, 6 do
    local fine = i % 3 ~= 0
    list[i] = made.sample({ id = "r" .. i }, { answer = ("x"):rep(9000) }):finish(i == 6 and BROKEN or not fine and FAILED or nil)
  end
  local html, out = page_at(run_of(list), { bodies_mb = 0.05 })
  lu.assertEquals(out.trajectories, 6)
  lu.assertTrue(out.bodies >= 2 and out.bodies < 6, out.bodies)
  lu.assertNotNil(data(html, "b5")) -- the one without a score
  lu.assertNotNil(data(html, "b2")) -- the failed one
  lu.assertNil(data(html, "b4"))
  local _, none = page_at(dir .. "/runs/r", { bodies_mb = 0 })
  lu.assertEquals({ none.trajectories, none.bodies }, { 6, 0 })
end

function M.test_long_texts_are_cut_and_say_so()
  local ro = made.sample({ id = "a" }, { output = ("é"):rep(300000) .. "end" })
  local html, out = page_at(run_of { ro:finish { verify = { success = false, stdout = ("z"):rep(5 << 20), command = "x" } } })
  lu.assertTrue(out.bytes < 400000, out.bytes)
  local text = data(html, "b0").nodes[4].text
  lu.assertEquals(#text.h + text.n + #text.t, 600003)
  lu.assertTrue(utf8.len(text.h) and utf8.len(text.t) and text.t:sub(-3) == "end")
  lu.assertTrue(data(html, "b0").verify.stdout.n > 5000000)
end

function M.test_cutting_keeps_characters_whole()
  for max = 1, 12 do
    local got = cut.text("aé☃😀aé☃😀", max)
    if type(got) == "table" then
      lu.assertTrue(utf8.len(got.h) and utf8.len(got.t) and true, max)
      lu.assertTrue(#got.h + #got.t <= max, max)
      lu.assertEquals(#got.h + #got.t + got.n, #"aé☃😀aé☃😀")
    end
  end
  lu.assertEquals(cut.text("a\xffb", 10), "a\u{fffd}b")
end

-- F5: the reference shows two of four trajectories when a model's id has a slash, and stops at a report without any.
function M.test_F5_models_with_slashes_doubles_and_reports_alone()
  local function document(path, id)
    assert(fs.mkdir(path, true))
    local text = json.encode(agentbox_json.convert(made.sample({ id = id, run_id = id }):finish()), agentbox_json.layout)
    assert(fs.write(path .. "/" .. id .. ".json", text))
  end
  local bench = dir .. "/bench"
  document(bench .. "/models/org/name/trajectories", "one")
  document(bench .. "/models/org/name/trajectories", "two")
  document(bench .. "/models/plain/trajectories", "three")
  document(bench .. "/models/plain/trajectories", "four")
  assert(fs.mkdir(bench .. "/suite/tasks", true))
  assert(fs.write(bench .. "/suite/tasks/task.json", "{}"))
  local html, out = page_at(bench)
  lu.assertEquals({ out.trajectories, out.damaged }, { 4, 0 })
  lu.assertEquals(data(html, "rows").n, 4) -- all four of one task: each is a row of its own
  assert(fs.mkdir(dir .. "/empty"))
  assert(fs.write(dir .. "/empty/report.json", "{}"))
  local none, problem = render.file(dir .. "/empty", dir .. "/x.html")
  lu.assertEquals({ none, problem.code }, { nil, "notfound" })
  lu.assertStrContains(problem.msg, "no trajectories")
  lu.assertNil(fs.stat(dir .. "/x.html"))
end

function M.test_damaged_lines_are_counted_and_left_out()
  local path = run_of { made.sample { id = "a" }:finish(), made.sample { id = "b" }:finish() }
  local file = path .. "/trajectories-00000.jsonl"
  local text = assert(fs.read(file))
  assert(fs.write(file, (text:gsub("Fixed", "Fixad", 1))))
  local html, out = page_at(path)
  lu.assertEquals({ out.trajectories, out.damaged, data(html, "page").damaged }, { 1, 1, 1 })
end

function M.test_a_page_has_its_name_when_it_is_whole()
  local path = run_of { made.sample { id = "a" }:finish() }
  local none, problem = render.file(path, dir .. "/nowhere/page.html")
  lu.assertNil(none)
  lu.assertStrContains(problem.msg, "cannot write")
  assert(fs.mkdir(dir .. "/taken"))
  lu.assertNil((render.file(path, dir .. "/taken")))
  local names = {}
  for _, entry in ipairs(assert(fs.list(dir))) do names[#names + 1] = entry.name end
  lu.assertEquals(names, { "runs", "taken" })
  lu.assertErrorMsgContains("unknown key", function() return render.file(path, "x", { bodies = 1 }) end)
end

function M.test_one_by_its_id_and_only_those_of_a_model()
  local path = run_of { made.sample { id = "abc", model = "m@1" }:finish(), made.sample { id = "xyz", model = "m@2" }:finish() }
  lu.assertEquals(column(data((page_at(path .. "#ab")), "rows"), "id"), { "abc" })
  lu.assertEquals(column(data((page_at(path, { model = "m@2" })), "rows"), "id"), { "xyz" })
  local none, problem = render.file(path, dir .. "/x.html", { model = "other" })
  lu.assertEquals({ none, problem.code }, { nil, "notfound" })
end

-- A failed attempt that was made again is not another trial, and what has no score is in no mean.
function M.test_figures_count_the_last_attempt_of_a_place()
  local function row(slot, attempt, reward, status) return { slot = slot, attempt = attempt, task = slot:sub(1, 1), reward = reward, status = status, model = "m" } end
  local all = figures.of({ row("a/0", 0, nil, "error"), row("a/0", 1, 1, "success"), row("a/1", 0, 0, "failed"), row("b/0", 0, nil, "error") }).all
  lu.assertEquals({ all.rollouts, all.unscored, all.solved, all.success.value, all.reward.value }, { 3, 1, 1, 0.5, 0.5 })
  lu.assertEquals({ all.pass[1].k, all.pass[1].value, all.pass[2].k, all.pass[2].value }, { 1, 0.5, 2, 1.0 })
end

return M
