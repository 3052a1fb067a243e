--- Models: something that answers a conversation. All kinds have one contract.
---
---     model:complete(request) → response | nil, err      waits
---     model:describe()        → table                    for the record; nothing secret
---     model:close()
---
--- A request is { messages, tools, tool_choice, sampling, session, stream, timeout_s }; see agentbox.Response for what
--- comes back. `open` talks to a server, `scripted` replays a script, `replay` a recorded trajectory, `fn` calls a
--- function.
local err = require "agentbox.err"
local schema = require "agentbox.schema"
local secret = require "agentbox.secret"

local M = {}

---@class agentbox.Model
---@field name string
---@field complete fun(self: agentbox.Model, request: agentbox.Request): agentbox.Response?, agentbox.Err?
---@field describe fun(self: agentbox.Model): table
---@field close fun(self: agentbox.Model)

---@class agentbox.Request
---@field messages agentbox.Message[]
---@field tools? table[]          # wire schemas
---@field tool_choice? string     # default "auto" when there are tools
---@field sampling? table         # over those of the model
---@field session? string         # the same for all calls of a rollout
---@field stream? boolean
---@field timeout_s? number       # for the call, its retries included

---@class agentbox.Message
---@field role "system"|"developer"|"user"|"assistant"|"tool"
---@field content? string
---@field tool_calls? agentbox.ToolCall[]
---@field tool_call_id? string
---@field name? string

---@class agentbox.ToolCall
---@field id string
---@field type "function"
---@field function { name: string, arguments: string }   # arguments: JSON text of an object
---@field parse_error? string     # what was wrong with the arguments that the model wrote
---@field raw_arguments? string   # what it wrote, when `arguments` is not that

---@class agentbox.Response
---@field message agentbox.Message   # ids of its calls are unique, their arguments valid JSON
---@field finish { raw?: string, norm: "stop"|"tool_calls"|"length"|"content_filter"|"other" }
---@field usage? { prompt: integer, completion: integer, total: integer, cached?: integer }   # nil: unknown
---@field tokens? { src: string, prompt?: agentbox.JsonRaw, out?: agentbox.JsonRaw, lp?: agentbox.JsonRaw }
---@field logprobs? agentbox.JsonRaw
---@field raw_request string      # the body as it was sent
---@field raw_response string     # the body as it came; a streamed one put together
---@field response_id? string
---@field served_model? string
---@field tries integer
---@field times { queued: number, first: number, done: number }   # unix seconds
---@field repaired boolean        # something was not quite JSON
---@field notes string[]          # what was changed: ids replaced, arguments repaired

local SAMPLING = {
  temperature = { "number" }, top_p = { "number" }, max_tokens = { "integer", min = 1 },
  max_completion_tokens = { "integer", min = 1 }, seed = { "integer|string" }, stop = { "any" },
  presence_penalty = { "number" }, frequency_penalty = { "number" }, top_k = { "integer" }, min_p = { "number" },
  repetition_penalty = { "number" }, logprobs = { "boolean" }, top_logprobs = { "integer" }, logit_bias = { "map" },
  reasoning_effort = { "string" }, parallel_tool_calls = { "boolean" }, response_format = { "map" },
}

local OPTIONS = {
  model = { "string", required = true },
  base_url = { "string" }, base_urls = { "list", of = { "string" } },
  api_key = { "any" },
  timeout_s = { "number", default = 120, min = 0.001 },          -- one try
  connect_timeout_s = { "number", default = 10, min = 0.001 },
  idle_timeout_s = { "number", default = 60, min = 0.001 },      -- silence in the middle of an answer
  max_tries = { "integer", default = 8, min = 1 },
  max_retry_s = { "number", default = 600, min = 0 },            -- tries and waits together
  retry_base_s = { "number", default = 0.5, min = 0 },
  retry_cap_s = { "number", default = 30, min = 0 },
  on_retry = { "function" },
  sampling = { "map", fields = SAMPLING },
  extra_headers = { "table" }, extra_body = { "map" },
  stream = { "boolean", default = false },
  tokens = { "string", default = "auto", enum = { "auto", "require", "none" } },
  limit = { "integer", min = 1 },                                -- calls at once to each server; the rest queue
  adaptive = { "boolean", default = true },                      -- fewer at once when a server says 429
  target_latency_s = { "number", min = 0.001 },                  -- and when an answer takes longer than this
  requests_per_minute = { "number", min = 0.001 }, tokens_per_minute = { "number", min = 1 },
  max_body_bytes = { "integer", default = 256 << 20, min = 1 },
  abort_path = { "string" },                                     -- where a server is told to give up a request
  unix_socket = { "string" }, proxy = { "string|boolean" }, ca_file = { "string" }, insecure = { "boolean" },
}
for name, field in pairs(SAMPLING) do OPTIONS[name] = field end

M.DEFAULT_BASE_URL = "https://api.openai.com/v1"

local function sampling_problem(sampling)
  for name, value in pairs(sampling) do
    if type(value) == "number" and (value ~= value or math.abs(value) == math.huge) then
      return ("sampling.%s: must be finite"):format(name)
    end
  end
  if type(sampling.seed) == "string" and sampling.seed ~= "per_member" then
    return 'seed must be a number or "per_member"'
  end
end

local function header_problem(headers)
  for name, value in pairs(headers or {}) do
    if type(name) == "number" then name, value = table.unpack(value) end
    if type(name) ~= "string" or not name:find "^[%w!#$%%&'*+.^_`|~-]+$" then
      return ("extra_headers: %s is not a header's name"):format(schema.word(name))
    elseif type(value) ~= "string" and type(value) ~= "number" or tostring(value):find "[\r\n%z]" then
      return ("extra_headers.%s: must be one line of text"):format(name)
    end
  end
end

local function server_problem(opts)
  if opts.model == "" then return "model: is empty" end
  if #opts.base_urls == 0 then return "base_urls: is empty" end
  for _, url in ipairs(opts.base_urls) do
    if not url:find "^https?://[^/]" then return "base_url must begin with http:// or https://: " .. url:gsub("//[^/@]*@", "//***@") end
  end
  if type(opts.api_key) == "string" and opts.api_key:find "%c" then return "api_key: holds a control character" end
  if opts.abort_path and not opts.abort_path:find "^/[%w%p]*$" then return "abort_path: a path that begins with / expected" end
  return header_problem(opts.extra_headers) or sampling_problem(opts.sampling)
end

local function sampling_of(opts)
  local sampling, per_member = {}, false
  for name, value in pairs(opts.sampling or {}) do sampling[name] = value end
  for name in pairs(SAMPLING) do
    if opts[name] ~= nil then sampling[name] = opts[name] end
  end
  if sampling.seed == "per_member" then sampling.seed, per_member = nil, true end
  return sampling, per_member
end

local function key_of(opts)
  local key = opts.api_key
  if key == nil or key == "" then key = os.getenv "OPENAI_API_KEY" end
  if key == nil or key == "" then return "EMPTY" end
  return secret.is(key) and key or secret.new(key)
end

--- The same of options that somebody wrote into a file: what is wrong with them is an error value.
---@param opts table
---@return agentbox.Model? model
---@return agentbox.Err? err   # code `config`
function M.configured(opts)
  local clean, bad = schema.check(opts, OPTIONS)
  if not clean then return nil, bad end
  local per_member
  clean.sampling, per_member = sampling_of(clean)
  clean.assumed = not clean.base_urls and not clean.base_url
  clean.base_urls = clean.base_urls or { clean.base_url or M.DEFAULT_BASE_URL }
  local problem = server_problem(clean)
  if problem then return nil, err.new("config", problem) end
  clean.api_key = key_of(clean)
  local model = require "agentbox.models.openai".new(clean)
  model.seed_per_member = per_member
  return model
end

--- A model behind an OpenAI-compatible server. Unknown options are refused.
---
--- Raises on bad options.
---@param opts table   # model is required; docs/models.md has them all
---@return agentbox.Model
function M.open(opts)
  if type(opts) ~= "table" then error("model.open: options must be a table, is " .. schema.word(opts), 2) end
  local model, problem = M.configured(opts)
  if not model then error("model.open: " .. problem.msg, 2) end
  return model
end

--- A model that says what a script says; see models/scripted.lua.
---@param turns table
---@return agentbox.Model
function M.scripted(turns)
  return require "agentbox.models.scripted".new(turns)
end

--- A model that answers as a recorded trajectory did; see models/replay.lua.
---@async
---@param opts { traj: string|table, strict?: boolean }
---@return agentbox.Model? model
---@return agentbox.Err? err
function M.replay(opts)
  return require "agentbox.models.replay".new(opts)
end

--- A model that is a function: it gets the request and returns an assistant message (or a text), or nil, err.
---@param answer fun(request: agentbox.Request): table|string|nil, agentbox.Err?
---@return agentbox.Model
function M.fn(answer)
  return require "agentbox.models.fn".new(answer)
end

--- A model, whatever was given: a handle, a function, a list of turns, options, or a server's model name.
---@param what any
---@return agentbox.Model? model
---@return agentbox.Err? err
function M.resolve(what)
  if type(what) == "table" and what.complete then return what end
  if type(what) == "function" then return M.fn(what) end
  if type(what) == "string" then return M.open { model = what } end
  if type(what) ~= "table" then return nil, err.new("config", "no model given") end
  if what[1] then return M.scripted(what) end
  return M.open(what)
end

--- The model that an option names: a text is a role, looked for in the run that the fiber belongs to; all else is as for
--- `resolve`.
---@param given any
---@return agentbox.Model? model
---@return agentbox.Err? err     # code `config`
function M.of_role(given)
  if type(given) == "string" then return require("agentbox.runner").model(given) end
  return M.resolve(given)
end

return M
