--- What reaches a trainer when tokens or rewards go wrong on the way: faults B89, B91 and B126, and the symptoms 19 to 23 that trainers'
--- users told of. 39 is in rewards_test.lua, runner_rank_test.lua and rescore_test.lua; B94 in scale_test.lua; B118 and B121 in verify_test.lua,
--- B123 in agent_test.lua, B124 in record_test.lua, B120 (who looks for the answer in a history is named) and B127 (drift, by gates) with suites
--- and factories. B92 and B95 are about a recording gateway, of which there is none.
local lu = require "luaunit"
local ab = require "agentbox"

local here = arg[0]:match "^(.*/)" or "./"
local fakellm = dofile(here .. "../support/fakellm.lua")
local made = dofile(here .. "../support/rollouts.lua")
local runs = dofile(here .. "../support/runs.lua")

local M = {}
local dir

function M.setUp() dir = assert(ab.fs.tmpdir "agentbox-trainer") end

local function tearDown() assert(ab.fs.remove(dir, true)) end
M.tearDown = tearDown

local function export(format, options, name)
  local out = ("%s/%s"):format(dir, name or "out.jsonl")
  local result, problem = ab.export.convert { input = dir .. "/r", format = format, out = out, options = options }
  local rows = {}
  for line in (ab.fs.read(out) or ""):gmatch "[^\n]+" do rows[#rows + 1] = ab.json.decode(line) end
  return result, problem, rows
end

-- ---------------------------------------------------------------- tokens

local CALL = { tool_calls = { { name = "run_command", arguments = { command = "true" } } } }

local function answer(step, tokens)
  local out = { token_ids = tokens, logprobs = tokens }
  for key, value in pairs(step) do out[key] = value end
  return out
end

-- A rollout against a server that sends tokens with its first answer, and something else with the second.
local function rollout(second, tokens)
  local fake = fakellm.script { steps = { answer(CALL, 3), second, answer({ content = "done" }, 2) } }
  local t = assert(ab.rollout.run {
    task = runs.task "t", id = "g/0", run_id = "r", group = { id = "g", index = 0, size = 1 }, sandbox = { backend = "none" },
    model = ab.model.open { model = "m", base_url = fake.url, tokens = tokens, max_tries = 1 },
  })
  local store <close> = assert(ab.store.open(dir, { run_id = "r" }))
  assert(store:append(t))
  return t, fake
end

function M.test_b89_a_turn_without_log_probs_is_not_trained_on_and_is_named()
  local t = rollout(answer({ tool_calls = CALL.tool_calls, logprobs = 0 }, nil))
  lu.assertIsFalse(t.line.use.rl)
  lu.assertEquals(t.line.use.why[1], "call 1: no token ids from the server")
  local result, _, rows = export("art", { tokens = "require" })
  lu.assertEquals({ result.written, #rows }, { 0, 0 })
  lu.assertStrContains(result.skipped[1].reason, "call 1 has no token ids")
  result = export("trl", {}, "trl.jsonl")
  lu.assertEquals(result.written, 0)
  lu.assertStrContains(result.skipped[1].reason, "call 1: no token ids from the server")
  lu.assertStrContains(ab.export.report("trl", result), "skipped 1: not for training on tokens")
end

function M.test_b89_a_run_that_needs_tokens_ends_such_a_rollout_as_the_servers_failure()
  local t = rollout({ content = "done" }, "require")
  lu.assertEquals({ t.scored, t.failure_class, t.stop_reason }, { false, "model_server", "model_error" })
  lu.assertStrContains(t.error, "the server sent no token ids and log-probs")
end

-- Ids whose log-probs are missing, or fewer: what a server did that was asked for `top_logprobs: null`.
function M.test_b89_ids_without_a_log_prob_each_are_no_evidence()
  for i, second in ipairs { { token_ids = 4, logprobs = 3 }, { token_ids = 3 }, { token_ids = 3, logprobs = 0 } } do
    second.tool_calls = CALL.tool_calls
    local t, fake = rollout(second)
    lu.assertIsFalse(t.line.use.rl, i)
    lu.assertStrContains(t.line.use.why[1], "call 1: ")
    local result, _, rows = export("verl", {}, i .. ".jsonl")
    lu.assertEquals({ result.written, #rows }, { 0, 0 }, i)
    for _, request in ipairs(fake.log()) do lu.assertNil(request.body.top_logprobs) end
    tearDown()
    M.setUp()
  end
end

-- A server that stopped sending tokens ends the run, in so many words, instead of a training that learns nothing.
function M.test_b89_a_run_of_such_rollouts_stops()
  local fake = fakellm.script { steps = { { content = "done" } } }
  local run = runs.start { tasks = runs.tasks(40), group_size = 4, attempts = 1, concurrency = 1, out = dir, run_id = "r", agentbox_json = false,
    model = ab.model.open { model = "m", base_url = fake.url, tokens = "require", max_tries = 1 } }
  lu.assertErrorMsgContains("the server sent no token ids", runs.gather, run)
  local sum = run:wait()
  lu.assertEquals({ sum.scored, sum.unscored }, { 0, 16 })
  run:close()
end

function M.test_b91_sampled_text_is_never_changed()
  local text = " \t first  \r\n\n```\nx \n```\n\n  "
  local fake = fakellm.script { steps = { answer({ content = text, tool_calls = CALL.tool_calls }, 2), answer({ content = "end\n\n  " }, 2) } }
  local t = assert(ab.rollout.run {
    task = runs.task "t", id = "g/0", run_id = "r", sandbox = { backend = "none" },
    model = ab.model.open { model = "m", base_url = fake.url },
  })
  do
    local store <close> = assert(ab.store.open(dir, { run_id = "r" }))
    assert(store:append(t))
  end
  lu.assertEquals(fake.log()[2].body.messages[3].content, text)
  for format, of in pairs {
    openai = function(row) return row.messages[3].content end, ["prompt-completion"] = function(row) return row.completion[1].content end,
    canonical = function(row) return row.nodes[3].m.content end,
    verifiers = function(row) return row.traces[1].nodes[3].message.content end,
    art = function(row) return row.trajectories[1].messages_and_choices[3].message.content end,
  } do
    local _, _, rows = export(format, {}, format .. ".jsonl")
    lu.assertEquals(of(rows[1]), text, format)
  end
  local last = t.messages[#t.messages].content
  lu.assertEquals(last, "end\n\n  ")
end

-- ---------------------------------------------------------------- groups

local function by_index(rewards)
  return function(ev) return rewards[tonumber(ev.traj.messages[#ev.traj.messages].content)] end
end

local function start(opts)
  local all = { tasks = runs.tasks(1), group_size = 4, out = dir, run_id = "r", agentbox_json = false,
    model = runs.by_member(function(_, index) return tostring(index) end) }
  for key, value in pairs(opts) do all[key] = value end
  return runs.start(all)
end

function M.test_s19_surplus_is_asked_for_and_its_cost_is_told()
  local run = start { oversample = 2, concurrency = 6, verifier = function() return 1.0 end }
  local groups = runs.gather(run)
  local sum = run:wait()
  lu.assertEquals({ #groups, #groups[1].members, groups[1].size }, { 1, 4, 4 })
  lu.assertEquals({ groups[1].waste.rollouts, sum.waste.rollouts }, { 2, 2 })
  lu.assertStrContains(table.concat(require "agentbox.cli._summary".lines(sum), "\n"), "2 rollouts")
end

-- The raw outcomes decide, all of them and exactly: not rewards with penalties in them, not floats that nearly agree.
function M.test_s20_signal_is_a_difference_of_raw_outcomes()
  local long = runs.by_member(function(_, index, request)
    if index == 0 and #request.messages < 4 then return { tool_calls = { { name = "run_command", arguments = { command = "true" } } } } end
    return tostring(index)
  end)
  local run = start { model = long, agent = { step_penalty = 0.1 }, verifier = by_index { [0] = 1.0, 1.0, 1.0, 1.0 } }
  local group = runs.gather(run)[1]
  lu.assertIsTrue(group.zero_signal)
  lu.assertNotEquals(group.rewards[1], group.rewards[2])
  run = start { run_id = "s", verifier = by_index { [0] = 0.3, 0.1 + 0.2, 0.3, 0.3 } }
  lu.assertIsFalse(runs.gather(run)[1].zero_signal)
  lu.assertEquals(run:wait().groups.zero_signal, 0)
end

local function unscored(indexes)
  return function(ev)
    local index = tonumber(ev.traj.messages[#ev.traj.messages].content)
    if indexes[index] then return nil, "cannot be judged" end
    return index / 4
  end
end

function M.test_s21_a_group_says_how_many_it_delivers_and_exports_agree()
  local run = start { attempts = 1, verifier = unscored { [1] = true, [2] = true } }
  local group = runs.gather(run)[1]
  lu.assertEquals({ group.size, #group.members, #group.rewards, #group.outcomes, group.partial }, { 4, 2, 2, 2, true })
  local _, _, rows = export("art", {})
  lu.assertEquals({ #rows[1].trajectories, #rows[1].exceptions }, { 2, 2 })
  local sum = run:wait()
  lu.assertEquals({ sum.groups.closed, sum.groups.partial, sum.groups.dropped, sum.scored, sum.unscored }, { 1, 1, 0, 2, 2 })
end

function M.test_s21_members_that_could_not_be_scored_are_made_again_until_a_bound()
  local tries = 0
  local run = start { attempts = 3, verifier = function(ev)
    if ev.traj.messages[#ev.traj.messages].content ~= "1" then return 1.0 end
    tries = tries + 1
    if tries < 3 then return nil, "not now" end
    return 0.5
  end }
  local group = runs.gather(run)[1]
  lu.assertEquals({ #group.members, group.partial, tries }, { 4, false, 3 })
end

-- The cursor goes over what was acknowledged or dropped, and over nothing else.
function M.test_s22_what_was_not_acknowledged_comes_again()
  local run = start { tasks = runs.tasks(3), group_size = 2, concurrency = 1, verifier = function() return 1.0 end }
  local seen = {}
  for group in run:groups() do
    seen[#seen + 1] = group.id
    if #seen == 1 then assert(run:ack(group)) end
    if #seen == 3 then break end
  end
  run:close()
  local again = start { tasks = runs.tasks(3), group_size = 2, resume = true, verifier = function() return 1.0 end }
  lu.assertEquals(runs.ids(runs.gather(again)), { seen[2], seen[3] })
  lu.assertEquals(again:wait().kept, 6)
  again = start { tasks = runs.tasks(3), group_size = 2, resume = true, verifier = function() return 1.0 end }
  lu.assertEquals(#runs.gather(again), 0)
end

function M.test_s23_a_dropped_group_holds_up_nothing()
  local tasks = runs.tasks(3)
  local function judge(ev)
    if ev.task.task_id == "t1" then return nil, "cannot be judged" end
    return 1.0
  end
  local opts = { tasks = tasks, group_size = 2, concurrency = 1, attempts = 1, verifier = judge, max_errors = 10 }
  lu.assertEquals(runs.ids(runs.gather(start(opts))), { "t2", "t3" })
  lu.assertEquals(ab.json.decode(assert(ab.fs.read(dir .. "/r/cursor.json"))).acknowledged, 3)
  opts.resume = true
  local run = start(opts)
  lu.assertEquals({ #runs.gather(run), run:wait().kept }, { 0, 6 })
end

-- ---------------------------------------------------------------- rewards

-- A reward in Lua that hangs, hoards or backtracks is stopped, and is no number; what the model wrote is text to it.
function M.test_b126_a_reward_that_does_not_end_is_unscored()
  local pwned = dir .. "/pwned"
  local bad = {
    loop = function() while true do end end,
    pattern = function() return (("a"):rep(40) .. "b"):match(("a*"):rep(40) .. "c") and 1 or 0 end,
    hoard = function() return #("x"):rep(1 << 31) end,
    grows = function() local list = {} while true do list[#list + 1] = ("x"):rep(1 << 16) .. #list end end,
  }
  for name, fn in pairs(bad) do
    local t = assert(ab.rollout.run {
      task = runs.task "t", sandbox = { backend = "none" },
      model = ab.model.scripted { ("__import__('os').system('touch %s'); os.execute('touch %s')"):format(pwned, pwned) },
      verifier = { run = fn, name = name, cpu_s = 0.2, memory_mb = 64 },
    })
    lu.assertEquals({ t.scored, t.reward, t.failure_class, t.stop_reason }, { false, nil, "verifier", "scorer_error" }, name)
    lu.assertFalse(ab.fs.exists(pwned))
  end
end

-- ---------------------------------------------------------------- everything at once

function M.test_no_format_makes_a_number_of_what_has_none()
  do
    local store <close> = assert(ab.store.open(dir, { run_id = "r" }))
    for i, class in ipairs { "sandbox", "verifier", "model_server", "engine", "task" } do
      local opts = { id = "g/" .. i - 1, run_id = "r", group = { id = "g", index = i - 1, size = 5 } }
      assert(store:append(made.sample(opts, { tokens = true }):finish { status = "failed", final_status = "error",
        stop = { reason = "scorer_error", class = class }, reward = { scored = false } }))
    end
  end
  local written = {}
  for _, format in ipairs(ab.export.formats()) do
    local _, _, rows = export(format.name, {}, format.name .. ".jsonl")
    written[format.name] = #rows
    for _, row in ipairs(rows) do
      local text = ab.json.encode(row)
      lu.assertNil(text:find('"reward":%s*0') or text:find('"reward_score":%s*0') or text:find('"rewards":%[0'), format.name)
      lu.assertNil(text:find '"score":%s*0' or text:find '"value":%s*0', format.name)
    end
  end
  for name, rows in pairs { agentbox = 5, jsonl = 5, canonical = 5, verifiers = 5, trl = 0, verl = 0, slime = 0 } do
    lu.assertEquals({ name, written[name] }, { name, rows })
  end
end

return M
