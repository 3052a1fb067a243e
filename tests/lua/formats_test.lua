local lu = require "luaunit"
local agentbox = require "agentbox.formats.agentbox"
local foreign = require "agentbox.store.foreign"
local json = require "agentbox.json"
local made = dofile((arg[0]:gsub("lua/[^/]*$", "support/rollouts.lua")))

local M = {}

local UNSCORED = {
  status = "failed", final_status = "error", stop = { reason = "model_error", class = "model_server" },
  reward = { scored = false }, error = "503 for ever",
}

local function convert(name, t, opts)
  return require("agentbox.formats." .. name).convert(t, opts or {})
end

-- A document as it would be read by another program.
local function written(name, t, opts)
  local doc, losses, reason = convert(name, t, opts)
  if not doc then return nil, losses, reason end
  return assert(json.decode((json.encode(doc)))), losses
end

function M.test_agentbox_keys_in_their_order()
  local doc = written("agentbox", made.sample():finish())
  lu.assertEquals(json.keys(doc), { "task_id", "run_id", "messages", "tool_call_records", "reward", "final_status", "metrics",
    "metadata", "error", "model", "tool_mode", "tools", "created_at", "finished_at" })
  lu.assertEquals(json.keys(doc.messages[3]),
    { "role", "content", "tool_calls", "tool_call_id", "name", "reasoning_content", "raw" })
  lu.assertEquals(json.keys(doc.messages[3].tool_calls[1]), { "id", "type", "function" })
  lu.assertEquals(json.keys(doc.tool_call_records[1]),
    { "step", "tool_call_id", "name", "arguments", "result", "is_error", "duration_s" })
  lu.assertEquals(json.keys(doc.metrics), { "steps", "tool_calls", "model_calls", "prompt_tokens", "completion_tokens",
    "total_tokens", "duration_s", "sandbox_create_s", "verify_s", "seed_s" })
  lu.assertEquals(json.keys(doc.metadata), { "task_metadata", "verify_exit_code", "verify_command", "verify_success",
    "verify_duration_s", "verify_stdout", "verify_stderr", "stop_reason", "tools_available" })
end

function M.test_agentbox_values()
  local doc = written("agentbox", made.sample():finish())
  lu.assertEquals({ doc.task_id, doc.run_id, doc.reward, doc.final_status }, { "t-17", "5f0c1a2b3c4d", 1.0, "success" })
  lu.assertEquals(math.type(doc.reward), "float")
  local record = doc.tool_call_records[1]
  lu.assertEquals({ record.step, record.name, record.result, record.is_error, record.duration_s }, { 0, "sh", "exit 3\n", true, 0.125 })
  lu.assertEquals(record.arguments.cmd, "cat run.sh")
  lu.assertEquals(doc.messages[4].name, "sh")
  lu.assertEquals(doc.messages[5].raw.finish_reason, "stop")
  lu.assertEquals(doc.messages[1].raw, json.null)
  lu.assertEquals({ doc.metrics.sandbox_create_s, doc.metrics.seed_s, doc.metrics.verify_s }, { 0.9, 0.1, 0.5 })
  lu.assertEquals(doc.created_at, "2025-11-29T19:20:00Z")
  lu.assertEquals(doc.metadata.tools_available[1], "sh")
  lu.assertEquals(doc.metadata.task_metadata.difficulty, "easy")
end

function M.test_agentbox_says_null_for_what_is_unknown()
  local doc = written("agentbox", made.sample(nil, { usage = false }):finish(UNSCORED))
  lu.assertEquals({ doc.reward, doc.metrics.prompt_tokens, doc.metrics.total_tokens }, { json.null, json.null, json.null })
  lu.assertEquals({ doc.final_status, doc.error, doc.metadata.scored, doc.metadata.failure_class },
    { "error", "503 for ever", false, "model_server" })
end

function M.test_agentbox_caps_the_verifiers_output()
  local t = made.sample():finish { verify = { success = false, exit_code = 1, stdout = ("é"):rep(20000), stderr = "", command = "x" } }
  local doc = written("agentbox", t)
  lu.assertStrContains(doc.metadata.verify_stdout, "\n...[truncated 3616 chars]")
  lu.assertEquals(utf8.len(doc.metadata.verify_stdout), 16384 + #"\n...[truncated 3616 chars]")
end

function M.test_agentbox_round_trip()
  for _, result in ipairs { {}, UNSCORED } do
    local first = agentbox.text(made.sample():finish(result))
    local t = assert(foreign.read(first))
    lu.assertEquals(agentbox.text(t), first)
  end
end

-- What the reference itself wrote, in its own spelling.
local REFERENCE = [[{"task_id": "sum_list_01", "run_id": "5f0c", "messages": [
  {"role": "system", "content": "S", "tool_calls": null, "tool_call_id": null, "name": null, "reasoning_content": null, "raw": null},
  {"role": "assistant", "content": null, "tool_calls": [{"id": "k1", "type": "function", "function": {"name": "read_file", "arguments": "{\"path\":\"acc.py\"}"}}],
   "tool_call_id": null, "name": null, "reasoning_content": "look first", "raw": {"index": 0, "finish_reason": "tool_calls"}},
  {"role": "tool", "content": "def total(xs): pass", "tool_calls": null, "tool_call_id": "k1", "name": "read_file", "reasoning_content": null, "raw": null}],
 "tool_call_records": [{"step": 0, "tool_call_id": "k1", "name": "read_file", "arguments": {"path": "acc.py"}, "result": "def total(xs): pass", "is_error": false, "duration_s": 0.0}],
 "reward": 1.0, "final_status": "success",
 "metrics": {"steps": 1, "tool_calls": 1, "model_calls": 2, "prompt_tokens": 40, "completion_tokens": 9, "total_tokens": 49,
             "duration_s": 3.2, "sandbox_create_s": 0.9, "verify_s": 0.4, "seed_s": 0.1},
 "metadata": {"task_metadata": {}, "verify_exit_code": 0, "verify_command": "pytest", "verify_success": true, "verify_duration_s": 1e-7,
   "verify_stdout": "ok", "verify_stderr": "", "stop_reason": "final_answer", "tools_available": ["read_file"]},
 "error": null, "model": "m", "tool_mode": "structured",
 "tools": [{"type": "function", "function": {"name": "read_file"}}],
 "created_at": "2026-01-02T03:04:05.000001Z", "finished_at": "2026-01-02T03:04:08.200001Z"}]]

function M.test_a_file_of_the_reference_is_read()
  local t = assert(foreign.read(REFERENCE))
  lu.assertEquals({ t.task_id, t.final_status, t.reward, t.scored, t.stop_reason }, { "sum_list_01", "success", 1.0, true, "final_answer" })
  lu.assertEquals({ #t.messages, t.messages[2].reasoning_content, t.verify.command }, { 3, "look first", "pytest" })
  lu.assertEquals(json.encode(written("agentbox", t)), json.encode(json.decode(REFERENCE)))
end

function M.test_an_errors_zero_of_the_reference_is_no_score()
  local text = REFERENCE:gsub('"reward": 1.0, "final_status": "success"', '"reward": 0.0, "final_status": "error"')
  local t = assert(foreign.read(text))
  lu.assertEquals({ t.scored, t.reward }, { false, nil })
end

-- Symptom: `traj show` of a rollout whose verifier raised said that the model had failed.
function M.test_an_error_is_read_as_the_failure_of_whose_doing_it_was()
  for class, reason in pairs { verifier = "scorer_error", sandbox = "sandbox_error", task = "task_error", model_server = "model_error" } do
    local doc = json.decode(REFERENCE)
    doc.reward, doc.final_status = json.null, "error"
    doc.metadata = json.object { scored = false, failure_class = class }
    local t = assert(foreign.read(json.encode(doc)))
    lu.assertEquals({ t.stop_reason, t.failure_class }, { reason, class })
  end
end

function M.test_what_is_no_trajectory_is_refused()
  for text, word in pairs {
    ["[1]"] = "not a JSON object", ["{}"] = "task_id", ["{"] = "",
    ['{"task_id":"a","run_id":"b","final_status":"fine","messages":[]}'] = "unknown final_status",
    ['{"task_id":"a","run_id":"b","final_status":"failed","messages":[{}]}'] = "messages[0].role is missing",
  } do
    local t, err = foreign.read(text)
    lu.assertNil(t)
    lu.assertEquals(err.code, "parse")
    lu.assertStrContains(err.msg, word)
  end
end

local WRONG = {
  json.null, 1, -0.5, "x", true, json.array {}, json.object {}, json.array { 1 }, json.array { json.null }, json.object { a = 1 },
}

local function places(value, into)
  for key, inner in pairs(value) do
    into[#into + 1] = { value, key }
    if json.is_object(inner) or json.is_array(inner) then places(inner, into) end
  end
  return into
end

-- A document of another program with anything anywhere is read or refused, and what is read converts.
function M.test_documents_with_anything_anywhere()
  local rand = require "agentbox.sys.rand".new(23)
  local check, aggregate = require "agentbox.record.check".check, require "agentbox.traj".aggregate
  local base = json.encode((convert("agentbox", made.sample(nil, { tokens = true }):finish())))
  local read, refused = 0, 0
  for _ = 1, 1500 do
    local doc = json.decode(base)
    local all = places(doc, {})
    local place = all[rand:int(1, #all)]
    place[1][place[2]] = WRONG[rand:int(1, #WRONG)]
    local t, err = foreign.read(json.encode(doc))
    if t then
      read = read + 1
      for _, form in ipairs { "messages", "exchanges" } do convert("art", t, { form = form }) end
      convert("agentbox", t)
      convert("openai", t, { tool_args = "object", bad_args = "keep", reasoning = "inline", unscored = true })
      lu.assertEquals(aggregate({ t }).n, 1)
      check(t.line)
    else
      refused = refused + 1
      lu.assertEquals(err.code, "parse")
    end
  end
  lu.assertTrue(read > 100 and refused > 100)
end

function M.test_art_messages()
  local doc, losses = written("art", made.sample(nil, { tokens = true }):finish(), { form = "messages" })
  lu.assertEquals(losses, {})
  local items = doc.messages_and_choices
  lu.assertEquals({ items[1].role, items[2].role, items[4].role }, { "system", "user", "tool" })
  lu.assertEquals({ items[3].finish_reason, items[3].index }, { "tool_calls", 0 })
  lu.assertEquals(items[3].message.tool_calls[1]["function"].arguments, '{"cmd":"cat run.sh"}')
  lu.assertEquals(items[5].message.content, "Fixed.")
  lu.assertEquals(#items[5].prompt_token_ids, 8)
  lu.assertEquals({ items[5].token_ids[1], items[5].token_ids[2] }, { 41, 42 })
  lu.assertEquals(#items[5].logprobs.content, 2)
  lu.assertEquals(items[5].logprobs.content[1].token, "token_id:41")
  lu.assertEquals({ doc.reward, doc.initial_policy_version, doc.final_policy_version }, { 1.0, 12, 12 })
  lu.assertEquals(doc.metrics.correct, 1.0)
  for key, value in pairs(doc.metadata) do
    lu.assertNotEquals(type(value) == "table" and json.type(value), "object", key)
    lu.assertNotEquals(json.type(value), "array", key)
  end
  lu.assertEquals(doc.metadata.scenario_id, "t-17")
  lu.assertEquals(doc.metadata.task_metadata, '{"difficulty":"easy","tags":["a","b"]}')
  lu.assertEquals(doc.metadata.tools_available, "sh")
end

function M.test_art_exchanges_hold_the_traffic_verbatim()
  local t = made.sample(nil, { tokens = true }):finish()
  local doc, losses = convert("art", t, { form = "exchanges" })
  lu.assertEquals(losses, {})
  lu.assertNil(doc.messages_and_choices)
  lu.assertNil(doc.tools)
  local list = doc.exchanges.chat_completions
  lu.assertEquals(#list, 2)
  lu.assertEquals(list[2].request:text(), t:body(t.line.calls[2], "request"))
  lu.assertEquals(list[2].response:text(), t:body(t.line.calls[2], "response"))
  lu.assertEquals(list[1].start_time, "2025-11-29T19:20:01.000000Z")
end

function M.test_art_without_bodies_is_made_from_the_messages_and_says_so()
  local t = made.sample(nil, { bare = true }):finish()
  local doc, losses = written("art", t, { form = "exchanges" })
  lu.assertEquals(losses[1], "bodies that were not recorded (their exchanges are made from the messages)")
  local second = doc.exchanges.chat_completions[2]
  lu.assertEquals({ #second.request.messages, second.request.model, second.response.object }, { 4, "fixer@12", "chat.completion" })
  lu.assertEquals(second.response.choices[1].message.content, "Fixed.")
  doc, losses = written("art", t, { form = "messages" })
  lu.assertEquals(losses[1], "responses that were not recorded (their choices are made from the messages)")
  lu.assertEquals(doc.messages_and_choices[5].message.content, "Fixed.")
end

function M.test_art_gives_an_unscored_rollout_as_an_exception()
  local t = made.sample():finish(UNSCORED)
  local doc, _, reason = convert("art", t, { form = "messages" })
  lu.assertNil(doc)
  lu.assertStrContains(reason, "unscored")
  local exception = require "agentbox.formats.art".exception(t, "why")
  lu.assertEquals({ exception.type, exception.message }, { "agentbox.model_server.model_error", "503 for ever" })
end

function M.test_art_names_what_is_lost()
  local ro = made.sample()
  ro.rec:call { leaf = 1, error = { code = "model", msg = "500" } }
  local _, losses = convert("art", ro:finish(), { form = "messages" })
  local text = table.concat(losses, "\n")
  lu.assertStrContains(text, "calls that failed")
  lu.assertStrContains(text, "token ids, which the server did not send for every call")
end

function M.test_art_can_demand_tokens()
  lu.assertNotNil((convert("art", made.sample(nil, { tokens = true }):finish(), { form = "messages", tokens = "require" })))
  local doc, _, reason = convert("art", made.sample():finish(), { form = "messages", tokens = "require" })
  lu.assertNil(doc)
  lu.assertEquals(reason, "call 0 has no token ids from the server")
end

function M.test_art_branches_train_a_shared_message_once()
  local ro = made.new()
  local first = ro:reply(made.object("role", "assistant", "content", "one"))
  local node = ro.leaf
  ro:say(made.object("role", "user", "content", "left"), "injected")
  ro:reply(made.object("role", "assistant", "content", "left answer"))
  local right = ro.rec:message(made.object("role", "user", "content", "right"), { origin = "injected", parent = node, thread = "b" })
  local c = ro.rec:call { leaf = right, thread = "b", response = { message = {}, finish = { raw = "stop", norm = "stop" } } }
  ro.rec:message(made.object("role", "assistant", "content", "right answer"), { origin = "sampled", call = c, thread = "b" })
  local doc = written("art", ro:finish(), { form = "messages" })
  lu.assertEquals(first, 0)
  lu.assertEquals(#doc.messages_and_choices, 5)
  lu.assertNotNil(doc.messages_and_choices[3].finish_reason)
  local other = doc.additional_histories[1].messages_and_choices
  lu.assertEquals(#other, 5)
  lu.assertNil(other[3].finish_reason)
  lu.assertEquals(other[5].message.content, "right answer")
end

local SFT = { tool_args = "string", bad_args = "drop", reasoning = "keep" }

local function sft(t, opts)
  local all = {}
  for key, value in pairs(SFT) do all[key] = value end
  for key, value in pairs(opts or {}) do all[key] = value end
  return written("openai", t, all)
end

function M.test_openai_rows()
  local t = made.sample():finish()
  local row = sft(t)
  lu.assertEquals(json.keys(row), { "messages", "tools" })
  lu.assertEquals(row.messages[3].content, "")
  lu.assertEquals(row.messages[3].tool_calls[1]["function"].arguments, '{"cmd":"cat run.sh"}')
  lu.assertNil(row.messages[5].tool_calls)
  lu.assertEquals(row.messages[5].reasoning_content, "look first")
  row = sft(t, { tool_args = "object" })
  lu.assertEquals(row.messages[3].tool_calls[1]["function"].arguments.cmd, "cat run.sh")
end

function M.test_openai_reasoning()
  local t = made.sample():finish()
  local row, losses = sft(t, { reasoning = "drop" })
  lu.assertNil(row.messages[5].reasoning_content)
  lu.assertEquals(losses, { "10 characters of reasoning" })
  row, losses = sft(t, { reasoning = "inline" })
  lu.assertEquals(row.messages[5].content, "<think>\nlook first\n</think>\n\nFixed.")
  lu.assertEquals(losses, {})
end

-- Some servers answer with an object where others have the text of a thought: it is none.
function M.test_what_is_no_text_is_no_thought()
  for _, odd in ipairs { json.object { effort = "low" }, json.array { "a" }, 7, true } do
    local ro = made.new()
    ro:reply(made.object("role", "assistant", "content", "Done.", "reasoning_content", odd, "reasoning", odd))
    local t = ro:finish()
    for _, how in ipairs { "keep", "inline" } do
      local row = written("openai", t, { tool_args = "string", bad_args = "drop", reasoning = how })
      lu.assertEquals(json.encode(row.messages[3]), '{"role":"assistant","content":"Done."}')
    end
    lu.assertEquals(written("agentbox", t).messages[3].reasoning_content, json.null)
    lu.assertNil(written("verifiers", t).traces[1].nodes[3].message.reasoning_content)
  end
end

function M.test_a_content_that_is_a_number_is_its_text()
  local ro = made.new { user = -12.5 }
  ro:reply(made.object("role", "assistant", "content", 7))
  local row = written("sharegpt", ro:finish(), { mixed = "skip", reasoning = "drop", bad_args = "drop" })
  lu.assertEquals({ row.conversations[1].value, row.conversations[2].value }, { "-12.5", "7" })
end

-- vLLM says null for what was not asked for, and gives the ids as the texts of its log-probs.
function M.test_art_puts_ids_where_the_server_said_null()
  local ro, said = made.new(), made.object("role", "assistant", "content", "Done.")
  ro:reply(said, { tokens = { src = "token_id_strings", prompt = { 5, 6 }, out = { 7 }, lp = { -0.5 } }, raw_response = json.encode {
    id = "x", prompt_token_ids = json.null,
    choices = json.array { { index = 0, finish_reason = "stop", message = said, logprobs = json.null, token_ids = json.null } },
  } })
  local choice = written("art", ro:finish(), { form = "messages" }).messages_and_choices[3]
  lu.assertEquals(json.encode { choice.token_ids, choice.prompt_token_ids }, "[[7],[5,6]]")
  lu.assertEquals(choice.logprobs.content[1].token, "token_id:7")
end

function M.test_art_says_nothing_of_a_prompt_that_is_not_known()
  local ro = made.new()
  ro:reply(made.object("role", "assistant", "content", "Done."), { tokens = { out = { 7 }, lp = { -0.5 } }, bare = true })
  local choice = written("art", ro:finish(), { form = "messages" }).messages_and_choices[3]
  lu.assertEquals({ choice.prompt_token_ids, choice.token_ids[1] }, { json.null, 7 })
end

function M.test_openai_rows_end_with_the_assistant()
  local ro = made.sample()
  ro:say(made.object("role", "user", "content", "thanks"), "injected")
  local row, losses = sft(ro:finish())
  lu.assertEquals(#row.messages, 5)
  lu.assertEquals(losses, { "messages after the last assistant message" })
  local none, _, reason = sft(made.new():finish())
  lu.assertNil(none)
  lu.assertEquals(reason, "no assistant message")
end

function M.test_openai_broken_arguments()
  local ro, call = made.new(), made.tool_call("c1", "x")
  call["function"].arguments = '{"cmd": '
  ro:reply(made.object("role", "assistant", "content", json.null, "tool_calls", json.array { call }))
  ro:tools({ call }, { { text = "bad arguments" } })
  ro:reply(made.object("role", "assistant", "content", "sorry"))
  local t = ro:finish()
  local none, _, reason = sft(t)
  lu.assertNil(none)
  lu.assertStrContains(reason, "1 tool calls whose arguments are no JSON object")
  local row, losses = sft(t, { bad_args = "keep" })
  lu.assertEquals(row.messages[3].tool_calls[1]["function"].arguments, '{"cmd": ')
  lu.assertEquals(losses, { "1 tool calls whose arguments are no JSON object, kept" })
  lu.assertEquals(written("agentbox", t).tool_call_records[1].arguments._raw, '{"cmd": ')
end

function M.test_openai_selection()
  local t = made.sample():finish { reward = { scored = true, value = 0.25 } }
  lu.assertNotNil((sft(t, { min_reward = 0.25 })))
  local none, _, reason = sft(t, { min_reward = 0.5 })
  lu.assertNil(none)
  lu.assertEquals(reason, "reward below 0.5")
  lu.assertNil((sft(made.sample():finish(UNSCORED))))
  lu.assertNotNil((sft(made.sample():finish(UNSCORED), { unscored = true })))
end

function M.test_canonical_is_the_line()
  local t = made.sample(nil, { tokens = true }):finish()
  local line = json.encode((convert("canonical", t)))
  local frame = require "agentbox.store.frame"
  lu.assertEquals(frame.check(line), true)
  lu.assertEquals({ frame.read(line) }, { json.encode(t.line), true })
end

function M.test_text_and_bytes_survive_every_format()
  local odd = "x\u{2028}\u{85}\0\v\f\r\n\t\"\\ \u{1F600}  \n\n  "
  local t = made.sample(nil, { tokens = true, output = odd, answer = odd }):finish()
  lu.assertEquals(written("agentbox", t).messages[5].content, odd)
  lu.assertEquals(written("art", t, { form = "messages" }).messages_and_choices[5].message.content, odd)
  lu.assertEquals(written("art", t, { form = "exchanges" }).exchanges.chat_completions[2].response.choices[1].message.content, odd)
  lu.assertEquals(sft(t).messages[5].content, odd)
  for _, name in ipairs { "agentbox", "art", "canonical" } do
    lu.assertNil(json.encode((convert(name, t))):find("\n", 1, true))
  end
end

function M.test_huge_records()
  local huge = ("line of output \u{E9}\n"):rep(200000)
  local ids, lp = {}, {}
  for i = 1, 50000 do ids[i], lp[i] = i, -i / 1e6 end
  local ro = made.new { user = huge }
  ro:reply(made.object("role", "assistant", "content", huge), { tokens = { prompt = { 1 }, out = ids, lp = lp } })
  local t = ro:finish()
  lu.assertEquals(#t.line.errors, 0)
  local parse, traj = require "agentbox.record.parse".parse, require "agentbox.traj"
  local again = traj.new(assert(parse(json.encode(t.line))), { blobs = t._from.blobs })
  lu.assertEquals(again.messages[3].content, huge)
  lu.assertEquals(#again:calls()().tokens.out, 50000)
  lu.assertEquals(written("agentbox", again).messages[3].content, huge)
  local item = written("art", again, { form = "messages" }).messages_and_choices[3]
  lu.assertEquals({ #item.token_ids, #item.logprobs.content }, { 50000, 50000 })
  lu.assertEquals(sft(again).messages[2].content, huge)
end

function M.test_a_pretty_printed_response_becomes_one_line()
  local ro = made.new()
  local text = '{\n "id": "x",\n "object": "chat.completion", "created": 1, "model": "m",\n "choices": [{"index": 0, "finish_reason": "stop",\n'
      .. ' "logprobs": {"content": [\n]}, "message": {"role": "assistant", "content": "ok"}}]}'
  ro:reply(made.object("role", "assistant", "content", "ok"), { raw_response = text })
  local t = ro:finish()
  for _, form in ipairs { "messages", "exchanges" } do
    local line = json.encode((convert("art", t, { form = form })))
    lu.assertNil(line:find("\n", 1, true))
    lu.assertStrContains(line, '"content":"ok"')
  end
end

function M.test_a_document_has_the_layout_of_its_format()
  local document, fs = require "agentbox.formats._document", require "agentbox.sys.fs"
  local dir, out = assert(fs.tmpdir "agentbox-formats"), require "agentbox.sys.sink".new()
  local function made_of(doc, layout)
    local file <close> = assert(fs.append_open(dir .. "/f"))
    assert(file:truncate(0))
    assert(document.write(file, out, doc, layout))
    lu.assertEquals(fs.read(dir .. "/f"), document.text(doc, layout))
    return document.text(doc, layout)
  end
  local doc = json.object { b = "é", a = json.array { 1, json.object {} } }
  for _, layout in ipairs { { indent = 2 }, { indent = 3, ascii = true }, { ascii = true }, { indent = 0 }, { indent = 2, sorted = true } } do
    lu.assertEquals(made_of(doc, layout), json.encode(json.decode(json.encode(doc)), layout))
  end
  lu.assertEquals(made_of(json.object { token_ids = json.array { 1, 2 } }, { indent = 1 }), '{\n "token_ids": [1,2]\n}')
  lu.assertEquals(made_of(doc), json.encode(doc))
  local deep = assert(json.raw(("["):rep(200) .. ("]"):rep(200)))
  lu.assertEquals(made_of(deep, { indent = 1 }), json.encode(deep:decode(), { indent = 1 }))
  assert(fs.remove(dir, true))
end

function M.test_agentbox_names_what_has_a_name()
  local tools = { 1, {}, { ["function"] = 3 }, { ["function"] = { name = "sh" } } }
  local told = require("agentbox.formats.agentbox").metadata { task = {}, verify = {}, stop_reason = "final_answer", line = {}, tools = tools,
    scored = true, metadata = {} }
  lu.assertEquals(told.tools_available, { "sh" })
end

return M
