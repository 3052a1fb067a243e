--- One model call as the record holds it: what was sent, what came back, what it cost. Its JSON text is made at once;
--- what the line says about all calls together is summed up here.
local body = require "agentbox.record.body"
local json = require "agentbox.json"
local plain = require "agentbox.record.plain"
local request = require "agentbox.record.request"
local secret = require "agentbox.secret"
local sys = require "agentbox.sys.json"
local tokens = require "agentbox.record.tokens"

local M = {}

local redact, tuple = secret.redact, sys.tuple

local put_call = sys.row({
  "agent", "api", "error", "finish", "i", "leaf", "model", "notes", "out", "purpose", "repaired", "request", "response",
  "response_id", "sampling", "session", "t", "tokens", "trainable", "tries", "usage", "versions",
}, { error = true, finish = true, notes = true, request = true, response = true, sampling = true, t = true, usage = true })
local put_finish = sys.row { "norm", "raw" }
local put_usage = sys.row { "cached", "completion", "prompt", "total" }

---@class agentbox.CallSums
---@field model_calls integer       # of the agent, that succeeded
---@field usage? table              # nil: no server told any
---@field low? integer              # version of the weights
---@field high? integer
---@field sampled boolean           # there is a call to train on
---@field evidence boolean          # one of them has token ids
---@field why string[]              # why not to train on them
---@field out table<integer, boolean>   # calls of which a message came
---@field steps table<integer, integer>   # ordinals of the turns that ran tools, by node; -1 is before any
---@field next_step integer

---@return agentbox.CallSums
function M.sums()
  return { model_calls = 0, sampled = false, evidence = false, why = {}, out = {}, steps = {}, next_step = 0 }
end

local function add_usage(sums, usage)
  local sum = sums.usage or {}
  sums.usage = sum
  for _, name in ipairs { "prompt", "completion", "total", "cached" } do
    if usage[name] then sum[name] = (sum[name] or 0) + usage[name] end
  end
end

-- What training may hold against a call that it may train on.
local function weigh(sums, index, call, problem)
  sums.sampled = true
  if tokens.is_rl_grade(call) then
    sums.evidence = true
    if call.tokens.drift == "unknown" then table.insert(sums.why, ("call %d: drift unknown"):format(index)) end
    if problem then table.insert(sums.why, ("call %d: %s"):format(index, problem)) end
  elseif sums.evidence then
    table.insert(sums.why, ("call %d: no token ids from the server"):format(index))
  end
end

-- A step of the weights is pinned by the model's name, as in `fixer@12` or `fixer:step12`.
local function version_of(name)
  return tonumber(name and (name:match "@(%d+)$" or name:match ":step(%d+)$"))
end

-- Most calls of a rollout name the same models.
local function known_version(rec, served)
  local sums = rec._sums
  if sums.versioned ~= served or served == nil then
    sums.versioned = served
    sums.version = version_of(served) or version_of(rec._opts.model and rec._opts.model.name)
  end
  return sums.version
end

local function times_of(rec, index, opts)
  local t = opts.t
  local a, b, c
  if t then
    a, b, c = t[1], t[2], t[3]
  else
    local times = (opts.response or opts.error or {}).times
    if not times or not times.queued then return nil end
    a, c = times.queued, times.done or times.first or times.queued
    b = times.first or c
  end
  if c then
    rec._checker:times("calls", index, a, b, c)
    return tuple(a, b, c)
  end
  return json.encode(json.array(t))
end

-- Sampling parameters are one table for all calls of a rollout.
local function sampling_of(rec, sampling)
  if sampling == nil then return nil end
  local sums = rec._sums
  if sums.sampling ~= sampling then
    sums.sampling = sampling
    sums.sampling_text = rec:_text(sampling, "sampling")
  end
  return sums.sampling_text
end

local function failure_of(rec, err)
  return rec:_text({
    code = err.code, msg = plain.reason(err.msg or err), http_status = err.http_status, sys = err.sys, body = err.body,
    tries = err.tries,
  }, "error")
end

local NO_FINISH = {}

-- So do the reasons why they ended.
local function finish_of(rec, finish)
  local known, norm, raw = rec._sums.finish, finish.norm, finish.raw
  if not known or known.norm ~= norm or known.raw ~= raw then
    known = { norm = norm, raw = raw, text = put_finish(norm or "other", raw or json.null) }
    rec._sums.finish = known
  end
  return known.text
end

-- A run that announces its weights says which ones a call was sent for; else the model's name may.
local function versions_of(rec, sums, response, n_out, purpose)
  if purpose == "aux" then return nil end -- another model, whose weights are nobody's business
  local version = response.version or known_version(rec, response.served_model)
  if not version then return nil end
  sums.low, sums.high = math.min(sums.low or version, version), math.max(sums.high or version, version)
  return { { n = n_out or 0, v = version } }
end

local function notes_of(rec, notes, earlier)
  notes = notes or NO_FINISH
  if #notes == 0 and not earlier then return nil end
  local all = table.move(notes, 1, #notes, 1, {})
  if earlier then all[#all + 1] = ("the server gave this response id to call %d too"):format(earlier) end
  return rec:_text(all, "notes")
end

local IS_POLICY = { agent = true, subagent = true, compaction = true }

local function answered(rec, opts, index, name, purpose, trainable, out)
  local response, sums, asked = opts.response, rec._sums, opts.request or NO_FINISH
  local thread = opts.thread or "main"
  local usage, planes, n_out = response.usage, nil, nil
  if response.tokens then
    local bases = sums.bases or {}
    sums.bases = bases
    planes, bases[thread] = tokens.pack(response.tokens, index, bases[thread])
    n_out = planes and planes.n_out
  end
  local versions = versions_of(rec, sums, response, n_out, purpose)
  local problem
  local call = NO_FINISH
  if planes or versions then
    call = { tokens = planes, versions = versions }
    problem = rec._checker:planes(index, call)
  end
  local earlier = rec._checker:call(index, purpose, false, response.response_id, response.served_model)
  if trainable then weigh(sums, index, call, problem) end
  if usage and IS_POLICY[purpose] then add_usage(sums, usage) end -- what others cost is not the policy's
  if purpose == "agent" then sums.model_calls = sums.model_calls + 1 end
  local text = response.raw_response
  return put_call(name, "chat", nil, finish_of(rec, response.finish or NO_FINISH), index, opts.leaf, response.served_model,
    notes_of(rec, response.notes, earlier), out, purpose, response.repaired and true or nil, request.of(rec, opts),
    text and body.keep(redact(text), rec._blobs, response.made), response.response_id, sampling_of(rec, asked.sampling),
    asked.session, times_of(rec, index, opts), planes, trainable, response.tries,
    usage and put_usage(usage.cached, usage.completion, usage.prompt, usage.total), versions)
end

local function failed(rec, opts, index, name, purpose)
  local problem, asked = opts.error, opts.request or NO_FINISH
  rec._checker:call(index, purpose, problem ~= nil)
  if not problem and purpose == "agent" then rec._sums.model_calls = rec._sums.model_calls + 1 end
  return put_call(name, "chat", problem and failure_of(rec, problem), nil, index, opts.leaf, nil, nil, json.null,
    purpose, nil, request.of(rec, opts), nil, nil, sampling_of(rec, asked.sampling), asked.session,
    times_of(rec, index, opts), nil, false, problem and problem.tries)
end

--- Makes the entry of a call.
---@param rec agentbox.Recorder
---@param opts agentbox.CallOpts
---@param index integer
---@param name string       # who spoke
---@param purpose string
---@param out? integer      # the node that will have its message, when that is known
---@return string text
function M.text(rec, opts, index, name, purpose, out)
  if not opts.response then return failed(rec, opts, index, name, purpose) end
  local trainable = opts.trainable
  if trainable == nil then trainable = purpose == "agent" end
  return answered(rec, opts, index, name, purpose, trainable, out)
end

--- Names the first message that came of a call, in its entry.
---@param rec agentbox.Recorder
---@param call integer
---@param node integer
function M.came_of(rec, call, node)
  rec._sums.out[call + 1] = true
  rec._calls:set(call + 1, sys.member(rec._calls:get(call + 1), "out", node))
end

return M
