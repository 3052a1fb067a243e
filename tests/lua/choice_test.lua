--- Where the choices come from that documents hold: from a response in the record, from one in a file beside it, from
--- the call itself; and never from a response that is not the one its digest names.
local lu = require "luaunit"
local choice = require "agentbox.formats._choice"
local hash = require "agentbox.sys.hash"
local json = require "agentbox.json"
local sys = require "agentbox.sys.json"
local made = dofile((arg[0]:gsub("lua/[^/]*$", "support/rollouts.lua")))

local M = {}

local PRETTY = '{\n "choices": [\n  {"index": 0, "from": "a file"}\n ], "prompt_token_ids": [7]}\n'

-- A rollout of calls; `replies` says of each what the server sent, and `alter` what becomes of its entry in the record.
local function rollout(replies, alter)
  local ro = made.new()
  for i, reply in ipairs(replies) do
    ro:reply(made.object("role", "assistant", "content", "said " .. i), reply)
  end
  local t = made.reread(ro:finish())
  for i, change in pairs(alter or {}) do change(t.line.calls[i]) end
  return t
end

local function all_of(t)
  local wanted = {}
  for i = 1, t.call_columns.n do wanted[i] = true end
  return choice.given(t, wanted)
end

local function content_of(text)
  local value = text and json.decode(text)
  return value and (value.from or value.message.content)
end

function M.test_a_choice_is_found_wherever_its_response_is()
  local own = function(call) call.choice, call.response = assert(json.raw '{"from":"the call"}'), json.null end
  local given = all_of(rollout({ {}, { raw_response = PRETTY }, {}, { raw_response = "no JSON" }, { raw_response = '{"choices":[]}' } },
    { [3] = own }))
  local found = {}
  for i = 1, 5 do found[i] = content_of(choice.text(given, i)) or "none" end
  lu.assertEquals(found, { "said 1", "a file", "the call", "none", "none" })
  lu.assertEquals(choice.prompt_ids(given, 2), "[7]")
  local list = sys.rows({ "raw" }, { raw = true }, true)(1, 4, choice.cells(given, { 2, 4, 1, 3 }))
  local raws = {}
  for i, row in ipairs(json.decode(list)) do raws[i] = row.raw ~= json.null and (row.raw.from or row.raw.message.content) or "null" end
  lu.assertEquals(raws, { "a file", "null", "said 1", "the call" })
end

function M.test_a_response_of_another_digest_gives_nothing()
  local other = "sha256:" .. ("0"):rep(64)
  local t = rollout({ {}, {}, {} }, {
    [1] = function(call) call.response.hash = other end,
    [2] = function(call) call.response.hash = call.response.hash:sub(1, -2) end,
  })
  local given = all_of(t)
  lu.assertEquals({ choice.text(given, 1), choice.text(given, 2) }, {})
  lu.assertEquals(content_of(choice.text(given, 3)), "said 3")
  local doc = json.decode((json.encode((require("agentbox.formats.agentbox").convert(t, {})))))
  lu.assertEquals({ doc.messages[3].raw, doc.messages[4].raw, doc.messages[5].raw.message.content }, { json.null, json.null, "said 3" })
  local _, losses = require("agentbox.formats.art").convert(t, { form = "messages" })
  lu.assertStrContains(table.concat(losses, "\n"), "responses that were not recorded")
end

function M.test_what_is_not_wanted_is_not_looked_at()
  local given = choice.given(rollout { {}, {} }, { [2] = true })
  lu.assertNil(choice.text(given, 1))
  lu.assertEquals(content_of(choice.text(given, 2)), "said 2")
end

function M.test_a_prompt_that_the_response_names()
  local tokens = { prompt = { 1, 2 }, out = { 3 }, lp = { -0.5 } }
  local given = all_of(rollout { { tokens = tokens }, {} })
  lu.assertEquals({ choice.prompt_ids(given, 1), choice.prompt_ids(given, 2) }, { "[1,2]" })
end

function M.test_texts_and_their_names()
  local function named(text, name, wanted)
    local list = ('[{"text":%s,"name":%s},{"text":%s}]'):format(text, name, text)
    local sheet = sys.sheet { text = "&text", name = "&name" } (list)
    return hash.named(sys.cells(sheet, "text"), sys.cells(sheet, "name"), wanted or { true, true })
  end
  local right = '"sha256:' .. hash.sha256 '{"a":1}' .. '"'
  lu.assertEquals(named('{"a":1}', right), { true })
  lu.assertEquals(named('{"a":1}', right, {}), {})
  for _, wrong in ipairs { '"sha256:' .. hash.sha256 "other" .. '"', right:sub(2, -2):gsub(":", "_"):gsub("^.*$", '"%0"'), '""', "7", "null" } do
    lu.assertEquals(named('{"a":1}', wrong), {}, wrong)
  end
  lu.assertErrorMsgContains("cells expected", hash.named, {}, {}, {})
end

return M
