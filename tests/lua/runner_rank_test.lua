--- Groups whose members are compared with each other before anybody trains on them.
local err = require "agentbox.err"
local export = require "agentbox.export"
local fs = require "agentbox.fs"
local json = require "agentbox.json"
local lu = require "luaunit"
local model = require "agentbox.model"
local os_ = require "agentbox.sys.os"
local runner = require "agentbox.runner"
local traj = require "agentbox.traj"
local verify = require "agentbox.verify"
local runs = dofile((arg[0]:gsub("lua/[^/]*$", "support/runs.lua")))

local M = {}

-- Members that say a, b, b, d, and all have the same reward from their verifier.
local WORDS = { [0] = "alpha", "beta", "beta", "delta" }

local function agent() return runs.by_member(function(_, index) return WORDS[index] end) end

-- A judge that scores what it is shown by a table, in the order that it was shown.
local function judge_of(scores, change)
  local seen = {}
  return model.fn(function(request)
    local prompt, list = request.messages[2].content, json.array {}
    seen[#seen + 1] = prompt
    for n, body in prompt:gmatch "Attempt (%d+):\n(<trajectory.-</trajectory)" do
      for word, score in pairs(scores) do
        if body:find(word, 1, true) then list[#list + 1] = { trajectory_id = n, score = score, explanation = word } end
      end
    end
    if change then list = change(list) end
    if not list then return nil, err.new("model", "the judge's server is away") end
    return json.encode { scores = list }
  end), seen
end

local function start(judge, opts)
  local all = { tasks = { runs.task "t" }, group_size = 4, models = { agent = agent(), judge = judge }, rank = { rubric = "R" } }
  for key, value in pairs(opts or {}) do all[key] = value end
  all.sandbox, all.retry_wait_s = { backend = "none" }, 0
  return assert(runner.start(all))
end

local SCORES = { alpha = 0.1, beta = 0.5, delta = 0.9 }

function M.test_rewards_are_what_the_comparison_gives()
  local judge, seen = judge_of(SCORES)
  local run = start(judge)
  local groups, rewards = {}, nil
  for group in run:groups() do
    groups[#groups + 1] = group
    local list = assert(group:trajectories())
    lu.assertEquals({ list[4].reward, list[4].independent, list[4].scored }, { 0.9, 1.0, true })
    rewards = group.rewards
    assert(run:ack(group))
  end
  run:close()
  lu.assertEquals({ table.unpack(rewards) }, { 0.1, 0.5, 0.5, 0.9 })
  lu.assertEquals({ groups[1].zero_signal, #groups, groups[1].ranking.distinct }, { false, 1, 3 })
  lu.assertEquals({ table.unpack(groups[1].independent) }, { 1.0, 1.0, 1.0, 1.0 })
  lu.assertEquals({ table.unpack(groups[1].outcomes) }, { 1.0, 1.0, 1.0, 1.0 })
  lu.assertEquals(select(2, seen[1]:gsub("Attempt %d", "")), 3) -- the two that are equal are shown once
  lu.assertEquals(select(2, seen[1]:gsub("%[system%]", "")), 1) -- and so is what all begin with
end

-- Symptom 39, and what RULER does by position: numbers decide, and an answer that names them wrongly is none.
function M.test_s39_a_ranking_that_fails_drops_the_group_unscored()
  local wrong = {
    ["no score for"] = function(list) table.remove(list); return list end,
    ["two scores for"] = function(list) list[2].trajectory_id = list[1].trajectory_id; return list end,
    ["which was not shown"] = function(list) list[1].trajectory_id = "9"; return list end,
    ["not from 0 to 1"] = function(list) list[1].score = 70; return list end,
    ["no scores"] = function() return json.null end,
    ["server is away"] = function() return nil end,
  }
  for text, change in pairs(wrong) do
    local why
    local run = start((judge_of(SCORES, change)), { on_event = function(kind, fields)
      if kind == "group" then why = fields.dropped end
    end })
    lu.assertEquals(#runs.gather(run), 0)
    local facts = run.tally.groups
    lu.assertEquals({ facts.closed, facts.dropped }, { 1, 1 }, text)
    lu.assertStrContains(why, "the ranking failed")
    lu.assertStrContains(why, text)
    run:close()
  end
end

function M.test_positions_do_not_matter()
  local run = start((judge_of(SCORES, function(list)
    local turned = json.array {}
    for i = #list, 1, -1 do turned[#turned + 1] = list[i] end
    return turned
  end)), { rank = { rubric = "R", votes = 3 } })
  local groups = runs.gather(run)
  lu.assertEquals({ table.unpack(groups[1].rewards) }, { 0.1, 0.5, 0.5, 0.9 })
  lu.assertEquals(#groups[1].ranking.votes, 3)
end

local function ranked_run(dir, judge, opts)
  local all = { out = dir, run_id = "r", agentbox_json = false }
  for key, value in pairs(opts or {}) do all[key] = value end
  return start(judge, all)
end

function M.test_what_is_stored_and_what_is_exported()
  local dir <close> = runs.tmp()
  local run = ranked_run(dir.path, (judge_of(SCORES)))
  runs.gather(run)
  for t in traj.each(dir.path .. "/r") do lu.assertEquals(t.reward, 1.0) end -- the record is what each verifier said
  local function rewards(filter)
    local out = {}
    assert(export.convert { input = dir.path .. "/r", format = "art", out = dir.path .. "/g.jsonl", filter = filter })
    for _, t in ipairs(json.decode((assert(fs.read(dir.path .. "/g.jsonl")))).trajectories) do
      out[#out + 1] = { t.reward, t.metrics.independent_reward }
    end
    table.sort(out, function(a, b) return a[1] < b[1] end) -- members are recorded as they end
    return out
  end
  lu.assertEquals(rewards(), { { 0.1, 1.0 }, { 0.5, 1.0 }, { 0.5, 1.0 }, { 0.9, 1.0 } })
  lu.assertEquals(rewards { best = 1 }, { { 0.9, 1.0 } })
  lu.assertEquals(rewards { max_reward = 0.2 }, { { 0.1, 1.0 } })
  local report = assert(require "agentbox.store.stats".of(dir.path .. "/r")):report()
  lu.assertEquals({ report.ranked, report.scored, report.reward.mean, report.reward.max }, { 4, 4, 0.5, 0.9 })
  local pipe <close> = assert(io.popen(("/proc/%d/exe traj list --json %s/r"):format(os_.pid(), dir.path)))
  local listed = {}
  for line in pipe:lines() do
    local row = json.decode(line)
    listed[#listed + 1] = { row.reward, row.independent }
  end
  table.sort(listed, function(a, b) return a[1] < b[1] end)
  lu.assertEquals(listed, rewards())
end

function M.test_a_group_whose_ranking_failed_is_exported_as_unscored()
  local dir <close> = runs.tmp()
  runs.gather(ranked_run(dir.path, (judge_of(SCORES, function() return nil end))))
  local result = assert(export.convert { input = dir.path .. "/r", format = "openai", out = dir.path .. "/x.jsonl" })
  lu.assertEquals({ result.written, #result.skipped, result.skipped[1].reason }, { 0, 4, "unscored" })
  local report = assert(require "agentbox.store.stats".of(dir.path .. "/r")):report()
  lu.assertEquals({ report.ranked, report.scored, report.unscored }, { 4, 0, 4 })
end

function M.test_a_run_that_ends_meanwhile_ranks_again()
  local dir <close> = runs.tmp()
  local run
  run = ranked_run(dir.path, model.fn(function()
    run:stop "in the middle of it"
    require("agentbox.async").sleep(60)
  end))
  run:wait()
  lu.assertEquals(run.tally.groups.closed, 0)
  run = ranked_run(dir.path, (judge_of(SCORES)), { resume = true })
  local groups = runs.gather(run)
  lu.assertEquals({ #groups, groups[1].rewards[4], run.tally.kept }, { 1, 0.9, 4 })
end

function M.test_a_function_of_the_lab_ranks()
  local function by_length(group)
    local out = {}
    for _, t in ipairs(group.trajectories) do out[t.id] = #t.messages[#t.messages].content end
    return out, { name = "length" }
  end
  local groups = runs.gather(start(nil, { rank = by_length }))
  lu.assertEquals({ table.unpack(groups[1].rewards) }, { 5.0, 4.0, 4.0, 5.0 })
  lu.assertEquals(groups[1].ranking.name, "length")
  for _, bad in ipairs {
    function() error "broken" end, function() return { x = 1 } end, function(g) return { [g.trajectories[1].id] = 0 / 0 } end,
  } do
    local run = start(nil, { rank = bad })
    lu.assertEquals({ #runs.gather(run), run.tally.groups.dropped }, { 0, 1 })
  end
end

function M.test_options()
  local run, problem = runner.start { tasks = { runs.task "t" }, group_size = 2, model = { "x" }, rank = { votes = 0 } }
  lu.assertNil(run)
  lu.assertStrContains(problem.msg, "rank: votes")
  run, problem = runner.start { tasks = { runs.task "t" }, model = { "x" }, rank = {} }
  lu.assertNil(run)
  lu.assertStrContains(problem.msg, "rank is about groups")
  lu.assertErrorMsgContains("unknown key", verify.ranking, { rubrik = "" })
end

return M
