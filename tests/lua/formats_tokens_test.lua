--- The lineariser and the formats of token rows: masks and log-probs line up to the token, whatever the prompts did.
local lu = require "luaunit"
local export = require "agentbox.export"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local rows = require "agentbox.formats._rows"
local store = require "agentbox.store"
local made = dofile((arg[0]:gsub("lua/[^/]*$", "support/rollouts.lua")))

local M = {}

local rollout = made.of_calls

local CLEAN = {
  { prompt = { 1, 2, 3 }, out = { 10, 11 }, lp = { -0.1, -0.2 } },
  { prompt = { 1, 2, 3, 10, 11, 4 }, out = { 12 }, lp = { -0.3 } },
  { prompt = { 1, 2, 3, 10, 11, 4, 12, 5, 6 }, out = { 13, 14 }, lp = { -0.4, -0.5 } },
}

local function plain(row)
  local out = { prompt_len = row.prompt_len }
  for _, what in ipairs { "ids", "mask", "lp" } do
    out[what] = rows.list(row, what):decode()
    out[what] = table.move(out[what], 1, #out[what], 1, {})
  end
  return out
end

local function all(calls, opts)
  local list, reason = rows.of(rollout(calls), opts or {})
  if not list then return nil, reason end
  local out = {}
  for i, row in ipairs(list) do out[i] = plain(row) end
  return out
end

function M.test_clean_calls_are_one_row()
  lu.assertEquals(all(CLEAN), { {
    prompt_len = 3, ids = { 1, 2, 3, 10, 11, 4, 12, 5, 6, 13, 14 }, mask = { 0, 0, 0, 1, 1, 0, 1, 0, 0, 1, 1 },
    lp = { 0.0, 0.0, 0.0, -0.1, -0.2, 0.0, -0.3, 0.0, 0.0, -0.4, -0.5 },
  } })
  lu.assertEquals(all(CLEAN, { mode = "strict" }), all(CLEAN))
end

function M.test_stepwise_rows_are_the_calls()
  local list = all(CLEAN, { mode = "stepwise" })
  lu.assertEquals(#list, 3)
  for i, row in ipairs(list) do
    local call = CLEAN[i]
    local ids = table.move(call.out, 1, #call.out, #call.prompt + 1, table.move(call.prompt, 1, #call.prompt, 1, {}))
    lu.assertEquals(row.ids, ids)
    lu.assertEquals(row.prompt_len, #call.prompt)
    lu.assertEquals(table.concat(row.mask), ("0"):rep(#call.prompt) .. ("1"):rep(#call.out))
    lu.assertEquals({ table.unpack(row.lp, #call.prompt + 1) }, call.lp)
  end
end

-- The template dropped the second sampled id: it is context from there on, and keeps no log-prob.
local REALIGN = {
  { prompt = { 1, 2 }, out = { 10, 11, 12 }, lp = { -0.1, -0.2, -0.3 } },
  { prompt = { 1, 2, 10, 99, 12, 4 }, out = { 13 }, lp = { -0.4 } },
}

function M.test_a_small_drift_is_overwritten()
  lu.assertEquals(all(REALIGN), { {
    prompt_len = 2, ids = { 1, 2, 10, 99, 12, 4, 13 }, mask = { 0, 0, 1, 0, 0, 0, 1 },
    lp = { 0.0, 0.0, -0.1, 0.0, 0.0, 0.0, -0.4 },
  } })
  lu.assertEquals(rows.losses(rollout(REALIGN), assert(rows.of(rollout(REALIGN), {}))),
    { "sampled ids that a later prompt rewrote (they are context)" })
end

function M.test_a_drift_beyond_the_limit_begins_a_row()
  local list = all(REALIGN, { realign = 1 })
  lu.assertEquals({ list[1].ids, list[2].ids }, { { 1, 2, 10, 11, 12 }, { 1, 2, 10, 99, 12, 4, 13 } })
  lu.assertEquals(list[2].mask, { 0, 0, 0, 0, 0, 0, 1 })
end

local FORK = {
  { prompt = { 1, 2, 3 }, out = { 10 }, lp = { -0.1 } },
  { prompt = { 1, 2, 3, 10, 4 }, out = { 11 }, lp = { -0.2 } },
  { prompt = { 1, 7 }, out = { 12 }, lp = { -0.3 } },
  { prompt = { 1, 7, 12, 8 }, out = { 13 }, lp = { -0.4 } },
}

function M.test_a_fork_begins_a_row_and_each_output_is_trained_once()
  lu.assertEquals(all(FORK), {
    { prompt_len = 3, ids = { 1, 2, 3, 10, 4, 11 }, mask = { 0, 0, 0, 1, 0, 1 }, lp = { 0.0, 0.0, 0.0, -0.1, 0.0, -0.2 } },
    { prompt_len = 2, ids = { 1, 7, 12, 8, 13 }, mask = { 0, 0, 1, 0, 1 }, lp = { 0.0, 0.0, -0.3, 0.0, -0.4 } },
  })
end

function M.test_strict_refuses_drift_and_names_the_call()
  for _, calls in ipairs { REALIGN, FORK } do
    local list, reason = all(calls, { mode = "strict" })
    lu.assertNil(list)
    lu.assertStrContains(reason, calls == FORK and "call 2 does not go on from the one before (fork)"
      or "call 1 does not go on from the one before (realign)")
  end
end

function M.test_what_may_not_be_trained_has_no_rows()
  local list, reason = rows.of(rollout(CLEAN, nil, { reward = { scored = false } }), {})
  lu.assertEquals({ list, reason }, { nil, "unscored" })
  list, reason = rows.of(made.sample():finish(), {})
  lu.assertNil(list)
  lu.assertStrContains(reason, "no token ids from the server")
end

-- Any calls: rows hold every output once, at the places and under the prefix that it was sampled with.
function M.test_any_calls()
  local random = require "agentbox.rand".new(11)
  for _ = 1, 60 do
    local calls = made.random_calls(random)
    for _, mode in ipairs { "merge", "stepwise" } do
      local seen = 0
      for _, row in ipairs(assert(all(calls, { mode = mode }))) do
        lu.assertEquals({ #row.mask, #row.lp }, { #row.ids, #row.ids })
        for at, id in ipairs(row.ids) do
          if row.mask[at] == 1 then
            local i, j = id // 1000, id % 1000
            seen = seen + 1
            lu.assertEquals(row.lp[at], -(i + j / 10))
            for back = 1, #calls[i].prompt do lu.assertEquals(row.ids[at - j + 1 - back], calls[i].prompt[#calls[i].prompt + 1 - back]) end
          else
            lu.assertEquals(row.lp[at], 0.0)
          end
        end
      end
      if mode == "stepwise" then
        local n = 0
        for _, call in ipairs(calls) do n = n + #call.out end
        lu.assertEquals(seen, n)
      end
    end
  end
end

local dir

local function written(format, options)
  local path = dir .. "/out.jsonl"
  local result = assert(export.convert { input = dir .. "/run", format = format, out = path, options = options })
  local out = {}
  for line in assert(fs.read(path)):gmatch "([^\n]*)\n" do out[#out + 1] = assert(json.decode(line)) end
  return out, result
end

local function values(list) return table.move(list, 1, #list, 1, {}) end

function M.setUp()
  dir = assert(fs.tmpdir "agentbox-tokens")
  local s <close> = assert(store.open(dir .. "/run", { run_id = "r" }))
  assert(s:append(rollout(CLEAN, { id = "a", group = { id = "g", index = 0, size = 3 } })))
  assert(s:append(rollout(FORK, { id = "b", group = { id = "g", index = 1, size = 3 } }, { reward = { scored = true, value = 0.25 } })))
  assert(s:append(rollout({ CLEAN[1] }, { id = "c", group = { id = "g", index = 2, size = 3 } },
    { status = "failed", final_status = "error", stop = { reason = "sandbox_error", class = "sandbox" }, reward = { scored = false } })))
end

function M.tearDown() assert(fs.remove(dir, true)) end

function M.test_trl()
  local docs, result = written "trl"
  lu.assertEquals({ #docs, docs[1].trajectory_id, docs[1].group_id }, { 2, "a", "5f0c1a2b3c4d/g" })
  lu.assertEquals(values(docs[1].prompt_ids), { 1, 2, 3 })
  lu.assertEquals(values(docs[1].completion_ids), { 10, 11, 4, 12, 5, 6, 13, 14 })
  lu.assertEquals(values(docs[1].env_mask), { 1, 1, 0, 1, 0, 0, 1, 1 })
  lu.assertEquals(values(docs[1].logprobs), { -0.1, -0.2, 0.0, -0.3, 0.0, 0.0, -0.4, -0.5 })
  lu.assertEquals(result.losses[1].what, "the shorter rows of rollouts that forked")
  lu.assertEquals(result.skipped, { { id = "c", task_id = "t-17", reason = "unscored" } })
  lu.assertEquals(#written("trl", { rows = "all" }), 3)
end

function M.test_verl()
  local docs = written "verl"
  lu.assertEquals(#docs, 3)
  lu.assertEquals(values(docs[3].response_ids), { 12, 8, 13 })
  lu.assertEquals({ docs[3].extra_fields.session, docs[3].extra_fields.index, docs[3].extra_fields.of }, { "b_0", 1, 2 })
  lu.assertEquals({ docs[2].reward_score, docs[2].metrics.num_preempted }, { 0.25, -1 })
end

function M.test_skyrl()
  local docs, result = written "skyrl"
  lu.assertEquals({ #docs, #docs[1].response_ids, docs[1].rewards[1], docs[1].is_last_step }, { 1, 1, 1.0, json.null })
  lu.assertStrContains(result.skipped[1].reason, "forked into 2 rows; mode=stepwise can hold them")
  docs = written("skyrl", { mode = "stepwise", failures = "stub" })
  lu.assertEquals(#docs[1].response_ids, 8)
  lu.assertEquals(values(docs[1].is_last_step), { false, false, true, false, false, false, true, true })
  lu.assertEquals(values(docs[1].rewards[3]), { 0.0, 1.0 })
  lu.assertEquals(values(docs[1].rewards[8]), { 0.0 })
  lu.assertEquals(docs[1].trajectory_ids[8].repetition_id, 2)
end

function M.test_slime()
  local docs = written("slime", { reward = "split" })
  lu.assertEquals({ docs[2].reward, docs[3].reward, docs[2].metadata.trajectory_id }, { 0.125, 0.125, "b" })
  lu.assertEquals({ docs[2].rollout_id, docs[2].group_index }, { docs[3].rollout_id, docs[1].group_index })
  lu.assertTrue(docs[1].rollout_id ~= docs[2].rollout_id and math.type(docs[1].rollout_id) == "integer")
  lu.assertEquals({ docs[1].response_length, #docs[1].loss_mask, #docs[1].rollout_log_probs }, { 8, 8, 8 })
  lu.assertEquals({ docs[1].response, #docs[1].prompt, docs[1].weight_versions[1] }, { "\n\ndone", 2, "12" })
end

function M.test_openrlhf_takes_unbroken_sequences_only()
  local docs, result = written "openrlhf"
  lu.assertEquals(#docs, 1)
  lu.assertEquals(json.encode(docs[1].action_ranges), "[[3,5],[6,7],[9,11]]")
  lu.assertEquals(#docs[1].rollout_log_probs, #docs[1].observation_tokens)
  lu.assertStrContains(result.skipped[1].reason, "call 2 does not go on")
end

function M.test_prime_rl()
  local docs = written "prime-rl"
  lu.assertEquals({ #docs[1].token_ids, #docs[1].mask, #docs[1].logprobs, #docs[1].temperatures }, { 11, 11, 11, 11 })
  lu.assertEquals({ docs[1].mask[1], docs[1].mask[4], docs[1].temperatures[1] }, { false, true, 1.0 })
end

function M.test_pretokenized()
  local docs = written "pretokenized"
  lu.assertEquals(values(docs[1].labels), { -100, -100, -100, 10, 11, -100, 12, -100, -100, 13, 14 })
  lu.assertEquals(#docs[1].attention_mask, 11)
end

function M.test_verifiers()
  local docs, result = written "verifiers"
  lu.assertEquals(#docs, 3)
  local ids, mask = {}, {}
  for _, node in ipairs(docs[1].traces[1].nodes) do
    table.move(node.token_ids or {}, 1, #(node.token_ids or {}), #ids + 1, ids)
    for i, sampled in ipairs(node.mask or {}) do mask[#ids - #node.mask + i] = sampled and 1 or 0 end
  end
  lu.assertEquals({ ids, table.concat(mask) }, { { 1, 2, 3, 10, 11, 4, 12, 5, 6, 13, 14 }, "00011010011" })
  lu.assertEquals({ docs[3].traces[1].rewards.reward, docs[3].ok, docs[1].traces[1].rewards.reward.score }, { json.null, false, 1.0 })
  lu.assertEquals(docs[3].traces[1].errors[1].type, "agentbox.sandbox.sandbox_error")
  local forked = {}
  for i, node in ipairs(docs[2].traces[1].nodes) do
    if node.token_ids then forked[#forked + 1] = { i - 1, node.parent, values(node.token_ids) } end
  end
  -- what forked stands in a branch of its own, from the root on, and the call after it goes on from there
  lu.assertEquals(forked, { { 2, 1, { 1, 2, 3, 10 } }, { 4, 3, { 4, 11 } }, { 12, 11, { 1, 7, 12 } }, { 14, 13, { 8, 13 } } })
  lu.assertEquals({ docs[2].traces[1].calls[3].node, docs[2].traces[1].nodes[7].parent, #result.losses }, { 12, json.null, 0 })
  docs, result = written("verifiers", { form = "legacy" })
  lu.assertEquals({ #docs, #docs[1].prompt, #docs[1].completion, #docs[1].trajectory }, { 2, 2, 5, 3 })
  lu.assertEquals(values(docs[1].trajectory[2].tokens.completion_ids), { 12 })
  lu.assertEquals({ docs[1].example_id, docs[1].tool_defs[1].name }, { docs[2].example_id, "sh" })
  lu.assertEquals(docs[1].trajectory[1].response.message.tool_calls[1].name, "sh")
  lu.assertStrContains(result.skipped[1].reason, "unscored")
end

return M
