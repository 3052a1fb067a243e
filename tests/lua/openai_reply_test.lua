-- What the client of chat completions servers makes of replies that are not as one would like them.
local json = require "agentbox.json"
local test = require "agentbox.test"

local support = (arg[0]:match "^(.*/)" or "./") .. "../support/"
local client = dofile(support .. "client.lua")
local fakellm = dofile(support .. "fakellm.lua")
local open, ask, converse = client.open, client.ask, client.converse

local M = {}

-- ---------------------------------------------------------------- tool calls

function M.test_arguments_given_as_an_object()
  local args = { path = "a", n = 3, ok = true }
  local fake = fakellm.script { steps = {
    { tool_calls = { { name = "t", arguments = args } }, object_arguments = true }, "end",
  }, strict = true }
  local request = ask()
  local m = open(fake)
  local response = assert(m:complete(request))
  local call = response.message.tool_calls[1]
  local got = json.decode(call["function"].arguments)
  test.eq({ got.path, got.n, got.ok }, { "a", 3, true })
  request.messages[2] = response.message
  request.messages[3] = { role = "tool", tool_call_id = call.id, content = "ok" }
  assert(m:complete(request)) -- the strict server wants a text again
end

function M.test_control_characters_in_arguments_are_repaired()
  local raw = '{"command":"echo a\necho b\tc"}'
  local fake = fakellm.script { steps = { { tool_calls = { { name = "t", arguments = raw } } }, "end" }, strict = true }
  local request = ask()
  local m = open(fake)
  local response = assert(m:complete(request))
  local call = response.message.tool_calls[1]
  test.eq(json.decode(call["function"].arguments).command, "echo a\necho b\tc")
  test.eq(call.raw_arguments, raw)
  test.eq(call.parse_error, nil)
  test.eq(response.repaired, true)
  converse(m, request, 1)
  request.messages[2] = response.message
  request.messages[3] = { role = "tool", tool_call_id = call.id, content = "ok" }
  assert(m:complete(request))
end

function M.test_arguments_that_are_no_object()
  local fake = fakellm.script { { tool_calls = {
    { name = "t", arguments = '"ls"' }, { name = "t", arguments = '{"a": ' }, { name = "t", arguments = "" },
    { name = "t", arguments = '"{\\"a\\":1}"' },
  } } }
  local calls = assert(open(fake):complete(ask())).message.tool_calls
  test.contains(calls[1].parse_error, "not a JSON object")
  test.eq(calls[1].raw_arguments, '"ls"')
  test.eq(json.decode(calls[1]["function"].arguments)._raw, '"ls"')
  test.contains(calls[2].parse_error, "not valid JSON")
  test.eq(calls[3].parse_error, nil)
  test.eq(calls[3]["function"].arguments, "{}")
  test.eq(calls[4]["function"].arguments, '{"a":1}')
end

function M.test_ids_are_unique()
  local fake = fakellm.script { steps = {
    { tool_calls = { { name = "a", id = "x" }, { name = "b", id = "x" }, { name = "c", id = "" } } },
    { tool_calls = { { name = "a", id = "x" } } }, "end",
  }, strict = true }
  local request = ask()
  converse(open(fake), request, 9)
  local seen = {}
  for _, message in ipairs(request.messages) do
    for _, call in ipairs(message.tool_calls or {}) do
      test.ok(call.id ~= "" and not seen[call.id], call.id)
      seen[call.id] = true
    end
  end
  test.eq(fake.log()[3].body.messages[2].tool_calls[1].id, "x")
end

function M.test_a_model_that_calls_without_end()
  local call = { name = "t", arguments = {} }
  local calls = {}
  for i = 1, 5000 do calls[i] = call end
  local response = assert(open(fakellm.script { { tool_calls = calls } }):complete(ask()))
  test.eq(#response.message.tool_calls, 256)
  test.contains(response.notes[#response.notes], "5000 tool calls in one reply: the first 256 are taken")
end

-- ---------------------------------------------------------------- odd replies

function M.test_optional_members_may_be_missing_null_or_new()
  local fields = { "id", "object", "created", "model", "usage", "system_fingerprint", "service_tier", "metadata" }
  local values = { json.null, "strange", 3.5, json.array { 1 }, json.object { a = json.object() }, false }
  local steps = {}
  for _, field in ipairs(fields) do
    for _, value in ipairs(values) do
      local message = { annotations = value, audio = value }
      steps[#steps + 1] = { content = "fine", extra = { [field] = value }, message = message }
    end
  end
  steps[#steps + 1] = { content = "fine", message = { tool_calls = json.null, function_call = json.null } }
  steps[#steps + 1] = { content = "fine", message = { tool_calls = json.array {}, refusal = json.null } }
  steps[#steps + 1] = { content = "fine", finish_reason = json.null }
  local fake = fakellm.script { steps = steps }
  local m = open(fake, { max_tries = 1 })
  for i = 1, #steps do
    local response, e = m:complete(ask())
    test.ok(response, ("%d: %s"):format(i, tostring(e)))
    test.eq(response.message.content, "fine")
  end
end

function M.test_a_legacy_function_call_and_content_parts()
  local fake = fakellm.script {
    { message = { function_call = { name = "t", arguments = '{"a":1}' } } },
    { message = { content = { { type = "text", text = "a" }, { type = "text", text = "b" } } } },
  }
  local m = open(fake)
  test.eq(assert(m:complete(ask())).message.tool_calls[1]["function"].name, "t")
  test.eq(assert(m:complete(ask())).message.content, "ab")
end

function M.test_useless_bodies_are_tried_again_and_shown()
  local fake = fakellm.script { { html = true }, { half_json = true }, { body = '{"choices":[]}' }, "fine" }
  test.eq(assert(open(fake):complete(ask())).tries, 4)
  local bad = fakellm.script { { html = true } }
  local e = test.fails("model", open(bad, { max_tries = 2 }):complete(ask()))
  test.contains(e.msg, "HTML")
  test.contains(e.body, "Bad gateway")
  test.eq(e.attempts, 2)
end

function M.test_an_error_inside_a_success()
  local fake = fakellm.script { { body = '{"error":{"message":"overloaded","code":503}}' }, "fine" }
  test.eq(assert(open(fake):complete(ask())).tries, 2)
end

return M
