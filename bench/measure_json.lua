--- JSON: the 3 MB log-prob reply (1,950 tokens, 20 alternatives each), chat messages, and lua-cjson beside.
local ab = require "agentbox"
local cjson = require "cjson"
local report = require "report"

local TOKENS, ALTERNATIVES = 1950, 20
local WORDS = { " the", " of", "é", " function", "\n", " return", "ing", " 42", "(", ")", " sandbox", " token" }

local rand = ab.rand.new(7)

--- One alternative without its closing brace.
local function entry()
  local word = WORDS[rand:int(1, #WORDS)]
  return ('{"token":%s,"logprob":%.16g,"bytes":[%s]'):format(ab.json.encode(word), -rand:float() * 12,
    table.concat({ word:byte(1, -1) }, ","))
end

local function reply()
  local tokens = {}
  for i = 1, TOKENS do
    local top = {}
    for k = 1, ALTERNATIVES do top[k] = entry() .. "}" end
    tokens[i] = ('%s,"top_logprobs":[%s]}'):format(entry(), table.concat(top, ","))
  end
  return ('{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"hello","tool_calls":[{"id":"t",'
    .. '"type":"function","function":{"name":"f","arguments":"{}"}}]},"logprobs":{"content":[%s]},'
    .. '"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1950,"total_tokens":1959}}')
    :format(table.concat(tokens, ","))
end

local function chat()
  local messages = {}
  for i = 1, 200 do
    messages[i] = { role = i % 2 == 0 and "user" or "assistant", content = ('Line one,\n"quoted" é.\n'):rep(40) }
  end
  return ab.json.encode { messages = messages }
end

--- The median of CPU microseconds.
local function cpu(rounds, f)
  local samples = {}
  for i = 1, rounds * 4 do
    collectgarbage()
    collectgarbage "stop"
    local began = os.clock()
    f()
    samples[i] = (os.clock() - began) * 1e6
    collectgarbage "restart"
  end
  return report.quantile(samples, 0.5)
end

local function against_cjson(what, size, ours_us, cjson_us)
  report.row { what = ("%s (%.0f MB/s)"):format(what, size / ours_us), ours = report.us(ours_us),
    peer = "lua-cjson " .. report.us(cjson_us), value = cjson_us / ours_us, unit = "x", better = "more" }
end

local function both(name, text, rounds)
  local ours, theirs = ab.json.decode(text), cjson.decode(text)
  against_cjson(name .. " to Lua", #text, cpu(rounds, function() return ab.json.decode(text) end),
    cpu(rounds, function() return cjson.decode(text) end))
  against_cjson(name .. " from Lua", #text, cpu(rounds, function() return ab.json.encode(ours) end),
    cpu(rounds, function() return cjson.encode(theirs) end))
end

---@param rounds integer
return function(rounds)
  local text = reply()
  local us = cpu(rounds, function()
    local value = assert(ab.json.decode(text, { raw = { "logprobs" } }))
    local choice = value.choices[1]
    assert(choice.message.content == "hello" and #choice.message.tool_calls == 1 and value.usage.total_tokens == 1959)
    assert(#choice.logprobs:text() > 2500000)
  end)
  report.row { what = ("content, calls, usage and raw logprobs of %.1f MB (CPU)"):format(#text / 1e6),
    ours = report.us(us), value = us / 1000, unit = "ms", must = 5, better = "less" }
  both("log-prob reply", text, rounds)
  both("chat messages", chat(), rounds)
end
