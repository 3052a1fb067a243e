--- Several speakers in one rollout: threads of their own, a model that plays the user, rewards by speaker.
local ab = require "agentbox"
local check = require "agentbox.record.check"
local err = require "agentbox.err"
local lu = require "luaunit"
local rows = require "agentbox.formats._rows"

local M = {}

local function task()
  return ab.task.new { task_id = "t", description = "Help the customer.", verifier = { type = "command", command = "true" } }
end

local function rollout(more)
  local opts = { task = task(), tools = "shell", sandbox = { backend = "none" } }
  for key, value in pairs(more) do opts[key] = value end
  return assert(ab.rollout.run(opts))
end

--- The line as it is read back.
local function read(traj) return ab.json.decode(ab.json.encode(traj.line)) end

local function talk(user, more, policy)
  policy = policy or { "Hello. What can I do?", { tool_calls = { { name = "run_command", arguments = { command = "true" } } } },
    "Refunded.", last = "Bye." }
  local opts = { system = "You want a refund.", model = ab.model.scripted(user or {}) }
  for key, value in pairs(more or {}) do opts[key] = value end
  return rollout { model = ab.model.scripted(policy), agent = { run = ab.agent.dialogue { user = opts } }, max_steps = 9 }
end

local function roles(messages)
  local out = {}
  for i, message in ipairs(messages) do out[i] = message.role end
  return table.concat(out, " ")
end

function M.test_a_model_plays_the_user_until_it_is_content()
  local traj = talk { "I want a refund.", "Thanks. ###STOP###" }
  lu.assertEquals({ traj.stop_reason, traj.reward }, { "final_answer", 1.0 })
  lu.assertEquals(roles(traj.messages), "system user assistant user assistant tool assistant")
  lu.assertEquals(traj.messages[4].content, "I want a refund.")
  local line = read(traj)
  lu.assertEquals(check.check(line), {})
  lu.assertEquals(line.nodes[line.calls[2].out + 1].m.content, "I want a refund.")
  local seen = {}
  for i, call in ipairs(line.calls) do seen[i] = ("%s %s %s"):format(call.agent, call.purpose, call.trainable) end
  lu.assertEquals(seen, { "function agent true", "user aux false", "function agent true", "function agent true", "user aux false" })
end

function M.test_what_the_user_says_is_masked_and_its_thread_is_its_own()
  local traj = talk { "I want a refund.", "###STOP###" }
  local line = read(traj)
  local user = line.agents[2]
  lu.assertEquals({ user.name, user.trainable }, { "user", false })
  local own, origins = {}, {}
  for i, step in ipairs(traj:path(user.leaf)) do own[i], origins[i] = step.message.role, step.node.o end
  lu.assertEquals(table.concat(own, " "), "system user assistant user assistant")
  lu.assertEquals(table.concat(origins, " "), "prompt injected sampled injected sampled")
  local main = {}
  for i, step in ipairs(traj:path()) do main[i] = step.node.o end
  lu.assertEquals(table.concat(main, " "), "prompt prompt sampled injected sampled tool sampled")
end

function M.test_turns_and_tokens_are_the_agents_own()
  local usage = { prompt_tokens = 1000, completion_tokens = 1000 }
  local traj = talk({ { content = "more", usage = usage }, { content = "###STOP###", usage = usage } }, nil,
    { { content = "a", usage = { prompt_tokens = 3, completion_tokens = 4 } },
      { content = "b", usage = { prompt_tokens = 5, completion_tokens = 6 } } })
  lu.assertEquals({ traj.metrics.model_calls, traj.metrics.prompt_tokens, traj.metrics.completion_tokens }, { 2, 8, 10 })
end

function M.test_exchanges_and_turns_are_limited()
  local endless = { last = "more" }
  local traj = talk(endless, { max_exchanges = 3 }, { last = "again?" })
  lu.assertEquals({ traj.stop_reason, traj.metrics.model_calls }, { "final_answer", 3 })
  lu.assertEquals(traj.line.stop.detail, "3 exchanges with the user")
  lu.assertEquals(talk(endless, nil, { last = "again?" }).stop_reason, "max_turns")
end

function M.test_a_user_that_fails_is_no_score()
  local broken = { function() return nil, err.new("model", "down") end }
  local traj = talk(broken)
  lu.assertEquals({ traj.final_status, traj.failure_class, traj.reward }, { "error", "model_server", nil })
  lu.assertStrContains(traj.line.error, "the user's model: down")
end

function M.test_a_role_nobody_named_and_misuse()
  local traj = talk(nil, { model = "nobody" })
  lu.assertEquals({ traj.final_status, traj.reward }, { "error", nil })
  lu.assertStrContains(traj.line.error, "nobody")
  lu.assertErrorMsgContains("system", ab.agent.dialogue, { user = {} })
  lu.assertErrorMsgContains("max_repeat", ab.agent.dialogue, { user = { system = "x" }, max_repeat = 1 })
end

-- ---------------------------------------------------------------- two that are trained

local function raw(list) return ab.json.raw(ab.json.encode(ab.json.array(list))) end

--- A model whose replies have tokens: one id for each reply, after all that came before.
local function with_tokens(script, base)
  local inner, said = ab.model.scripted(script), {}
  return setmetatable({ name = "policy@4", complete = function(_, request)
    local response, problem = inner:complete(request)
    if not response then return nil, problem end
    local prompt = table.move(said, 1, #said, 2, { base })
    said[#said + 1] = base + #said + 1
    response.tokens = { src = "engine", prompt = raw(prompt), out = raw { said[#said] }, lp = raw { -0.5 } }
    return response
  end }, { __index = inner })
end

local function debate(ctx)
  local other = ctx:thread { name = "critic", model = with_tokens({ "no", "yes" }, 100), trainable = true, system = "Doubt." }
  for _ = 1, 2 do
    local said = assert(ctx:ask()).message.content
    other:inject("user", said)
    ctx:inject("user", assert(other:ask()).message.content)
  end
  return "final_answer"
end

local function debated(agents)
  return rollout {
    model = with_tokens({ "claim", "proof" }, 10), agent = debate,
    verifier = function() return 0.25, "judged", { agents = agents } end,
  }
end

function M.test_each_trained_speaker_has_rows_with_its_own_reward()
  local traj = debated { critic = 0.75 }
  lu.assertEquals({ traj.line.error, traj.reward }, { ab.json.null, 0.25 })
  lu.assertEquals(ab.json.decode(ab.json.encode(traj.line.reward)).agents, { critic = 0.75 })
  local list = assert(rows.of(traj, {}))
  local found = {}
  for i, row in ipairs(list) do
    found[i] = { row.calls[1].agent, rows.list(row, "ids"):text(), rows.list(row, "mask"):text(), rows.reward(traj, row) }
  end
  lu.assertEquals(found, {
    { "function", "[10,11,12]", "[0,1,1]", 0.25 }, { "critic", "[100,101,102]", "[0,1,1]", 0.75 },
  })
  lu.assertEquals(read(traj).agents[2].trainable, true)
  lu.assertEquals(traj.metrics.completion_tokens, nil) -- nobody told; the budget counted both all the same
end

function M.test_a_reward_of_nobody_or_no_number()
  local traj = debated { ghost = 1 }
  lu.assertEquals(traj.reward, 0.25)
  lu.assertNil(traj.line.reward.agents)
  lu.assertStrContains(ab.json.encode(traj.line.errors), "no speaker is called ghost")
  lu.assertEquals(debated({ critic = 0 / 0 }).final_status, "error")
end

function M.test_names_are_taken_once()
  local traj = rollout { model = ab.model.scripted { "x" }, agent = function(ctx)
    ctx:thread { name = "a" }
    lu.assertErrorMsgContains("already", ctx.thread, ctx, { name = "a" })
    return "final_answer"
  end }
  lu.assertEquals(traj.stop_reason, "final_answer")
end

return M
