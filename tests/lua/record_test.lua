local lu = require "luaunit"
local frame = require "agentbox.store.frame"
local json = require "agentbox.json"
local node = require "agentbox.record.node"
local parse = require "agentbox.record.parse"
local record = require "agentbox.record"
local secret = require "agentbox.secret"
local wire = require "agentbox.models.wire"
local made = dofile((arg[0]:gsub("lua/[^/]*$", "support/rollouts.lua")))

local M = {}

local function text_of(t) return json.encode(t.line) end

local function errors_of(t)
  local out = {}
  for i, entry in ipairs(t.line.errors) do out[i] = entry.msg end
  return out
end

function M.test_members_of_a_sample()
  local t = made.sample():finish()
  lu.assertEquals({ t.task_id, t.run_id, t.id }, { "t-17", "5f0c1a2b3c4d", "r1-0" })
  lu.assertEquals({ t.final_status, t.stop_reason, t.scored, t.reward }, { "success", "final_answer", true, 1.0 })
  lu.assertNil(t.failure_class)
  lu.assertEquals(#t.messages, 5)
  lu.assertEquals(t.messages[5].reasoning_content, "look first")
  lu.assertEquals({ t.metrics.steps, t.metrics.tool_calls, t.metrics.model_calls }, { 1, 1, 2 })
  lu.assertEquals({ t.metrics.prompt_tokens, t.metrics.completion_tokens, t.metrics.total_tokens }, { 100, 13, 113 })
  local usage = t.line.calls[1].usage
  lu.assertEquals({ usage.prompt, usage.completion }, { 40, 9 })
  lu.assertEquals(t.metrics.duration_s, 3.2)
  lu.assertEquals({ t.version_min, t.version_max }, { 12, 12 })
  lu.assertEquals(errors_of(t), {})
end

function M.test_a_line_reads_back_as_it_was_written()
  local t = made.sample(nil, { tokens = true }):finish()
  local again = made.reread(t)
  lu.assertEquals(text_of(again), text_of(t))
  lu.assertEquals(json.encode(again.messages), json.encode(t.messages))
  lu.assertEquals(json.encode(again.tools), json.encode(made.TOOLS))
  lu.assertEquals(record.check(again.line), {})
end

function M.test_a_request_is_rebuilt_byte_for_byte_and_not_stored()
  local ro = made.sample()
  local sent = {}
  local t = ro:finish()
  for call in t:calls() do
    lu.assertNotNil(call.request.params, "stored verbatim")
    local bytes = assert(made.reread(t):body(call, "request"))
    lu.assertEquals("sha256:" .. require "agentbox.sys.hash".sha256(bytes), call.request.hash)
    lu.assertEquals(#bytes, call.request.bytes)
    sent[#sent + 1] = json.decode(bytes)
  end
  lu.assertEquals({ #sent[1].messages, #sent[2].messages }, { 2, 4 })
  lu.assertEquals(json.encode(sent[2].tools), json.encode(made.TOOLS))
end

function M.test_factoring_a_request()
  local body = require "agentbox.record.body"
  local function factor(...)
    local entry = body.factor(...)
    return entry and json.decode(entry, { raw = { "params" } })
  end
  local entry = factor('{"tools":[7],"messages":[1,2],"t":1}', "[1,2]", "[7]")
  lu.assertEquals(entry.params:text(), '{"tools":[],"messages":[],"t":1}')
  lu.assertEquals({ entry.cut.tools, entry.cut.messages }, { 9, 23 })
  entry = factor('{"messages":[1,2],"tools":[8]}', "[1,2]", "[7]")
  lu.assertEquals(entry.params:text(), '{"messages":[],"tools":[8]}')
  lu.assertNil(factor('{"messages": [1,2]}', "[1,2]", nil))
end

function M.test_a_request_that_the_graph_does_not_hold_is_kept_verbatim()
  local ro = made.new()
  local odd = '{"model": "m", "messages": [{"role":"user","content":"rewritten"}]}'
  local c = ro.rec:call {
    leaf = 1, response = { message = {}, raw_request = odd, raw_response = "{}", finish = { raw = "stop", norm = "stop" } },
  }
  ro:say(made.object("role", "assistant", "content", "ok"), "sampled", c)
  local t = made.reread(ro:finish())
  lu.assertEquals(t:body(t.line.calls[1], "request"), odd)
end

function M.test_large_and_multi_line_bodies_go_to_blobs()
  local pretty = '{\n  "id": "x"\n}\n'
  local huge = json.encode { id = ("y"):rep(40000) }
  for _, body in ipairs { pretty, huge, "<html>not json</html>" } do
    local ro = made.new()
    ro:reply(made.object("role", "assistant", "content", "ok"), { raw_response = body })
    local t = made.reread(ro:finish())
    local entry = t.line.calls[1].response
    lu.assertNil(entry.body)
    lu.assertEquals(t._from.blobs[entry.hash], body)
    lu.assertEquals(t:body(t.line.calls[1], "response"), body)
    lu.assertNil(text_of(t):find("\n", 1, true))
  end
end

function M.test_a_damaged_blob_is_noticed()
  local ro = made.new()
  ro:reply(made.object("role", "assistant", "content", "ok"), { raw_response = "two\nlines" })
  local t = ro:finish()
  t._from.blobs[t.line.calls[1].response.hash] = "other bytes"
  local bytes, err = t:body(t.line.calls[1], "response")
  lu.assertNil(bytes)
  lu.assertEquals(err.code, "parse")
end

function M.test_absent_is_not_null_is_not_zero()
  local none = made.sample(nil, { usage = false }):finish()
  lu.assertNil(none.line.usage)
  lu.assertNil(none.metrics.total_tokens)
  lu.assertNil(text_of(none):find('"usage"', 1, true))
  local zero = made.new()
  zero:reply(made.object("role", "assistant", "content", ""), { usage = { prompt = 0, completion = 0 } })
  lu.assertEquals(zero:finish().metrics.total_tokens, 0)
end

function M.test_an_unscored_rollout_has_no_number()
  local t = made.sample(nil, { tokens = true }):finish {
    status = "failed", final_status = "error", stop = { reason = "model_error", class = "model_server" },
    reward = { scored = false }, error = "the server went away",
  }
  lu.assertNil(t.reward)
  lu.assertEquals({ t.scored, t.failure_class, t.error }, { false, "model_server", "the server went away" })
  lu.assertStrContains(text_of(t), '"reward":{"scored":false,"value":null')
  lu.assertEquals({ t.line.use.rl, t.line.use.sft }, { false, false })
end

function M.test_a_number_on_an_infrastructure_failure_is_a_broken_invariant()
  local t = made.sample():finish { stop = { reason = "sandbox_error", class = "sandbox" }, final_status = "error" }
  lu.assertStrContains(table.concat(errors_of(t), "\n"), "class sandbox has a number")
  lu.assertEquals(t.line.use.rl, false)
end

function M.test_whatever_a_scorer_returns_the_row_is_written()
  local loop = { name = "x" }
  loop.self = loop
  local t = made.sample():finish {
    reward = { scored = true, value = 0 / 0, components = { a = 1 / 0, f = print, c = loop, b = "\xff\xfe" } },
    metadata = { [true] = 1, bytes = "ok \xc3(" },
  }
  lu.assertEquals(t.scored, false)
  lu.assertNil(t.reward)
  local again = made.reread(t)
  lu.assertEquals(again.components.a, json.null)
  lu.assertEquals(again.components.f, "<function>")
  lu.assertEquals(again.components.c.self, json.null)
  lu.assertEquals(again.components.b, "\u{FFFD}\u{FFFD}")
  lu.assertEquals(again.metadata["true"], 1)
  lu.assertTrue(#again.line.errors >= 6)
end

function M.test_text_survives()
  local odd = "tail  \n\n  \u{85}\u{2028}\u{2029}\v\f\r\0 \u{1F600} \u{FEFF}é"
  local t = made.reread(made.sample(nil, { output = odd, answer = odd .. "\n\n  " }):finish())
  lu.assertEquals(t.messages[4].content, odd)
  lu.assertEquals(t.messages[5].content, odd .. "\n\n  ")
  lu.assertEquals(errors_of(t), {})
end

function M.test_bytes_that_are_no_text_are_replaced_and_noted()
  local t = made.sample(nil, { output = "a\xffb" }):finish()
  lu.assertEquals(t.messages[4].content, "a\u{FFFD}b")
  lu.assertEquals(t.line.nodes[4].scrubbed, true)
  lu.assertStrContains(errors_of(t)[1], "nodes[3].content")
end

function M.test_failed_calls_are_kept()
  local ro = made.new()
  ro.rec:call {
    leaf = 1, error = { code = "model", msg = "503 for ever", http_status = 503, tries = 5, raw_request = '{"model":"m"}' },
    t = { 1764444000.5, 1764444001.0, 1764444002.0 },
  }
  ro:reply(made.object("role", "assistant", "content", "ok"))
  local t = made.reread(ro:finish())
  local call = t.line.calls[1]
  lu.assertEquals({ call.trainable, call.tries, call.error.code, call.error.http_status }, { false, 5, "model", 503 })
  lu.assertEquals(t:body(call, "request"), '{"model":"m"}')
  lu.assertEquals(t.metrics.model_calls, 1)
  lu.assertEquals(errors_of(t), {})
end

function M.test_invariants_of_the_graph()
  local ro = made.sample()
  ro:say(made.object("role", "tool", "tool_call_id", "nobody", "content", "x"), "tool")
  lu.assertStrContains(table.concat(errors_of(ro:finish()), "\n"), "out of order")

  ro = made.new()
  ro:say(made.object("role", "assistant", "content", "from nowhere"), "sampled")
  lu.assertStrContains(table.concat(errors_of(ro:finish()), "\n"), "sampled by no call")

  ro = made.new()
  ro.rec:call { leaf = 1, response = { message = {}, finish = { raw = "stop", norm = "stop" } } }
  lu.assertStrContains(table.concat(errors_of(ro:finish()), "\n"), "no message came of it")
end

local function called(...)
  local calls = json.array {}
  for i, id in ipairs { ... } do calls[i] = wire.call(id, "look", "{}") end
  return made.object("role", "assistant", "tool_calls", calls)
end

-- The violations after an assistant's two calls were answered, each { id, parent }.
local function answered(...)
  local ro = made.new()
  ro:reply(called("a", "b")) -- node 2, behind the prompt
  for _, one in ipairs { ... } do
    local message = made.object("role", "tool", "tool_call_id", one[1], "content", "x")
    ro.rec:message(message, { origin = "tool", parent = one[2] })
  end
  return errors_of(ro:finish())
end

function M.test_each_call_is_answered_once_in_its_place()
  lu.assertEquals(answered({ "a" }, { "b" }), {})
  lu.assertEquals(answered({ "b" }, { "a" }), { "nodes[3]: answers b out of order", "nodes[4]: answers a out of order" })
  lu.assertEquals(answered({ "a" }, { "b" }, { "b" }), { "nodes[5]: answers b out of order" })
  lu.assertEquals(answered({ "a" }, { "a", 2 }), { "nodes[4]: answers a out of order" }) -- a branch that answers it again
  lu.assertEquals(answered({ "a" }, { "b" }, { "a", 2 }), { "nodes[5]: answers a out of order" })
end

function M.test_what_is_known_of_a_node_is_told_apart()
  local most = node.MAX
  local path = { node.new "prompt", node.new("sampled", 0, 0), node.new("tool", 1), node.new("tool", 2), node.new("prompt", 0) }
  lu.assertEquals({ node.sampled(path, 3), node.sampled(path, 1), node.sampled(path, 4), node.sampled(path, nil) }, { 1, 1, nil, nil })
  for _, origin in ipairs { "prompt", "sampled", "tool", "injected", "rewritten" } do
    for _, parts in ipairs { {}, { 0, 0, 0 }, { most, most, most }, { most, nil, 7 }, { nil, most, nil } } do
      local parent, call, run = parts[1], parts[2], parts[3]
      local one = node.new(origin, parent, call)
      if run then one = node.with_run(node.with_run(one, most), run) end
      lu.assertEquals(table.pack(node.parts(one)), { n = 4, origin, parent, call, run })
      lu.assertEquals(node.parent(one), parent)
    end
  end
  local rec = made.new().rec
  lu.assertErrorMsgContains("unknown origin told", rec.message, rec, made.object("role", "user"), { origin = "told" })
  lu.assertErrorMsgContains("no node 2", rec.message, rec, made.object("role", "user"), { origin = "prompt", parent = 2 })
  lu.assertErrorMsgContains("no node -1", rec.message, rec, made.object("role", "user"), { origin = "prompt", parent = -1 })
end

function M.test_a_response_id_that_the_server_gave_twice_is_kept_and_told()
  local ro = made.new()
  local say = made.object("role", "assistant", "content", "a")
  ro:reply(say)
  ro:say(made.object("role", "user", "content", "more"), "injected")
  ro.n = 0
  ro:reply(say)
  local t = ro:finish()
  lu.assertEquals(errors_of(t), {})
  local first, second = t.line.calls[1], t.line.calls[2]
  lu.assertEquals({ first.response_id, first.notes }, { second.response_id, nil })
  lu.assertStrContains(json.encode(second.notes), "to call 0 too")
  lu.assertEquals(require "agentbox.record.check".check(t.line), {})
  local doc, losses = require "agentbox.formats.art".convert(t, { form = "exchanges", tokens = "any" })
  local list = doc.exchanges.chat_completions
  lu.assertNotEquals(json.decode(json.encode(list[1].response)).id, list[2].response.id)
  lu.assertStrContains(table.concat(losses, "\n"), "more than once")
end

function M.test_a_second_speaker_is_a_thread_of_its_own()
  local ro = made.new()
  ro.rec:agent("critic", { model = "big", trainable = false })
  local root = ro.rec:message(made.object("role", "user", "content", "judge it"), { origin = "prompt", thread = "critic" })
  local c = ro.rec:call {
    leaf = root, purpose = "subagent", agent = "critic", thread = "critic",
    response = { message = {}, finish = { raw = "stop", norm = "stop" } },
  }
  ro.rec:message(made.object("role", "assistant", "content", "fine"), { origin = "sampled", call = c, thread = "critic" })
  ro:reply(made.object("role", "assistant", "content", "done"))
  local t = made.reread(ro:finish())
  lu.assertEquals(#t.messages, 3)
  lu.assertEquals(t.line.calls[1].trainable, false)
  lu.assertEquals({ t.line.agents[1].name, t.line.agents[2].name }, { "tool_loop", "critic" })
  lu.assertEquals(#t:path(3), 2)
end

function M.test_a_message_is_a_snapshot()
  local ro = made.new()
  local message = made.object("role", "user", "content", "before")
  ro:say(message, "injected")
  message.content = "after"
  lu.assertEquals(ro:finish().messages[3].content, "before")
end

function M.test_a_tool_batch_without_messages_keeps_arguments_and_result()
  local ro, call = made.new(), made.tool_call("c1", "sleep 99")
  ro:reply(made.object("role", "assistant", "content", json.null, "tool_calls", json.array { call }))
  ro.rec:tool_run { slot = 0, call_id = "c1", name = "sh", args = { cmd = "sleep 99" }, result = "part", is_error = true,
                    error = { code = "timeout", msg = "tool batch timed out" } }
  local run = made.reread(ro:finish()).line.tool_runs[1]
  lu.assertEquals({ run.node, run.step, run.result, run.error }, { json.null, 0, "part", "tool batch timed out" })
  lu.assertEquals(run.args:decode().cmd, "sleep 99")
end

function M.test_secrets_are_replaced_everywhere_and_words_are_not()
  local key = 'sk-"quoted\\key'
  secret.new(key)
  secret.new "sk-plain-0123"
  local ro = made.new { user = "my key is " .. key }
  ro.rec:note("leak", { deep = { "sk-plain-0123" } })
  ro.rec:event("info", "used " .. key)
  local call = made.tool_call("c1", "echo sk-plain-0123 " .. key)
  ro:reply(made.object("role", "assistant", "content", key, "tool_calls", json.array { call }))
  ro:tools({ call }, { { text = "sk-plain-0123 max_tokens token" } })
  ro:reply(made.object("role", "assistant", "content", "x"), { raw_response = "two\nlines with sk-plain-0123" })
  local t = ro:finish { error = "401 for sk-plain-0123", metadata = { k = key }, artifacts = { a = "\0 sk-plain-0123" } }
  lu.assertEquals(t.line.artifacts[1].redacted, true)
  local text = text_of(t)
  for _, bytes in pairs(t._from.blobs) do text = text .. bytes end
  lu.assertNil(text:find("sk-plain-0123", 1, true))
  lu.assertNil(text:find("quoted", 1, true))
  lu.assertStrContains(text, "max_tokens token")
  lu.assertEquals(t.line.calls[1].request.params ~= nil, true)
  lu.assertEquals(errors_of(t), {})
end

function M.test_the_modules_that_took_part()
  local ro = made.new()
  ro.rec:modules { { name = "gdb", from = "lab/gdb.lua", sha256 = ("ab"):rep(32) } }
  local list = ro:finish().line.modules:decode()
  lu.assertEquals({ list[1].name, list[1].from }, { "agentbox", "builtin" })
  lu.assertStrMatches(list[1].hash, "sha256:" .. ("%x"):rep(64))
  lu.assertEquals({ list[#list].name, list[#list].hash }, { "gdb", "sha256:" .. ("ab"):rep(32) })
  lu.assertEquals(made.new():finish().line.modules:decode()[1].hash, list[1].hash)
end

function M.test_logs_are_capped()
  local ro = made.new()
  for i = 1, 1100 do ro.rec:event("info", ("x"):rep(5000) .. i) end
  local t = ro:finish()
  lu.assertEquals({ #t.line.logs, t.line.logs_dropped }, { 1000, 100 })
  lu.assertTrue(#t.line.logs[1].text <= 4096)
end

function M.test_artifacts_are_bytes()
  local patch = "diff\n+\xff line\n"
  local t = made.sample():finish { artifacts = { ["out.diff"] = { bytes = patch }, ["a\xffb"] = "x" } }
  lu.assertEquals(t:artifact "out.diff", patch)
  lu.assertEquals(t.line.artifacts[1].path, "a\u{FFFD}b")
  local none, err = t:artifact "nope"
  lu.assertNil(none)
  lu.assertEquals(err.code, "notfound")
end

function M.test_the_sum_of_a_line()
  local line = frame.close(text_of(made.sample():finish()))
  lu.assertEquals(frame.check(line), true)
  lu.assertEquals(frame.check((line:gsub("Fixed", "Mixed"))), false)
  lu.assertNil(frame.check '{"a":1}')
  local text, whole = frame.read(line)
  lu.assertTrue(whole)
  lu.assertEquals(text_of { line = assert(parse.parse(text)) }, text)
end

function M.test_damaged_and_foreign_lines_are_refused()
  for _, text in ipairs { "", "[]", "{", '{"schema":"agentbox.trajectory/9"}', '{"schema":"agentbox.trajectory/1"}' } do
    local line, err = parse.parse(text)
    lu.assertNil(line)
    lu.assertEquals(err.code, "parse")
  end
end

function M.test_references_that_lead_nowhere_are_refused()
  local text = text_of(made.sample(nil, { tokens = true }):finish())
  for from, to in pairs {
    ['"p":1'] = '"p":2', ['"leaf":4'] = '"leaf":9', ['"leaf":3'] = '"leaf":-1', ['"node":3'] = '"node":77', ['"base":0'] = '"base":1',
    ['"i":1'] = '"i":0',
  } do
    local changed, n = text:gsub(from, to, 1)
    lu.assertEquals(n, 1, from)
    local line, err = parse.parse(changed)
    lu.assertNil(line, from)
    lu.assertStrContains(err.msg, "refers to what is not there")
  end
end

-- Random trees of turns: what is packed and factored must come back, whatever the shape.
function M.test_generated_records_come_back()
  local rand = require "agentbox.sys.rand".new(11)
  for n = 1, 40 do
    local ro, ids = made.new { id = "g-" .. n }, { rand:int(1, 999) }
    local prompts = {}
    for turn = 1, rand:int(1, 8) do
      local prompt = table.move(ids, 1, #ids, 1, {})
      if rand:int(1, 4) == 1 then prompt[rand:int(1, #prompt)] = 1000 + turn end
      local out, lp = {}, {}
      for i = 1, rand:int(1, 6) do out[i], lp[i] = rand:int(1, 99999), -rand:float() end
      prompts[turn] = prompt
      local calls = json.array()
      for i = 1, rand:int(0, 3) do calls[i] = made.tool_call(("c%d-%d"):format(turn, i), ("é"):rep(rand:int(0, 9))) end
      local message = made.object("role", "assistant", "content", #calls > 0 and json.null or "t" .. turn)
      if #calls > 0 then message.tool_calls = calls end
      ro:reply(message, { tokens = { prompt = prompt, out = out, lp = lp } })
      local results = {}
      for i = 1, #calls do results[i] = { text = string.char(rand:int(32, 126)):rep(rand:int(0, 50)) } end
      ro:tools(calls, results)
      if #calls == 0 then ro:say(made.object("role", "user", "content", "go on"), "injected") end
      ids = prompt
      table.move(out, 1, #out, #ids + 1, ids)
      ids[#ids + 1] = rand:int(1, 99)
    end
    local t = made.reread(ro:finish())
    lu.assertEquals(record.check(t.line), {})
    lu.assertEquals(errors_of(t), {})
    local turn = 0
    for call in t:calls() do
      turn = turn + 1
      lu.assertNotNil(call.request.params)
      lu.assertNotNil((t:body(call, "request")))
      for i, id in ipairs(call.tokens.prompt) do lu.assertEquals(id, prompts[turn][i]) end
    end
  end
end

return M
