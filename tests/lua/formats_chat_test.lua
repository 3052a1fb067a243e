--- Formats of messages, and what an export leaves out.
local lu = require "luaunit"
local export = require "agentbox.export"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local store = require "agentbox.store"
local made = dofile((arg[0]:gsub("lua/[^/]*$", "support/rollouts.lua")))

local M = {}
local dir

local function put(s, id, value, with)
  with = with or {}
  local result = { reward = { scored = value ~= nil, value = value }, final_status = value == 1.0 and "success" or "failed" }
  if value == nil then result.stop, result.final_status = { reason = "sandbox_error", class = "sandbox" }, "error" end
  assert(s:append(made.sample({ id = id, user = with.user, attempt = with.attempt,
    group = { id = with.group or "g", index = with.index or 0, size = with.size or 3 } }, with):finish(result)))
end

function M.setUp() dir = assert(fs.tmpdir "agentbox-chat") end

function M.tearDown() assert(fs.remove(dir, true)) end

local function run(fill)
  local s <close> = assert(store.open(dir .. "/run", { run_id = "r" }))
  fill(s)
end

local function written(format, options, filter)
  local path = dir .. "/out.jsonl"
  local result = assert(export.convert { input = dir .. "/run", format = format, out = path, options = options, filter = filter })
  local out = {}
  if #result.files == 0 then return out, result end
  for line in assert(fs.read(path)):gmatch "([^\n]*)\n" do out[#out + 1] = assert(json.decode(line)) end
  return out, result
end

local function three(s)
  put(s, "a", 0.0, { answer = "Broken.", index = 0 })
  put(s, "b", 1.0, { index = 1 })
  put(s, "c", 0.5, { answer = "Half.", index = 2 })
end

function M.test_sharegpt()
  run(three)
  local docs, result = written "sharegpt"
  lu.assertEquals({ #docs, docs[1].system }, { 3, "You fix shell scripts." })
  local from = {}
  for i, one in ipairs(docs[1].conversations) do from[i] = one.from end
  lu.assertEquals(from, { "human", "function_call", "observation", "gpt" })
  lu.assertEquals(docs[1].conversations[2].value, '{"name":"sh","arguments":{"cmd":"cat run.sh"}}')
  lu.assertEquals(result.losses[1].what, "10 characters of reasoning")
  lu.assertEquals(json.decode(docs[1].tools)[1]["function"].name, "sh")
end

function M.test_sharegpt_cannot_say_text_beside_a_call()
  run(function(s)
    local ro, call = made.new { id = "m" }, made.tool_call("c1", "ls")
    ro:reply(made.object("role", "assistant", "content", "Let me look.", "tool_calls", json.array { call }), { norm = "tool_calls" })
    ro:tools({ call }, { { text = "a" } })
    ro:reply(made.object("role", "assistant", "content", "Done."))
    assert(s:append(ro:finish()))
  end)
  local docs, result = written "sharegpt"
  lu.assertEquals(#docs, 0)
  lu.assertStrContains(result.skipped[1].reason, "text and a tool call")
  docs, result = written("sharegpt", { mixed = "drop_text" })
  lu.assertEquals({ #docs, result.losses[1].what }, { 1, "text beside tool calls" })
end

function M.test_prompt_completion()
  run(three)
  local docs = written "prompt_completion"
  lu.assertEquals({ #docs[1].prompt, #docs[1].completion, docs[1].completion[1].role }, { 2, 3, "assistant" })
  docs = written("prompt-completion", { from = "last", tools = "string", tool_args = "object" })
  lu.assertEquals({ #docs[1].prompt, #docs[1].completion, type(docs[1].tools) }, { 4, 1, "string" })
  lu.assertEquals(docs[1].prompt[3].tool_calls[1]["function"].arguments.cmd, "cat run.sh")
end

function M.test_preference_pairs_are_best_and_worst_of_one_prompt()
  run(function(s)
    three(s)
    put(s, "d", 1.0, { group = "h", size = 2 })
    put(s, "e", 1.0, { group = "h", size = 2, index = 1 })
    put(s, "f", 1.0, { group = "i", size = 2 })
    put(s, "g", 0.0, { group = "i", size = 2, index = 1, user = "Another prompt." })
  end)
  local docs, result = written "preference"
  lu.assertEquals(#docs, 1)
  lu.assertEquals({ docs[1].chosen[3].content, docs[1].rejected[3].content }, { "Fixed.", "Broken." })
  lu.assertEquals(#docs[1].prompt, 2)
  lu.assertEquals(#result.skipped, 2)
  for i, group in ipairs { "h", "i" } do
    lu.assertEquals({ result.skipped[i].id, result.skipped[i].reason },
      { group, "no two rollouts of one prompt in the group have different rewards" })
  end
  docs = written("preference", { form = "unpaired" })
  lu.assertEquals({ #docs, docs[1].label, docs[2].label, docs[3].label }, { 7, false, true, true })
end

function M.test_arguments_as_string_or_object()
  run(three)
  for form, kind in pairs { string = "string", object = "table" } do
    local docs = written("openai", { tool_args = form })
    lu.assertEquals(type(docs[1].messages[3].tool_calls[1]["function"].arguments), kind)
  end
end

local function ids(format, filter)
  local docs, result = written(format, nil, filter)
  local out = {}
  for i, doc in ipairs(docs) do out[i] = doc.id end
  return out, result
end

function M.test_filters_say_which_rule_took_what()
  run(function(s)
    three(s)
    put(s, "x", nil, { index = 2 })
  end)
  for _, case in ipairs {
    { { min_reward = 0.5 }, { "b", "c" }, "filtered: reward below 0.5" },
    { { max_reward = 0.5 }, { "a", "c" }, "filtered: reward above 0.5" },
    { { status = { "success" } }, { "b" }, "filtered: status failed" },
    { { best = 1 }, { "b" }, "filtered: not among the 1 best of its group" },
    { { max_tokens = 63 }, {}, "filtered: more than 63 tokens" },
  } do
    local got, result = ids("canonical", case[1])
    lu.assertEquals(got, case[2])
    lu.assertEquals(result.skipped[1].reason, case[3])
    lu.assertStrContains(export.report("canonical", result), case[3])
  end
  lu.assertEquals(ids("canonical", { max_tokens = 64 }), { "a", "b", "c", "x" })
  local ok, err = export.convert { input = dir .. "/run", format = "canonical", out = dir .. "/o.jsonl", filter = { best = 0 } }
  lu.assertEquals({ ok, err.code, err.msg }, { nil, "badarg", "filter.best must be an integer of at least 1" })
  ok, err = export.convert { input = dir .. "/run", format = "canonical", out = dir .. "/o.jsonl", filter = { reward = 1 } }
  lu.assertEquals({ ok, err.msg }, { nil, "filter has no option reward" })
end

function M.test_dedupe()
  run(function(s)
    put(s, "a", 1.0)
    put(s, "b", 0.0, { index = 1 })
    put(s, "c", 1.0, { index = 2, answer = "Other." })
  end)
  local got, result = ids("canonical", { dedupe = true })
  lu.assertEquals({ got, result.skipped[1].reason }, { { "a", "c" }, "filtered: the same messages as one before" })
end

function M.test_an_attempt_that_was_made_again_leaves_nothing_in_its_group()
  run(function(s)
    put(s, "a", nil, { size = 2 })
    put(s, "a", 1.0, { size = 2, attempt = 1 })
    put(s, "b", 0.0, { size = 2, index = 1 })
    put(s, "c", 1.0, { size = 2, index = 2 })
  end)
  local docs, result = written "art"
  lu.assertEquals({ #docs, #docs[1].trajectories, #docs[1].exceptions }, { 1, 2, 0 })
  lu.assertEquals(result.skipped[2].reason, "surplus: its group was whole without it")
end

-- A group that another run calls the same is another one.
function M.test_groups_of_two_runs_are_two()
  for _, name in ipairs { "r", "s" } do
    local s <close> = assert(store.open(dir .. "/run", { run_id = name }))
    for i, value in ipairs { 1.0, 0.0 } do
      local result = { reward = { scored = true, value = value }, final_status = "failed" }
      local group = { id = "g", index = i - 1, size = 2 }
      assert(s:append(made.sample({ id = name .. i, run_id = name, group = group }, {}):finish(result)))
    end
  end
  local docs, result = written "art"
  lu.assertEquals({ #docs, #docs[1].trajectories, #docs[2].trajectories, #result.skipped }, { 2, 2, 2, 0 })
  lu.assertEquals((ids("canonical", { best = 1 })), { "r1", "s1" })
end

return M
