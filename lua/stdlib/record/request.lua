--- What was sent with a call. A request repeats the whole history, so it is told by what the graph does not hold
--- already (record/body.lua), and what a turn costs here is what it added.
local body = require "agentbox.record.body"
local list = require "agentbox.sys.list"
local node_of = require "agentbox.record.node"
local secret = require "agentbox.secret"
local wire = require "agentbox.models.wire"

local M = {}

local outgoing = wire.outgoing

--- Messages on the way to a leaf. On a whole path they are all nodes that there are up to the last, each of which
--- follows the one before: it needs no lists of its own.
---@class agentbox.RecordPath
---@field count integer
---@field clean boolean                 # a server gets them as they are
---@field nodes? integer[]              # their numbers + 1; nil for a whole path, as are the next three
---@field leaf? integer
---@field messages? agentbox.Message[]
---@field contents? any[]               # what they said when they were recorded
---@field done? integer                 # how many of them the hasher has had
---@field form? string
---@field list? agentbox.Message[]|false   # what was compared with it last

-- A path that goes on from `path` to the leaf, when that is one.
local function whole_path(rec, path, leaf)
  if not path or path.nodes or leaf < path.count - 1 then path = { count = 0, clean = true, list = false } end
  local messages = rec._said
  for n = path.count + 1, leaf + 1 do
    if path.clean and outgoing(messages[n]) ~= messages[n] then path.clean = false end
  end
  path.count = leaf + 1
  return path
end

-- The same between branches.
local function branch_path(rec, path, leaf)
  local nodes, fresh, at = rec._nodes, {}, leaf
  local from = path and path.leaf
  while at and at ~= from do
    fresh[#fresh + 1] = at
    at = node_of.parent(nodes[at + 1])
  end
  if not from or at ~= from then
    path = { count = 0, messages = {}, contents = {}, nodes = {}, clean = true }
  end
  path.leaf = leaf
  for i = #fresh, 1, -1 do
    local n, node = path.count + 1, fresh[i] + 1
    local message = rec._said[node]
    if path.clean and outgoing(message) ~= message then path.clean = false end
    path.messages[n], path.contents[n] = message, rec._contents[node]
    path.nodes[n], path.count = node, n
  end
  return path
end

-- The path to `leaf`. It mostly goes on from that of the call before.
local function path_to(rec, leaf)
  local make = leaf < (rec._bent or math.huge) and whole_path or branch_path
  local path = make(rec, rec._path, leaf)
  rec._path = path
  return path
end

--- How far back a list that was looked at before is looked at again.
local LOOK_BACK = 256

-- Whether these are the messages of the path, as they were recorded and as a server gets them.
local function is_path(rec, path, messages, count)
  if not path.clean or count ~= path.count then return false end
  local from = path.list == messages and count > LOOK_BACK and count - LOOK_BACK or 1
  path.list = messages
  local recorded, contents = path.messages or rec._said, path.contents or rec._contents
  return list.same(messages, recorded, "content", contents, from, count)
end

local function messages_text(rec, path, head, tail)
  if not path.nodes then return rec._m:joined(path.count, head, tail) end
  local texts = {}
  for i, node in ipairs(path.nodes) do texts[i] = rec._m:get(node) end
  return (head or "[") .. table.concat(texts, ",") .. (tail or "]")
end

--- A body around the JSON text of a history as it goes on the wire, put together from what is recorded; nil when the
--- record has it in another form.
---@param rec agentbox.Recorder
---@param leaf integer
---@param messages agentbox.Message[]
---@param head string     # the body up to the bracket before the first message
---@param tail string     # from the bracket behind the last one on
---@return string?
function M.history(rec, leaf, messages, head, tail)
  if rec._altered then return nil end
  local path = path_to(rec, leaf)
  return is_path(rec, path, messages, #messages) and messages_text(rec, path, head, tail) or nil
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
  local hasher, texts, nodes, bytes = path.hasher, rec._m, path.nodes, path.bytes
  for i = path.done + 1, path.count do
    local text, comma = texts:get(nodes and nodes[i] or i), i > 1 and "," or ""
    hasher:update(comma, text)
    bytes = bytes + #comma + #text
  end
  path.done, path.bytes = path.count, bytes
  return body.framed(path.frame, hasher, bytes)
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
    local text = is_path(rec, path, unsent.request.messages, unsent.count) and unsent_text(rec, path, unsent.form)
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
