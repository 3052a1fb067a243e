--- agents/dialogue.lua: the tool loop with somebody at the other end. When the agent answers instead of calling a tool, a
--- model plays the user: it reads the answer and says what the user says next, until it is content.
---
---     agent = ab.agent.dialogue {
---       user = { model = "user", system = "You are a customer who wants a refund. Say ###STOP### when you have it." },
---     }
---
--- The user is a speaker of its own (docs/agent.md): its calls are in the record and masked in training, unless `trainable`
--- says that it is trained too. Its failures are the environment's and leave the rollout unscored.
local err = require "agentbox.err"
local json = require "agentbox.json"
local models = require "agentbox.model"
local schema = require "agentbox.schema"
local text = require "agentbox.text"
local tool_loop = require "agentbox.agents.tool_loop"

local M = {}

local USER = {
  model = { "any", default = "user" },       -- a role of the run, a model, or the options of model.open
  system = { "string|function", required = true },   -- who the user is and wants; or (ctx) → that text
  stop = { "string", default = "###STOP###" },       -- what it says when it is content
  name = { "string", default = "user" },
  trainable = { "boolean", default = false },
  sampling = { "map" },
  max_exchanges = { "integer", default = 20, min = 1 },
  max_chars = { "integer", default = 8000, min = 1 }, -- of one thing that it says
}

-- Its own thread: what the agent answers is said to it, what it says is sampled.
local function begin(ctx, opts)
  local model, problem = models.of_role(opts.model)
  if not model then error(problem, 0) end
  local system = opts.system
  if type(system) == "function" then system = system(ctx) end
  return ctx:thread {
    name = opts.name, model = model, trainable = opts.trainable, sampling = opts.sampling, system = system,
  }
end

-- A user that cannot speak ends the rollout as what it is, never as the agent's fault.
local function say(user, opts)
  local response, problem = user:ask()
  if not response then
    problem.class, problem.waited_s = problem.code == "cancelled" and problem.class or "model_server", nil
    error(err.wrap(problem, "the user's model"), 0)
  end
  local said = response.message.content
  if type(said) ~= "string" or said == json.null or not said:find "%S" then return nil end
  return (text.cut(said, opts.max_chars))
end

-- What the tool loop asks when the agent has answered.
local function hook(opts)
  local user, exchanges = nil, 0
  return function(ctx, answer)
    user = user or begin(ctx, opts)
    exchanges = exchanges + 1
    user:inject("user", answer)
    local said = say(user, opts)
    if not said then return nil, "the user had nothing more to say" end
    if said:find(opts.stop, 1, true) then return nil, "the user is content" end
    if exchanges >= opts.max_exchanges then return nil, ("%d exchanges with the user"):format(exchanges) end
    return said
  end
end

--- Makes the agent. `user` says who is at the other end; all else is the tool loop's.
---@param opts table   # user = { model, system, stop, name, trainable, sampling, max_exchanges, max_chars }
---@return fun(ctx: agentbox.Ctx): string, any
function M.new(opts)
  local loop = {}
  for key, value in pairs(opts or {}) do loop[key] = value end
  local user = schema.options(loop.user, USER, "agent.dialogue: user")
  if loop.on_answer then error("agent.dialogue: on_answer is the user's", 2) end
  loop.user = nil
  tool_loop.new(loop) -- a mistake among the options is told here, not in a rollout
  return function(ctx)
    local own = { on_answer = hook(user) }
    for key, value in pairs(loop) do own[key] = value end
    return tool_loop.new(own)(ctx)
  end
end

return M
