--- What was sent with a call. A request repeats the whole history, so it is told by what the graph does not hold
--- already (record/body.lua), and what a turn costs here is what it added.
local body = require "agentbox.record.body"
local list = require "agentbox.sys.list"
local secret = require "agentbox.secret"
local wire = require "agentbox.models.wire"

local M = {}

local outgoing = wire.outgoing

---@class agentbox.RecordPath
---@field leaf integer
---@field count integer
---@field messages agentbox.Message[]   # those of the path, and their contents when they were recorded
---@field contents any[]
---@field nodes integer[]             # their numbers + 1
---@field whole boolean                # they are all nodes there are up to the last, in their order
---@field clean boolean                 # a server gets them as they are
---@field done? integer                 # how many of them the hasher has had
---@field form? string
---@field list? agentbox.Message[]      # what was compared with it last

-- The path to `leaf`. It mostly goes on from that of the call before.
local function path_to(rec, leaf)
  local known, parents = rec._path, rec._p
  local from, fresh, at = known and known.leaf, nil, leaf
  while at and at ~= from do
    fresh = fresh or {}
    fresh[#fresh + 1] = at
    at = parents[at + 1]
  end
  if not from or at ~= from then
    known = { count = 0, messages = {}, contents = {}, nodes = {}, clean = true, whole = true }
    rec._path = known
  end
  known.leaf = leaf
  for i = fresh and #fresh or 0, 1, -1 do
    local n, node = known.count + 1, fresh[i] + 1
    local message = rec._said[node]
    if known.clean and outgoing(message) ~= message then known.clean = false end
    known.messages[n], known.contents[n] = message, message.content or false
    known.nodes[n], known.count = node, n
    known.whole = known.whole and node == n
  end
  return known
end

--- How far back a list that was looked at before is looked at again.
local LOOK_BACK = 256

-- Whether these are the messages of the path, as they were recorded and as a server gets them.
local function is_path(path, messages, count)
  if not path.clean or count ~= path.count then return false end
  local from = path.list == messages and count > LOOK_BACK and count - LOOK_BACK or 1
  path.list = messages
  return list.same(messages, path.messages, from, count)
    and list.have(messages, "content", path.contents, from, count)
end

local function messages_text(rec, path)
  if path.whole then return rec._m:joined(path.count) end
  local texts = {}
  for i, node in ipairs(path.nodes) do texts[i] = rec._m:get(node) end
  return "[" .. table.concat(texts, ",") .. "]"
end

--- The JSON text of a history as it goes on the wire, put together from what is recorded; nil when the record has it
--- in another form.
---@param rec agentbox.Recorder
---@param leaf integer
---@param messages agentbox.Message[]
---@return string?
function M.history(rec, leaf, messages)
  if rec._altered then return nil end
  local path = path_to(rec, leaf)
  return is_path(path, messages, #messages) and messages_text(rec, path) or nil
end

-- The request of a model that has no server: its bytes follow from the path, and only their hash is made. Nil when the
-- rest of it is too large to stand in the line.
local function unsent_text(rec, path, form)
  form = secret.redact(form)
  if path.form ~= form then
    path.form, path.frame, path.done, path.bytes = form, body.frame(form, rec._tools), 0, #form
    path.hasher = path.frame and body.hasher(path.frame)
  end
  if not path.frame then return nil end
  local hasher = path.hasher
  for i = path.done + 1, path.count do
    local text = rec._m:get(path.nodes[i])
    if i > 1 then hasher:update "," end
    hasher:update(text)
    path.bytes = path.bytes + #text + (i > 1 and 1 or 0)
  end
  path.done = path.count
  return body.framed(path.frame, hasher, path.bytes)
end

--- The JSON text of a call's `request`, or nil when nobody knows what was sent.
---@param rec agentbox.Recorder
---@param opts agentbox.CallOpts
---@return string?
function M.of(rec, opts)
  local source = opts.response or opts.error
  if not source then return nil end
  local unsent, leaf = source.unsent, opts.leaf
  if unsent and unsent.form and leaf then
    local path = path_to(rec, leaf)
    local text = is_path(path, unsent.request.messages, unsent.count) and unsent_text(rec, path, unsent.form)
    if text then return text end
  end
  if not source.raw_request then return nil end
  local sent = secret.redact(source.raw_request)
  if leaf then
    local entry
    if source.history_at and sent == source.raw_request and opts.request._leaf == leaf then
      entry = body.factor_at(sent, source.history_at, source.history_bytes, rec._tools)
    else
      entry = body.factor(sent, messages_text(rec, path_to(rec, leaf)), rec._tools)
    end
    if entry then return entry end
  end
  return body.keep(sent, rec._blobs)
end

return M
