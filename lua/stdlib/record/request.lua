--- What was sent with a call. A request repeats the whole history, so it is told by what the graph does not hold
--- already (record/body.lua), and what a turn costs here is what it added.
local body = require "agentbox.record.body"
local list = require "agentbox.sys.list"
local secret = require "agentbox.secret"

local M = {}

-- The path to `leaf` as one JSON array. The next call's path mostly goes on from this one's.
local function messages_text(rec, leaf)
  local known = rec._path or { text = "" }
  local path, at, from = {}, leaf, known.leaf
  while at and at ~= from do
    table.insert(path, 1, rec._m[at + 1])
    at = rec._p[at + 1]
  end
  if from and at == from then table.insert(path, 1, known.text) end
  known.leaf, known.text = leaf, table.concat(path, ",")
  rec._path = known
  return "[" .. known.text .. "]"
end

---@class agentbox.UnsentPath
---@field leaf? integer
---@field count integer
---@field messages agentbox.Message[]   # those of the path, and their contents when they were recorded
---@field contents any[]
---@field nodes integer[]
---@field clean boolean                 # a server would have got them as they are
---@field done integer                  # how many of them the hasher has had
---@field form? string

-- What the path to `leaf` has, added to what is known of it.
local function path_to(rec, leaf, outgoing)
  local known, fresh, at = rec._unsent, {}, leaf
  local from = known and known.leaf
  while at and at ~= from do
    fresh[#fresh + 1] = at
    at = rec._p[at + 1]
  end
  if not from or at ~= from then
    known = { count = 0, messages = {}, contents = {}, nodes = {}, done = 0, clean = true }
    rec._unsent = known
  end
  known.leaf = leaf
  for i = #fresh, 1, -1 do
    local n, message = known.count + 1, rec._said[fresh[i] + 1]
    if known.clean and outgoing(message) ~= message then known.clean = false end
    known.messages[n], known.contents[n] = message, message.content or false
    known.nodes[n], known.count = fresh[i] + 1, n
  end
  return known
end

-- Whether the messages of a request are those of the path, as they were recorded and as a server would have got them.
local function is_path(path, unsent)
  if not path.clean or unsent.count ~= path.count then return false end
  local messages, count = unsent.request.messages, path.count
  return list.same(messages, path.messages, count) and list.have(messages, "content", path.contents, count)
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
    local text = rec._m[path.nodes[i]]
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
    local path = path_to(rec, leaf, unsent.outgoing)
    local text = is_path(path, unsent) and unsent_text(rec, path, unsent.form)
    if text then return text end
  end
  if not source.raw_request then return nil end
  local sent = secret.redact(source.raw_request)
  if leaf then
    local entry = body.factor(sent, messages_text(rec, leaf), rec._tools)
    if entry then return entry end
  end
  return body.keep(sent, rec._blobs)
end

return M
