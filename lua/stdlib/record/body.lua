--- Request and response bodies of the model calls: verbatim, and no larger than they must be.
---
--- A request repeats the whole history. When its bytes are `head .. messages .. middle .. tools .. tail` with the
--- messages equal to the path of the graph and the tools equal to the record's, only what is between them is
--- kept (`params`, JSON with `[]` in both places) together with the offsets and the hash of the whole; rebuilding
--- gives the same bytes. A body that is not of that form is kept verbatim.
---
--- A body is named by the SHA-256 of its bytes. A small one stands in the line (`body`); a large one, and one that
--- is not a single line of JSON, is a file: `blobs/ab/abcd...`.
local err = require "agentbox.err"
local hash = require "agentbox.sys.hash"
local json = require "agentbox.json"
local sys = require "agentbox.sys.json"
local utf = require "agentbox.text"

local M = {}

--- Bodies above this many bytes go to a file of their own.
M.INLINE_MAX = 32 * 1024

--- "sha256:" and 64 hex digits.
---@param bytes string
---@return string
function M.hash(bytes)
  return "sha256:" .. hash.sha256(bytes)
end

-- The text as a piece of JSON that can stand in a line, or nil.
local function inline(text)
  if #text > M.INLINE_MAX or text:find("\n", 1, true) or text:find("\r", 1, true) or not utf.valid(text) then return nil end
  return (json.raw(text))
end

local put_body = sys.row({ "body", "bytes", "hash" }, { body = true })
local put_factored = sys.row({ "bytes", "cut", "hash", "params" }, { cut = true, params = true })

--- Describes a body; bytes that do not stand in the line are added to `blobs`.
---@param text string
---@param blobs table<string, string>   # hash → bytes, written by the store before the line
---@param made? boolean                 # our own encoder wrote it: it is JSON, on one line
---@return string entry                 # JSON text of { hash, bytes, body? }
function M.keep(text, blobs, made)
  local id = M.hash(text)
  local inside = made and #text <= M.INLINE_MAX or inline(text) ~= nil
  if not inside then blobs[id] = text end
  return put_body(inside and text or nil, #text, id)
end

-- The offset of `value` behind `"name":` in a part of `text`, or nil.
local function locate(text, name, value, from, to)
  local _, last = text:find(('"%s":%s'):format(name, value), from, true)
  return last and last <= to and last - #value + 1 or nil
end

-- The same of a list of tools. It is long, and mostly the one of the call before.
local last_tools, last_member

local function locate_tools(text, tools, from, to)
  if tools ~= last_tools then last_tools, last_member = tools, '"tools":' .. tools end
  local _, last = text:find(last_member, from, true)
  return last and last <= to and last - #tools + 1 or nil
end

-- The text around messages and tools, and where they stood: `at`, and where they find themselves.
local function factored(text, at, size_of_messages, tools)
  local cuts = { { name = "messages", at = at, size = size_of_messages } }
  local after = tools and locate_tools(text, tools, at + size_of_messages, #text)
  local before = tools and not after and locate_tools(text, tools, 1, at - 1)
  if after then cuts[2] = { name = "tools", at = after, size = #tools } end
  if before then table.insert(cuts, 1, { name = "tools", at = before, size = #tools }) end
  local parts, offsets, from, size = {}, {}, 1, 0
  for _, cut in ipairs(cuts) do
    parts[#parts + 1] = text:sub(from, cut.at - 1)
    size = size + cut.at - from
    offsets[cut.name] = size
    parts[#parts + 1] = "[]"
    size, from = size + 2, cut.at + cut.size
  end
  parts[#parts + 1] = text:sub(from)
  local params = table.concat(parts)
  if not inline(params) then return nil end
  return params, json.encode(offsets)
end

--- Describes a request by what the graph does not hold already; nil if it cannot be rebuilt that way.
---@param text string          # the body as it was sent
---@param messages string      # the path's messages as one JSON array
---@param tools string?        # the record's tool list as one JSON array
---@return string? entry       # JSON text of { hash, bytes, params, cut = { messages, tools? } }
function M.factor(text, messages, tools)
  local at = locate(text, "messages", messages, 1, #text)
  return at and M.factor_at(text, at, #messages, tools)
end

--- The same when it is known where the path's messages stand in the body.
---@param text string
---@param at integer       # of the first byte of the array, from 1
---@param bytes integer    # of the array
---@param tools string?
---@return string? entry
function M.factor_at(text, at, bytes, tools)
  local params, cut = factored(text, at, bytes, tools)
  if not params then return nil end
  return put_factored(#text, cut, M.hash(text), params)
end

--- What the requests of a model without a server have in common.
---@class agentbox.BodyFrame
---@field params string    # JSON text, and so is `cut`
---@field cut string
---@field head string     # the body's bytes up to the first message
---@field tail string     # those behind the last

--- Makes the frame of a body without messages (`"messages":[]`); nil if it is too large.
---@param form string
---@param tools string?
---@return agentbox.BodyFrame?
function M.frame(form, tools)
  local _, at = form:find('"messages":[', 1, true)
  local params, cut = factored(form, at, 2, tools)
  if not params then return nil end
  return { params = params, cut = cut, head = form:sub(1, at), tail = form:sub(at + 1) }
end

--- A hasher for bodies in a frame, to be fed the messages with commas between them.
---@param frame agentbox.BodyFrame
---@return agentbox.Hasher
function M.hasher(frame)
  return hash.hasher():update(frame.head)
end

--- Describes a request whose messages were fed to the hasher.
---@param frame agentbox.BodyFrame
---@param hasher agentbox.Hasher
---@param bytes integer      # of the whole body
---@return string entry     # as factor's
function M.framed(frame, hasher, bytes)
  return put_factored(bytes, frame.cut, "sha256:" .. hasher:hex(frame.tail), frame.params)
end

local function fill(params, cut, values)
  local cuts = {}
  for _, name in ipairs { "messages", "tools" } do
    if cut[name] then cuts[#cuts + 1] = { at = cut[name], value = values[name] } end
  end
  table.sort(cuts, function(a, b) return a.at < b.at end)
  local parts, from = {}, 1
  for _, one in ipairs(cuts) do
    parts[#parts + 1] = params:sub(from, one.at)
    parts[#parts + 1] = one.value
    from = one.at + 3
  end
  parts[#parts + 1] = params:sub(from)
  return table.concat(parts)
end

local function text_of(value)
  return json.type(value) == "raw" and value:text() or json.encode(value)
end

--- The messages of the path that ends at node `leaf`, as one JSON array, byte for byte as they were sent.
---@param nodes table[]
---@param leaf integer     # 0-based
---@return string
function M.messages_text(nodes, leaf)
  local path, at = {}, leaf
  while at and at ~= json.null do
    local node = nodes[at + 1]
    path[#path + 1] = text_of(node.m)
    at = node.p
  end
  for i = 1, #path // 2 do path[i], path[#path - i + 1] = path[#path - i + 1], path[i] end
  return "[" .. table.concat(path, ",") .. "]"
end

--- The bytes of a recorded request or response.
---
--- Returns nil, err if a file is missing or the bytes do not have the recorded hash: `notfound`, `parse`.
---@param line table                      # the record
---@param call table                      # one of its calls
---@param which "request"|"response"
---@param read_blob fun(hash: string): string?, table?
---@return string? bytes
---@return table? err
function M.bytes(line, call, which, read_blob)
  local entry = call[which]
  if not entry or entry == json.null then
    return nil, err.new("notfound", ("call %d has no recorded %s"):format(call.i, which))
  end
  local text
  if entry.body then
    text = text_of(entry.body)
  elseif entry.params then
    text = fill(text_of(entry.params), entry.cut, {
      messages = M.messages_text(line.nodes, call.leaf), tools = line.tools and text_of(line.tools),
    })
  else
    local blob, problem = read_blob(entry.hash)
    if not blob then return nil, problem end
    text = blob
  end
  if M.hash(text) ~= entry.hash then
    return nil, err.new("parse", ("the %s of call %d does not have its recorded hash"):format(which, call.i))
  end
  return text
end

return M
