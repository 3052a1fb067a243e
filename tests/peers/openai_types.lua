-- Usage: agentbox script openai_types.lua FILE. Writes the raw bodies of every kind of model as JSON lines.
local json = require "agentbox.json"
local model = require "agentbox.model"

local fakellm = dofile((arg[0]:match "^(.*/)" or "./") .. "../support/fakellm.lua")

local file <close> = assert(io.open(arg[1], "w"))

local CALLS = {
  content = "I will look.",
  tool_calls = { { name = "run_command", arguments = { command = "ls" } }, { name = "now", arguments = {} } },
}
local STEPS = { CALLS, { content = "done", reasoning_content = "hm" }, "done" }
local TOOLS = { {
  type = "function",
  ["function"] = {
    name = "run_command", description = "Run a command.",
    parameters = { type = "object", properties = { command = { type = "string" } }, required = { "command" } },
  },
}, {
  type = "function", ["function"] = { name = "now", parameters = { type = "object", properties = json.object() } },
} }

-- A rollout's turns; gives the bodies.
local function converse(kind, m)
  local request = {
    messages = { { role = "system", content = "Be brief." }, { role = "user", content = "What is here?" } },
    tools = TOOLS, session = kind,
  }
  local bodies = {}
  for _ = 1, #STEPS do
    local response = assert(m:complete(request))
    file:write(json.encode { kind = kind, request = response.raw_request, response = response.raw_response }, "\n")
    bodies[#bodies + 1] = { request = response.raw_request, response = response.raw_response }
    table.insert(request.messages, response.message)
    for _, call in ipairs(response.message.tool_calls or {}) do
      table.insert(request.messages, { role = "tool", tool_call_id = call.id, content = "ok" })
    end
  end
  return bodies
end

local function open(opts)
  local fake = fakellm.script { steps = STEPS, strict = true }
  opts.model, opts.base_url, opts.proxy, opts.max_tokens = "fake", fake.url, false, 64
  return model.open(opts)
end

converse("server", open {})
converse("stream", open { stream = true })
local turn = 0
converse("fn", model.fn(function()
  turn = turn + 1
  return STEPS[turn]
end))

local recorded = converse("scripted", model.scripted(STEPS))
local traj = { id = "t", body = function(_, call, which) return recorded[call.i + 1][which] end }
function traj.calls()
  local i = 0
  return function()
    i = i + 1
    return recorded[i] and { i = i - 1, response = {} } or nil
  end
end
converse("replay", assert(model.replay { traj = traj }))

local evidence = fakellm.script { { content = "abc", logprobs = 2, token_ids = 2 } }
for _, stream in ipairs { false, true } do
  local m = model.open { model = "fake", base_url = evidence.url, proxy = false, stream = stream, logprobs = true }
  local response = assert(m:complete { messages = { { role = "user", content = "x" } }, session = tostring(stream) })
  file:write(json.encode { kind = "tokens", request = response.raw_request, response = response.raw_response }, "\n")
end
