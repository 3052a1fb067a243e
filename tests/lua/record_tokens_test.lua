--- Token ids and log-probs in the record: packed linearly, their drift, and what is unfit for training.
local lu = require "luaunit"
local json = require "agentbox.json"
local record = require "agentbox.record"
local made = dofile((arg[0]:gsub("lua/[^/]*$", "support/rollouts.lua")))

local M = {}

function M.test_tokens_are_packed_linearly_and_unpacked()
  local t = made.reread(made.sample(nil, { tokens = true }):finish())
  local calls = {}
  for call in t:calls { trainable = true } do calls[#calls + 1] = call end
  lu.assertEquals(calls[1].tokens.prompt, { 11, 12, 13 })
  lu.assertEquals(calls[2].tokens.prompt, { 11, 12, 13, 21, 22, 23, 31, 32 })
  lu.assertEquals(calls[2].tokens.out, { 41, 42 })
  lu.assertEquals(calls[2].tokens.lp, { -0.2, -1e-05 })
  lu.assertEquals({ calls[1].tokens.drift, calls[2].tokens.drift }, { "first", "clean" })
  lu.assertStrContains(json.encode(t.line), '"prompt":{"base":0,"keep":6,"tail":[31,32]}')
  lu.assertEquals(t.line.use.rl, true)
  lu.assertEquals(#t.line.use.why, 0)
end

local function drift_of(second)
  local ro = made.new()
  local say = made.object("role", "assistant", "content", "a")
  ro:reply(say, { tokens = { prompt = { 1, 2 }, out = { 3, 44 }, lp = { -1, -1 } } })
  ro:say(made.object("role", "user", "content", "go on"), "injected")
  ro:reply(say, { tokens = { prompt = second, out = { 9 }, lp = { -1 } } })
  local t = made.reread(ro:finish())
  local planes
  for call in t:calls() do planes = call.tokens end
  lu.assertEquals(planes.prompt, second)
  return planes.drift
end

function M.test_drift_classes()
  lu.assertEquals(drift_of { 1, 2, 3, 44, 5 }, "clean")
  lu.assertEquals(drift_of { 1, 2, 3, 44 }, "clean")
  lu.assertEquals(drift_of { 1, 2, 3, 4, 5 }, "realign")
  lu.assertEquals(drift_of { 1, 2, 3, 444 }, "realign")
  lu.assertEquals(drift_of { 1, 7, 3, 44, 5 }, "fork")
  lu.assertEquals(drift_of { 1 }, "fork")
  lu.assertEquals(drift_of { 8, 8 }, "fork")
end

function M.test_planes_that_do_not_fit_keep_the_call_from_training()
  for _, lp in ipairs { { -1 }, { -1, -9999.0 }, { -1, 0.5 } } do
    local ro = made.new()
    ro:reply(made.object("role", "assistant", "content", "a"), { tokens = { prompt = { 1 }, out = { 2, 3 }, lp = lp } })
    local t = ro:finish()
    lu.assertEquals(t.line.use.rl, false)
    lu.assertEquals(t.line.use.sft, true)
    lu.assertEquals(record.check(t.line)[1].rule, 1)
  end
end

function M.test_tokens_asked_for_and_missing_on_one_turn_are_named()
  local ro = made.new()
  local say = made.object("role", "assistant", "content", "a")
  ro:reply(say, { tokens = { prompt = { 1 }, out = { 2 }, lp = { -1 } } })
  ro:say(made.object("role", "user", "content", "go on"), "injected")
  ro:reply(say)
  local t = ro:finish()
  lu.assertEquals(t.line.use.rl, false)
  lu.assertEquals(t.line.use.why[1], "call 1: no token ids from the server")
end

return M
