--- A model that is a Lua function: for tests, for clients of other protocols, for models in the same process.
local synthetic = require "agentbox.models.synthetic"
local time = require "agentbox.time"

local M = {}

local Model = { __name = "agentbox.Model" }
Model.__index = Model

---@async
---@param request agentbox.Request
---@return agentbox.Response? response
---@return agentbox.Err? err
function Model:complete(request)
  local queued = time.now()
  local answer, err = self._answer(request)
  if answer == nil then
    if type(err) == "table" then return nil, err end
    return nil, require "agentbox.err".new("model", tostring(err or "the model function returned nothing"))
  end
  return synthetic.response(self.name, request, answer, queued)
end

function Model:describe()
  return { name = self.name, kind = "fn" }
end

function Model.close() end
Model.__close = Model.close

---@param answer fun(request: agentbox.Request): table|string|nil, agentbox.Err?
---@param name? string
---@return agentbox.Model
function M.new(answer, name)
  if type(answer) ~= "function" then error("model.fn: function expected, got " .. type(answer), 3) end
  return setmetatable({ name = name or "fn", _answer = answer }, Model)
end

return M
