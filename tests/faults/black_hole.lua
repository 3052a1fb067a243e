--- In a network of its own: a server that has read a request, and then a path that drops everything. Prints how the
--- call went. Started by network_test.lua.
local async = require "agentbox.async"
local model = require "agentbox.model"

local fakellm = dofile((arg[0]:match "^(.*/)" or "./") .. "../support/fakellm.lua")

local fake = fakellm.script { steps = { { hang = true }, "after" } }
local port = fakellm.address():match "%d+$"

local function drop(verb)
  for _, side in ipairs { "--dport", "--sport" } do
    assert(os.execute(("iptables %s INPUT -p tcp %s %s -j DROP"):format(verb, side, port)))
  end
end

local seen
local m = model.open {
  model = "fake", base_url = fake.url, retry_base_s = 0.002, proxy = false, timeout_s = 600, -- longer than the test
  on_retry = function(event)
    seen = seen or event.code .. ": " .. event.msg
    drop "-D"
  end,
}
local fiber = async.spawn(function()
  return m:complete { messages = { { role = "user", content = "x" } }, session = "s" }
end)
while #fake.log() == 0 do async.sleep(0.01) end
drop "-I"
local _, response, problem = fiber:join()
print(response and response.message.content or problem.msg, response and response.tries, seen)
