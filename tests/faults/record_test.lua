--- Records of real rollouts in real sandboxes: what must never get into them, and what must always.
local lu = require "luaunit"
local ab = require "agentbox"

local here = arg[0]:match "^(.*)/[^/]*$"
local task = assert(ab.task.load(here .. "/../../tasks/fix_fizzbuzz"))

local M = {}
local dir

function M.setUp() dir = assert(ab.fs.tmpdir "agentbox-record") end

function M.tearDown() assert(ab.fs.remove(dir, true)) end

local function run(turns, opts)
  opts = opts or {}
  opts.task, opts.model = opts.task or task, ab.model.scripted(turns)
  return assert(ab.rollout.run(opts))
end

local function command(text)
  return { tool_calls = { { name = "run_command", arguments = { command = text } } } }
end

local function stored(t)
  local store <close> = assert(ab.store.open(dir, { run_id = t.run_id }))
  assert(store:append(t))
  return assert(ab.traj.load(store.run_dir))
end

local function all_bytes(path, into)
  for _, entry in ipairs(assert(ab.fs.list(path))) do
    local child = path .. "/" .. entry.name
    if entry.type == "dir" then all_bytes(child, into) else into[#into + 1] = assert(ab.fs.read(child)) end
  end
  return into
end

function M.test_a_secret_that_the_agent_echoes_is_nowhere()
  local key = "sk-live-" .. ab.rand.uuid4()
  ab.secret.new(key)
  local t = run({
    command("echo " .. key .. " max_tokens token; echo " .. key .. " >&2; exit 7"), "The key is " .. key,
  }, { metadata = { note = key } })
  stored(t)
  local text = table.concat(all_bytes(dir, {}), "\n")
  lu.assertNil(text:find(key, 1, true))
  lu.assertStrContains(text, "*** max_tokens token")
end

function M.test_output_of_every_byte_is_recorded_as_text()
  local t = stored(run { command [[printf 'a\377\000\033[2J\342\200\250b  \n\n']], "done  \n\n " })
  lu.assertStrContains(t.messages[4].content, "a\u{FFFD}\0\27[2J\u{2028}b  \n\n")
  lu.assertEquals(t.messages[5].content, "done  \n\n ")
  lu.assertEquals(require "agentbox.record.check".check(t.line), {})
  lu.assertEquals(#t.line.errors, 0)
end

function M.test_exit_status_and_times_of_a_tool_are_real()
  local t = stored(run { command "sleep 0.2; exit 7", "done" })
  local record = ab.json.decode(ab.json.encode((require "agentbox.formats.agentbox".convert(t)))).tool_call_records[1]
  lu.assertEquals({ t.line.tool_runs[1].exit, record.is_error }, { 7, true })
  lu.assertTrue(record.duration_s >= 0.2)
end

function M.test_artifacts_are_byte_equal()
  local with = { task_id = "patch", description = "d", files = { ["a.txt"] = "a\n" }, artifacts = { "*.diff", "*.bin" },
                 verifier = { type = "command", command = "true" } }
  local t = stored(run({ command [[printf 'end of a diff\n' >out.diff; printf '\000\377' >b.bin; mkfifo x.diff]], "done" },
    { task = with }))
  lu.assertEquals(t:artifact "out.diff", "end of a diff\n")
  lu.assertEquals(t:artifact "b.bin", "\0\xff")
end

function M.test_requests_of_a_real_rollout_are_rebuilt()
  local t = stored(run { command "ls", command "cat fizzbuzz.py", "done" })
  local n = 0
  for call in t:calls() do
    n = n + 1
    lu.assertNotNil(call.request.params, "stored verbatim")
    local sent = assert(ab.json.decode(assert(t:body(call, "request"))))
    lu.assertEquals(#sent.messages, 2 * n)
  end
  lu.assertEquals(n, 3)
end

function M.test_a_replay_of_the_record_is_the_same()
  local first = run { command "ls", "done" }
  local again = assert(ab.rollout.run { task = task, model = assert(ab.model.replay { traj = stored(first) }) })
  lu.assertEquals(ab.json.encode(again.messages), ab.json.encode(first.messages))
  lu.assertEquals(again.final_status, first.final_status)
end

function M.test_the_modules_of_a_lab_are_named()
  local overlay = dir .. "/lab/agentbox/tools"
  assert(ab.fs.mkdir(overlay, true))
  assert(ab.fs.write(overlay .. "/hello.lua", [[
    return require("agentbox.tool").define { api = 1, name = "hello", description = "d", run = function() return "hi" end }
  ]]))
  local t = run({ { tool_calls = { { name = "hello", arguments = {} } } }, "done" },
    { custom_tools = { overlay .. "/hello.lua" } })
  local found
  for _, module in ipairs(stored(t).line.modules) do
    if module.name == "hello" then found = module end
  end
  lu.assertEquals(found.from, overlay .. "/hello.lua")
  lu.assertStrMatches(found.hash, "sha256:" .. ("%x"):rep(64))
end

function M.test_b124_a_group_is_what_was_asked_for_and_nothing_lost_is_a_zero()
  local store <close> = assert(ab.store.open(dir .. "/run", { run_id = "g" }))
  local fails = ab.model.fn(function() return nil, ab.err.new("network", "connection refused") end)
  local members = {
    {}, { model = fails }, { max_steps = 0 }, {}, -- and one that is in flight when the engine is killed
  }
  local solve = { command "touch solved", "done" }
  for i, opts in ipairs(members) do
    opts.task = { task_id = "t", description = "d", verifier = { command = "test -f solved" } }
    opts.id, opts.run_id, opts.group = "g-" .. i, "g", { id = "g1", index = i - 1, size = 5 }
    opts.model = opts.model or ab.model.scripted(solve)
    assert(store:append(assert(ab.rollout.run(opts))))
  end
  local out = dir .. "/groups.jsonl"
  local result = assert(ab.export.convert { input = store.run_dir, format = "art", out = out })
  lu.assertEquals({ result.written, #result.skipped }, { 2, 2 })
  local group = ab.json.decode(assert(ab.fs.read(out)))
  lu.assertEquals({ #group.trajectories, group.trajectories[1].reward, group.trajectories[2].reward }, { 2, 1.0, 1.0 })
  local types = {}
  for i, exception in ipairs(group.exceptions) do types[i] = exception.type end
  lu.assertEquals(types, { "agentbox.model_server.model_error", "agentbox.policy.max_turns", "agentbox.lost" })
  lu.assertStrContains(group.exceptions[2].message, "nothing in it is trainable")
  lu.assertStrContains(group.exceptions[3].message, "1 of the 5 rollouts")
  local ok, problem = ab.export.convert { input = store.run_dir, format = "art", out = dir .. "/x.jsonl", options = { min_group = 3 } }
  lu.assertNil(ok)
  lu.assertStrContains(problem.msg, "group g1 has 2 trajectories, fewer than min_group=3: agentbox.model_server.model_error")
  lu.assertFalse(ab.fs.exists(dir .. "/x.jsonl"))
  assert(ab.export.convert { input = store.run_dir, format = "art", out = dir .. "/x.jsonl", options = { min_group = 2 } })
end

return M
