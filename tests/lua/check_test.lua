--- traj check: each rule is broken once, in a line with a right sum, and must be named.
local lu = require "luaunit"
local check = require "agentbox.store.check".check
local frame = require "agentbox.store.frame"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local store = require "agentbox.store"
local made = dofile((arg[0]:gsub("lua/[^/]*$", "support/rollouts.lua")))

local M = {}
local dir

function M.setUp() dir = assert(fs.tmpdir "agentbox-check") end

function M.tearDown() assert(fs.remove(dir, true)) end

local function segment() return dir .. "/r/trajectories-00000.jsonl" end

local function write(...)
  local s <close> = assert(store.open(dir, { run_id = "r", agentbox_json = false }))
  for _, t in ipairs { ... } do assert(s:append(t)) end
end

local function sample(opts) return made.sample(opts, { tokens = true }):finish() end

local function lines()
  local list = {}
  for line in io.lines(segment()) do list[#list + 1] = json.decode((frame.read(line))) end
  return list
end

local function save(list)
  local texts = {}
  for i, line in ipairs(list) do texts[i] = frame.close(json.encode(line)) end
  assert(fs.write(segment(), table.concat(texts)))
end

local function rules(report)
  local list = {}
  for i, problem in ipairs(report.problems) do list[i] = tostring(problem.rule) end
  return table.concat(list, " ")
end

local function set(line, path, value)
  local at, last = line, nil
  for key in path:gmatch "[^.]+" do
    if last then at = at[last] end
    last = tonumber(key) or key
  end
  at[last] = value
end

-- What is changed in a record of two calls with tokens (3 + 3 and 8 + 2 ids), and the rules that it breaks.
local BREAKS = {
  { "calls.1.tokens.lp", { -1, -2 }, "1" },
  { "calls.1.tokens.lp", { -1, -9999.0, -1 }, "1" },
  { "calls.1.tokens.lp", { -1, 0.5, -1 }, "1" },
  { "calls.2.tokens.prompt.keep", 7, "2" },
  { "calls.2.tokens.prompt.keep", 4, "3" },
  { "calls.2.tokens.prompt.tail", { 22 }, "2", { "calls.2.tokens.prompt.keep", 4 } },
  { "calls.2.tokens.n_out", 3, "1 11 2" },
  { "calls.2.tokens.drift", "fork", "3" },
  { "calls.1.i", 1, "12" },
  { "nodes.3.c", 1, "5" },
  { "nodes.5.o", "injected", "5 5" },
  { "nodes.4.m.tool_call_id", "c9", "6 7" },
  { "nodes.2.m.content", "Make run.sh exit 1.", "7 7" },
  { "nodes.3.m.content", "sampled", "7" },
  { "calls.1.response.body.id", "other", "7" },
  { "tools.1.type", "other", "7 7" },
  { "reward.scored", false, "8 9" },
  { "reward.value", json.null, "8" },
  { "stop.class", "sandbox", "8 9" },
  { "status", "cancelled", "9" },
  { "use.why", { "unscored" }, "9" },
  { "use.rl", false, "9" },
  { "finished", 1.0, "10" },
  { "calls.1.t", { 3, 2, 1 }, "10 10" },
  { "policy.version_min", 13, "11" },
  { "calls.1.versions.1.n", 2, "11" },
  { "attempt", 1, "13" },
  { "status", "running", "b" },
  { "stop.reason", "boredom", "b" },
  { "stop.class", "weather", "8 b" },
  { "nodes.5.r", 0, "f" },
  { "nodes.4.r", 3, "f" },
}

function M.test_each_broken_rule_is_named()
  for i, case in ipairs(BREAKS) do
    assert(fs.remove(dir .. "/r", true))
    write(sample { id = "a" })
    lu.assertEquals(assert(check(dir)).problem_count, 0)
    local list = lines()
    local value = type(case[2]) == "table" and json.array(case[2]) or case[2]
    set(list[1], case[1], value)
    if case[4] then set(list[1], case[4][1], case[4][2]) end
    save(list)
    lu.assertEquals(rules(assert(check(dir))), case[3], ("case %d: %s"):format(i, case[1]))
  end
end

function M.test_a_call_that_was_executed_twice()
  write(sample { id = "a" })
  local list = lines()
  list[1].tool_runs[2] = list[1].tool_runs[1]
  save(list)
  lu.assertEquals(rules(assert(check(dir))), "f")
end

function M.test_artifacts_and_blobs()
  local ro = made.new { id = "a" }
  ro:reply(made.object("role", "assistant", "content", "ok"), { raw_response = "two\nlines" })
  write(ro:finish { artifacts = { ["a.txt"] = "kept" } })
  lu.assertEquals(assert(check(dir)).problem_count, 0)
  for _, folder in ipairs(assert(fs.list(dir .. "/r/blobs"))) do
    for _, blob in ipairs(assert(fs.list(dir .. "/r/blobs/" .. folder.name))) do
      assert(fs.write(("%s/r/blobs/%s/%s"):format(dir, folder.name, blob.name), "other"))
    end
  end
  lu.assertEquals(rules(assert(check(dir))), "7 d")
end

-- A request that is not the path byte for byte is kept as it was sent; its messages are compared one by one.
function M.test_messages_that_were_sent()
  local function sent(second)
    assert(fs.remove(dir .. "/r", true))
    local ro = made.new { id = "a" }
    ro.sent[2] = second
    ro:reply(made.object("role", "assistant", "content", "ok"))
    write(ro:finish())
    lu.assertStrContains(assert(fs.read(segment())), '"request":{"body":')
    return rules(assert(check(dir)))
  end
  lu.assertEquals(sent(made.object("content", "Make run.sh exit 0.", "role", "user", "name", json.null)), "")
  lu.assertEquals(sent(made.object("role", "user", "content", "Make run.sh exit 1.")), "7")
  lu.assertEquals(sent(nil), "7")
end

function M.test_lines_behind_a_damaged_one_are_read()
  write(sample { id = "a" }, sample { id = "b" })
  assert(fs.write(segment(), (assert(fs.read(segment())):gsub("Fixed", "Mixed", 1))))
  local report = assert(check(dir))
  lu.assertEquals({ rules(report), report.trajectories }, { "12", 1 })
  lu.assertStrContains(report.problems[1].where, ":1")
end

function M.test_ids_and_attempts()
  write(sample { id = "a" }, sample { id = "b" })
  local list = lines()
  list[2].id = "a"
  save(list)
  local report = assert(check(dir))
  lu.assertEquals({ rules(report), report.repeated_ids.count }, { "13", 0 })
  list[2].attempt = 1
  save(list)
  lu.assertEquals(rules(assert(check(dir))), "")
  list[2].attempt = 2
  save(list)
  lu.assertEquals(rules(assert(check(dir))), "13")
end

-- (b): what the run said that it had recorded is there.
function M.test_rollouts_without_a_line()
  do
    local s <close> = assert(store.open(dir, { run_id = "5f0c1a2b3c4d", agentbox_json = false }))
    assert(s:append(sample { id = "a" }))
    assert(s:event("rollout", { id = "a", segment = 0, offset = 0 }))
    assert(s:event("rollout", { id = "never began" }))
  end
  lu.assertEquals(assert(check(dir)).problems, {})
  do
    local s <close> = assert(store.open(dir, { run_id = "5f0c1a2b3c4d" }))
    assert(s:event("rollout", { id = "b", segment = 0, offset = 9 }))
  end
  local report = assert(check(dir))
  lu.assertEquals({ rules(report), report.problems[1].id }, { "b", "b" })
end

function M.test_groups()
  do
    local s <close> = assert(store.open(dir, { run_id = "5f0c1a2b3c4d", agentbox_json = false }))
    for _, id in ipairs { "a", "b", "c" } do assert(s:append(sample { id = id })) end
    assert(s:group { id = "g1", members = { "a", "b" } })
    assert(s:group { id = "g2", members = { "c" } })
    assert(s:ack(2))
  end
  local report = assert(check(dir))
  lu.assertEquals({ report.problem_count, report.groups }, { 0, 2 })
  local run_dir = dir .. "/5f0c1a2b3c4d"
  local function rewrite(change)
    local texts = {}
    for line in io.lines(run_dir .. "/groups.jsonl") do
      local group = json.decode((frame.read(line)))
      change(group)
      texts[#texts + 1] = frame.close(json.encode(group))
    end
    local before = assert(fs.read(run_dir .. "/groups.jsonl"))
    assert(fs.write(run_dir .. "/groups.jsonl", table.concat(texts)))
    local found = assert(check(dir)).problems
    assert(fs.write(run_dir .. "/groups.jsonl", before))
    local msgs = {}
    for i, problem in ipairs(found) do msgs[i] = problem.rule .. " " .. problem.msg end
    return table.concat(msgs, "; ")
  end
  lu.assertEquals(rewrite(function(g) g.id = "g1" end), "13 a group with this id was closed before")
  lu.assertEquals(rewrite(function(g) g.members = { "a" } end), "13 its member a was delivered in group g1")
  lu.assertEquals(rewrite(function(g) g.members = { g.id } end), "13 its member g1 has no line; 13 its member g2 has no line")
  lu.assertEquals(rewrite(function(g) g.seq = 1 end), "13 it is number 2 and says 1")
  assert(fs.write(run_dir .. "/cursor.json", '{"acknowledged":3}'))
  lu.assertStrContains(assert(check(dir)).problems[1].msg, "acknowledges 3 of 2")
  assert(fs.write(run_dir .. "/groups.jsonl", (assert(fs.read(run_dir .. "/groups.jsonl")):gsub('"c"', '"d"'))))
  lu.assertEquals(assert(check(dir)).problems[1].rule, 12)
end

function M.test_why_trajectories_are_kept_from_training()
  local unscored = made.sample({ id = "b" }, { tokens = true }):finish {
    status = "failed", stop = { reason = "sandbox_error", class = "sandbox" }, reward = { scored = false },
  }
  write(sample { id = "a" }, unscored, made.sample({ id = "c" }):finish())
  local seen = {}
  local report = assert(check(dir, { on_removed = function(t, why) seen[t.id] = table.concat(why, ", ") end }))
  lu.assertEquals(report.trainable, 1)
  lu.assertEquals({ report.removed["unscored"], report.removed["class:sandbox"], report.removed["no token ids from the server"] }, { 1, 1, 1 })
  lu.assertEquals(seen, { b = "unscored, class:sandbox", c = "no token ids from the server" })
end

function M.test_the_token_ledger()
  local ledger = require "agentbox.store.ledger"
  local ro = made.new { id = "a" }
  local function reply(prompt, out)
    local lp = {}
    for i = 1, #out do lp[i] = -0.5 end
    ro:reply(made.object("role", "assistant", "content", "x"), { tokens = { prompt = prompt, out = out, lp = lp } })
  end
  reply({ 1, 2, 3 }, { 4, 5 })
  reply({ 1, 2, 3, 4, 5, 6 }, { 7, 8 })      -- goes on
  reply({ 1, 2, 3, 4, 5, 6, 7, 9, 9 }, { 10 }) -- the second output came back changed
  reply({ 1, 3 }, { 11 })                    -- another conversation
  reply({ 5, 5 }, { 12 })                    -- with nothing in common
  local t = ro:finish()
  write(t)
  local entries, found = ledger.of(lines()[1])
  lu.assertEquals(found, {})
  local drift, keep = {}, {}
  for i, entry in ipairs(entries) do drift[i], keep[i] = entry.drift, entry.keep end
  lu.assertEquals({ drift, keep }, { { "first", "clean", "realign", "fork", "fork" }, { 0, 5, 7, 1, 0 } })
  local report = assert(check(dir))
  lu.assertEquals(report.problem_count, 0)
  lu.assertEquals({ report.drift.clean, report.drift.realign, report.drift.fork, report.drift.first }, { 1, 1, 2, 1 })
  lu.assertAlmostEquals(report.drift_rate, 3 / 4, 1e-12)
  lu.assertEquals({ report.drift_by_task["t-17"].calls, report.drift_by_task["t-17"].drifted }, { 4, 3 })
  lu.assertEquals({ report.common, report.prompt }, { 13, 3 + 6 + 9 + 2 + 2 })
end

function M.test_weights_that_fall_behind()
  write(sample { id = "a", model = "fixer@12" }, sample { id = "b", model = "fixer@15" }, sample { id = "c", model = "fixer@13" })
  local report = assert(check(dir))
  lu.assertEquals({ report.lag["0"], report.lag["2"] }, { 2, 1 })
end

function M.test_more_problems_than_are_listed()
  local module = require "agentbox.store.check"
  local before = module.MAX_LISTED
  module.MAX_LISTED = 1
  write(sample { id = "a" }, sample { id = "b" })
  local list = lines()
  for _, line in ipairs(list) do line.finished = 1.0 end
  save(list)
  local report = check(dir)
  module.MAX_LISTED = before
  lu.assertEquals({ #report.problems, report.problem_count, report.by_rule["10"] }, { 1, 2, 2 })
end

return M
