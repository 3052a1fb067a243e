--- One model call as the record holds it: what was sent, what came back, what it cost.
local body = require "agentbox.record.body"
local json = require "agentbox.json"
local plain = require "agentbox.record.plain"
local secret = require "agentbox.secret"
local tokens = require "agentbox.record.tokens"

local M = {}

local function usage_of(usage)
  if not usage then return nil end
  return { prompt = usage.prompt, completion = usage.completion, total = usage.total, cached = usage.cached }
end

local function times_of(call)
  if call.t then return json.array(call.t) end
  local times = (call.response or call.error or {}).times
  if not times or not times.queued then return nil end
  local done = times.done or times.first or times.queued
  return json.array { times.queued, times.first or done, done }
end

-- A step of the weights is pinned by the model's name, as in `fixer@12` or `fixer:step12`.
local function version_of(name)
  return tonumber(name and (name:match "@(%d+)$" or name:match ":step(%d+)$"))
end

-- The path to `leaf` as one JSON array. The next call's path mostly goes on from this one's.
local function messages_text(rec, leaf)
  local known, path, at = rec._path, {}, leaf
  while at and at ~= json.null and at ~= known.leaf do
    local node = rec._nodes[at + 1]
    table.insert(path, 1, node.m:text())
    at = node.p
  end
  if known.leaf and at == known.leaf then table.insert(path, 1, known.text) end
  known.leaf = leaf
  known.text = table.concat(path, ",")
  return "[" .. known.text .. "]"
end

-- Sampling parameters are one table for all calls of a rollout.
local function sampling_of(rec, sampling)
  local known = rec._path
  if known.sampling ~= sampling then
    known.sampling = sampling
    known.sampling_text = rec:_raw(sampling, "sampling")
  end
  return known.sampling_text
end

-- Whether the messages of a request are those of the path to `leaf`, as they were recorded and as a server would have got
-- them. What the path has is kept, so that a turn adds only what is new.
local function is_path(rec, leaf, unsent)
  local messages, outgoing = unsent.request.messages, unsent.outgoing
  local known, fresh, at = rec._unsent, {}, leaf
  while at and at ~= json.null and at ~= known.leaf do
    fresh[#fresh + 1] = at
    at = rec._nodes[at + 1].p
  end
  if at ~= known.leaf or not known.leaf then
    known = { count = 0, messages = {}, contents = {}, nodes = {}, done = 0, clean = true }
    rec._unsent = known
  end
  known.leaf = leaf
  for i = #fresh, 1, -1 do
    local node, n = rec._nodes[fresh[i] + 1], known.count + 1
    local message = rec._messages[node]
    known.clean = known.clean and outgoing(message) == message
    known.messages[n], known.contents[n], known.nodes[n], known.count = message, message.content, node, n
  end
  if not known.clean or unsent.count ~= known.count then return false end
  local recorded, contents = known.messages, known.contents
  for i = 1, known.count do
    local message = messages[i]
    if message ~= recorded[i] or message.content ~= contents[i] then return false end
  end
  return true
end

-- The request of a model that has no server: its bytes follow from the path, and only their hash is made. Nil when the
-- rest of it is too large to stand in the line.
local function unsent_of(rec, call)
  local form = secret.redact(call.response.unsent.form)
  local path = rec._unsent
  if path.form ~= form then
    path.form, path.frame, path.done, path.bytes = form, body.frame(form, rec._tools), 0, #form
    path.hasher = path.frame and body.hasher(path.frame)
  end
  if not path.frame then return nil end
  for i = path.done + 1, path.count do
    local text = path.nodes[i].m:text()
    if i > 1 then path.hasher:update "," end
    path.hasher:update(text)
    path.bytes = path.bytes + #text + (i > 1 and 1 or 0)
  end
  path.done = path.count
  return body.framed(path.frame, path.hasher, path.bytes)
end

local function request_of(rec, call)
  local source = call.response or call.error or {}
  local unsent = source.unsent
  if unsent and unsent.form and call.leaf and is_path(rec, call.leaf, unsent) then
    local entry = unsent_of(rec, call)
    if entry then return entry end
  end
  if not source.raw_request then return nil end
  local sent = secret.redact(source.raw_request)
  if call.leaf then
    local entry = body.factor(sent, messages_text(rec, call.leaf), rec._tools)
    if entry then return entry end
  end
  return body.keep(sent, rec._blobs)
end

local function failure_of(rec, err)
  return rec:_raw({
    code = err.code, msg = plain.reason(err.msg or err), http_status = err.http_status, sys = err.sys, body = err.body,
    tries = err.tries,
  }, "error")
end

-- What only a call that succeeded has.
local function add_answer(rec, call, response, thread)
  if response.raw_response then call.response = body.keep(secret.redact(response.raw_response), rec._blobs) end
  call.response_id = response.response_id
  call.model = response.served_model
  local finish = response.finish or {}
  call.finish = { raw = finish.raw or json.null, norm = finish.norm or "other" }
  call.tokens, rec._bases[thread] = tokens.pack(response.tokens, call.i, rec._bases[thread])
  local version = version_of(response.served_model) or version_of(rec._opts.model and rec._opts.model.name)
  if version then call.versions = { { n = call.tokens and call.tokens.n_out or 0, v = version } } end
  call.usage = usage_of(response.usage)
  if response.repaired then call.repaired = true end
  if response.notes and #response.notes > 0 then
    call.notes = rec:_raw(table.move(response.notes, 1, #response.notes, 1, {}), "notes")
  end
end

--- Makes the entry of a call.
---@param rec agentbox.Recorder
---@param opts agentbox.CallOpts
---@param index integer
---@param name string       # who spoke
---@param purpose string
---@return table call
function M.build(rec, opts, index, name, purpose)
  local response, request = opts.response, opts.request or {}
  local wanted = opts.trainable
  if wanted == nil then wanted = purpose == "agent" end
  local call = {
    i = index, agent = name, purpose = purpose, trainable = response ~= nil and wanted, api = "chat",
    session = request.session, request = request_of(rec, opts), leaf = opts.leaf,
    sampling = sampling_of(rec, request.sampling), tries = (response or opts.error or {}).tries, t = times_of(opts),
  }
  if response then
    add_answer(rec, call, response, opts.thread or "main")
  else
    call.out = json.null
    call.error = opts.error and failure_of(rec, opts.error)
  end
  return call
end

return M
