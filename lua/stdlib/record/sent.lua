--- The requests of a record's calls as they were sent, from its columns: rebuilt where the record keeps what is around the
--- messages, as record/body.lua does for a single one.
---
--- The requests of one conversation repeat each other: the hash of what they share goes on from call to call, so that each
--- message is hashed once, and that what surrounds the messages is JSON is looked at once.
local body = require "agentbox.record.body"
local hash = require "agentbox.sys.hash"
local json = require "agentbox.json"

local M = {}

---@class agentbox.Sent
---@field private t agentbox.Traj
local Sent = {}
Sent.__index = Sent

---@param t agentbox.Traj
---@return agentbox.Sent
function M.new(t)
  return setmetatable({ t = t, frames = {}, behind = {} }, Sent)
end

-- A message behind another one.
local function behind(self, at)
  local text = self.behind[at]
  if not text then
    text = "," .. self.t.columns.m[at]
    self.behind[at] = text
  end
  return text
end

-- What stands before and behind the messages of a body, brackets and all; nil when that is no JSON with messages there.
local function frame_of(self, params, at, tools_at)
  local key = ("%s %d %s"):format(params, at, tools_at)
  local frame = self.frames[key]
  if frame ~= nil then return frame end
  local tools = self.t.line.tools
  tools = tools and tools ~= json.null and (json.type(tools) == "raw" and tools:text() or json.encode(tools)) or ""
  local head, tail = params:sub(1, at), params:sub(at + 3)
  if tools_at and tools_at < at then
    head = head:sub(1, tools_at) .. tools .. head:sub(tools_at + 3)
  elseif tools_at then
    tools_at = tools_at - at - 2
    tail = tail:sub(1, tools_at) .. tools .. tail:sub(tools_at + 3)
  end
  local probe = json.decode(("%s[0]%s"):format(head, tail))
  local there = json.is_object(probe) and json.is_array(probe.messages) and probe.messages[1] == 0
  frame = there and { head = head .. "[", tail = "]" .. tail } or false
  self.frames[key] = frame
  return frame
end

-- Feeds the messages of the path to the hasher, those that it does not have yet.
local function feed(self, frame, path)
  local m, from = self.t.columns.m, 1
  local known = self.frame == frame and self.path or nil
  if known and known[#known] == path[#known] then -- a node has one path to it
    from = #known + 1
  else
    self.hasher = hash.hasher():update(frame.head)
  end
  for i = from, #path do self.hasher:update(i > 1 and behind(self, path[i]) or m[path[i]]) end
  self.frame, self.path = frame, path
end

local function put_rebuilt(self, i, path, parts)
  local calls = self.t.call_columns
  local frame = calls.cut_messages[i] and frame_of(self, calls.params[i], calls.cut_messages[i], calls.cut_tools[i])
  if not frame then return false end
  feed(self, frame, path)
  if "sha256:" .. self.hasher:hex(frame.tail) ~= calls.request_hash[i] then return false end
  local n = #parts + 1
  parts[n] = frame.head
  for k, at in ipairs(path) do parts[n + k] = k > 1 and behind(self, at) or self.t.columns.m[at] end
  parts[n + #path + 1] = frame.tail
  return true
end

--- Adds the body of a call's request to a list of texts, as JSON on one line, when it is on record with its hash.
---@param i integer          # from 1
---@param path integer[]     # the places of the nodes to its leaf
---@param parts string[]
---@return boolean
function Sent:put(i, path, parts)
  local calls = self.t.call_columns
  if calls.params[i] then return put_rebuilt(self, i, path, parts) end
  local text = calls.request_body[i] or calls.request_hash[i] and self.t:blob(calls.request_hash[i])
  text = text and body.hash(text) == calls.request_hash[i] and json.one_line(text)
  if text then parts[#parts + 1] = text end
  return text ~= nil and text ~= false
end

return M
