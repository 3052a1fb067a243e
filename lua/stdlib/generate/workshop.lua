--- generate/workshop.lua: one sandboxed Python interpreter that reads the source of all candidates, one after another.
---
--- An interpreter costs more to start than a file to parse, so it is kept; when a source brings it down, that source's
--- candidate gets the blame and the next one a new interpreter.
local async = require "agentbox.async"
local err = require "agentbox.err"
local json = require "agentbox.json"
local reader = require "agentbox.generate.python_reader"
local sandbox = require "agentbox.sandbox"

local M = {}

local ANSWER_S, MAX_ANSWER = 20, 64 << 20

---@class agentbox.Workshop
local Workshop = {}
Workshop.__index = Workshop

--- Opens a workshop; the interpreter is started when it is first needed.
---@param spec? table   # for sandbox.create: backend, image
---@return agentbox.Workshop
function M.new(spec)
  return setmetatable({ _spec = spec or {}, _turn = async.semaphore(1) }, Workshop)
end

local function start(self)
  if self._process then return true end
  local problem
  self._box, problem = sandbox.create {
    backend = self._spec.backend, image = self._spec.image, network = "none", limits = { memory_mb = 512, pids_limit = 32 },
  }
  if not self._box then return nil, problem end
  self._process, problem = self._box:spawn { "python3", "-I", "-u", "-c", reader.SOURCE }
  if self._process then return true end
  self:_stop()
  return nil, problem
end

function Workshop:_stop()
  if self._process then self._process:close() end
  if self._box then self._box:close() end
  self._process, self._box = nil, nil
end

--- Puts a question; `files` maps paths to source.
---@async
---@param op "read"|"mutate"
---@param files table<string, string>
---@param more? table            # seed, max
---@return table? answer
---@return agentbox.Err? err     # code `parse`: the source is to blame
function Workshop:ask(op, files, more)
  local held <close> = self._turn:acquire() -- luacheck: ignore
  local ok, problem = start(self)
  if not ok then return nil, problem end
  local request = json.object { op = op, files = json.object {} }
  for key, value in pairs(more or {}) do request[key] = value end
  for path, text in pairs(files) do request.files[path] = text end
  local line
  line, problem = self._process:ask(json.encode(request) .. "\n", { until_text = "\n", timeout_s = ANSWER_S, max = MAX_ANSWER })
  local answer = line and json.decode(line)
  if not answer then
    self:_stop()
    if problem and problem.code == "sandbox" then return nil, problem end
    return nil, err.new("parse", "the interpreter did not survive reading the source")
  end
  if answer.error then return nil, err.new("parse", "the source cannot be read: " .. answer.error) end
  return answer
end

--- May be called twice.
function Workshop:close() self:_stop() end
Workshop.__close = Workshop.close

return M
