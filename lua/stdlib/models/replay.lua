--- A model that answers as a recorded trajectory did, call by call.
---
--- Each session replays from the start. With `strict` (the default) the messages of a request must be those that were
--- recorded: a replay that went another way says where, instead of giving answers to other questions.
local err = require "agentbox.err"
local json = require "agentbox.json"
local schema = require "agentbox.schema"
local synthetic = require "agentbox.models.synthetic"
local time = require "agentbox.time"
local wire = require "agentbox.models.wire"

local M = {}

local OPTIONS = {
  traj = { "string|table", required = true },   -- a path, or a trajectory
  strict = { "boolean", default = true },
  purpose = { "string", default = "agent" },    -- which of the recorded calls
}

local Model = { __name = "agentbox.Model", close = function() end }
Model.__index = Model
Model.keeps_time = true -- request.timeout_s needs no second clock
Model.__close = Model.close

local function messages_of(text)
  local decoded = json.decode(text)
  return type(decoded) == "table" and decoded.messages or nil
end

-- The first message that differs, as a sentence; nil when all are the same.
local function difference(recorded, messages)
  for i = 1, math.max(#recorded, #messages) do
    if not recorded[i] then return ("message %d was not in the recorded request"):format(i) end
    if not messages[i] then return ("the recorded request had a message %d"):format(i) end
    local was = json.encode(recorded[i], { sorted = true })
    local is = json.encode(wire.outgoing(messages[i]), { sorted = true })
    if was ~= is then
      return ("message %d differs: recorded %s, now %s"):format(i, was:sub(1, 120), is:sub(1, 120))
    end
  end
end

local function check(self, call, request)
  if not self._strict then return nil end
  local text, problem = self._traj:body(call, "request")
  if not text then return problem end
  local recorded = messages_of(text)
  local what = recorded and difference(recorded, request.messages)
  return what and err.new("model", ("replay: call %d: %s"):format(call.i, what)) or nil
end

---@async
---@param request agentbox.Request
---@return agentbox.Response? response
---@return agentbox.Err? err
function Model:complete(request)
  local session, queued = request.session or "", time.now()
  local n = (self._at[session] or 0) + 1
  local call = self._calls[n]
  if not call then return nil, err.new("model", ("replay: only %d calls were recorded"):format(#self._calls)) end
  local problem = check(self, call, request)
  if problem then return nil, problem end
  local text
  text, problem = self._traj:body(call, "response")
  if not text then return nil, problem end
  self._at[session] = n
  local response
  response, problem = synthetic.of_text(self.name, request, text, queued)
  return response, problem
end

function Model:describe()
  return { name = self.name, kind = "replay", traj = self._traj.id, calls = #self._calls }
end

---@async
---@param opts { traj: string|table, strict?: boolean, purpose?: string }
---@return agentbox.Model? model
---@return agentbox.Err? err
function M.new(opts)
  opts = schema.options(opts, OPTIONS, "model.replay", 2)
  local traj = opts.traj
  if type(traj) == "string" then
    local problem
    traj, problem = require "agentbox.traj".load(traj)
    if not traj then return nil, problem end
  end
  local calls = {}
  for call in traj:calls { purpose = opts.purpose } do
    if call.response then calls[#calls + 1] = call end
  end
  if #calls == 0 then return nil, err.new("notfound", "replay: the trajectory has no recorded response") end
  return setmetatable({ name = "replay", _traj = traj, _calls = calls, _strict = opts.strict, _at = {} }, Model)
end

return M
