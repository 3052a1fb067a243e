--- docker/link.lua: the one stream to a container's guest, shared by everything that goes on in it.
---
--- A channel is one command, one file request or one copy. A fiber reads and wakes who waits; sending never waits, so a
--- frame is never cut by a cancel. When the stream ends, breaks or falls silent, everybody on it gets one error.
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local frames = require "agentbox.docker.frames"
local log = require "agentbox.log"
local time = require "agentbox.sys.time"

local M = {}

--- How long a guest may be silent while it owes an answer, and how often that is looked at.
M.PATIENCE_S, M.LOOK_S = 30, 5

local STDERR_MAX = 4096
local UNSENT_MAX = 64 << 20
local UNREAD_HIGH = 8 << 20

---@class agentbox.docker.Channel
---@field id integer
---@field link agentbox.docker.Link
---@field unread integer          # bytes that nobody took yet, of one that is `bounded`
---@field bounded? boolean        # its reader calls took(), and the stream waits for that
---@field waiters table<userdata, true>
---@field failed? agentbox.Err
---@field on_frame fun(self: agentbox.docker.Channel, kind: integer, payload: string)
local Channel = {}
Channel.__index = Channel

---@class agentbox.docker.Link
---@field channels table<integer, agentbox.docker.Channel>
---@field dead? agentbox.Err
local Link = {}
Link.__index = Link

-- ---------------------------------------------------------------- silence

local watched, watcher = setmetatable({}, { __mode = "k" }), nil

local function look(link, now)
  if not next(link.channels) or now - link.heard < M.PATIENCE_S / 2 then return end
  if now - link.heard >= M.PATIENCE_S and link.asked then
    link:fail(err.new("sandbox", ("the container did not answer for %.0f s"):format(now - link.heard)))
  elseif not link.asked then
    link.asked = true
    link:request_without_answer(frames.PING)
  end
end

-- One fiber for all; it ends with the last link.
local function watch()
  while next(watched) do
    fiber.sleep(M.LOOK_S)
    local now = time.monotonic()
    for link in pairs(watched) do look(link, now) end
  end
  watcher = nil
end

-- ---------------------------------------------------------------- waiting

local Guard = { __close = function(self) self.waiters[self.me] = nil end }

---Waits until `ready(self)` is true, the channel has failed, or the time is over.
---@async
---@param ready fun(channel: agentbox.docker.Channel): any
---@param timeout_s? number
---@return boolean in_time
function Channel:wait(ready, timeout_s)
  local me = fiber.current()
  local deadline = timeout_s and time.monotonic() + timeout_s
  local _ <close> = setmetatable({ waiters = self.waiters, me = me }, Guard)
  while not ready(self) and not self.failed do
    local left = deadline and deadline - time.monotonic()
    if left and left <= 0 then return false end
    self.waiters[me] = true
    fiber.park(left)
  end
  return true
end

function Channel:notify()
  for waiter in pairs(self.waiters) do waiter:wake() end
end

---@param kind integer
---@param payload? string
function Channel:send(kind, payload)
  self.link:send(frames.encode(kind, self.id, payload))
end

--- Its number may be used again: nothing more comes for it.
function Channel:close()
  if self.link.channels[self.id] == self then self.link.channels[self.id] = nil end
  local paused = self.link.paused
  if paused then paused:wake() end
end

--- The reader of a channel took bytes; the stream may have waited for that.
---@param bytes integer
function Channel:took(bytes)
  self.unread = self.unread - bytes
  local paused = self.link.paused
  if paused and self.unread < UNREAD_HIGH then paused:wake() end
end

-- ---------------------------------------------------------------- sending

-- Writes what the socket takes now; a fiber waits for the rest. It is told of a failure by the reader's end.
local function flush_later(self)
  if self.flusher then return end
  self.flusher = fiber.spawn(function()
    while not self.dead and #self.unsent > 0 do
      if not self.connection:wait_writable() then break end
      local all = table.concat(self.unsent)
      local n, problem = self.connection:send(all)
      if not n then
        self:fail(err.new("sandbox", "the stream to the container broke: " .. problem.msg))
        break
      end
      self.unsent = n < #all and { all:sub(n + 1) } or {}
      self.unsent_bytes = #all - n
    end
    self.flusher = nil
  end)
end

---@param bytes string
function Link:send(bytes)
  if self.dead then return end
  if #self.unsent == 0 then
    local n, problem = self.connection:send(bytes)
    if not n then
      self:fail(err.new("sandbox", "the stream to the container broke: " .. problem.msg))
      return
    end
    if n == #bytes then return end
    bytes = bytes:sub(n + 1)
  end
  self.unsent[#self.unsent + 1] = bytes
  self.unsent_bytes = self.unsent_bytes + #bytes
  if self.unsent_bytes > UNSENT_MAX then
    self:fail(err.new("sandbox", "the container takes nothing that is sent to it"))
  else
    flush_later(self)
  end
end

---@return agentbox.docker.Channel
function Link:open()
  repeat self.last = self.last % 0x7fffffff + 1 until not self.channels[self.last]
  local channel = setmetatable({
    id = self.last, link = self, unread = 0, waiters = setmetatable({}, { __mode = "k" }), failed = self.dead,
  }, Channel)
  if self.dead then return channel end
  -- A container that was asked nothing for an hour has not been silent for an hour.
  if not next(self.channels) then self.heard, self.asked = time.monotonic(), false end
  self.channels[channel.id] = channel
  return channel
end

function Link:request_without_answer(kind)
  self.last = self.last % 0x7fffffff + 1
  self:send(frames.encode(kind, self.last))
end

-- ---------------------------------------------------------------- one question, one answer

local function collect(self, kind, payload)
  if kind == frames.DATA then
    self.parts[#self.parts + 1] = payload
  elseif kind == frames.REPLY then
    self.reply = payload
    self:close()
  end
end

---What a REPLY says: its payload, or the guest's error.
---@param reply string
---@return string? payload
---@return agentbox.Err? err
function M.verdict(reply)
  local code, at = ("z"):unpack(reply)
  if code == "" then return reply:sub(at) end
  local sys, msg = ("<I4z"):unpack(reply, at)
  return nil, err.new(code, msg, { sys = sys ~= 0 and sys or nil })
end

---@async
---@param kind integer
---@param payload string
---@param timeout_s? number
---@return string? data      # DATA, then what the REPLY carries
---@return string|agentbox.Err? reply_or_err
function Link:request(kind, payload, timeout_s)
  local channel = self:open()
  channel.parts, channel.on_frame = {}, collect
  channel:send(kind, payload)
  local _ <close> = setmetatable({}, { __close = function() channel:close() end })
  if not channel:wait(function(self_) return self_.reply end, timeout_s) then
    return nil, err.new("sandbox", ("the container did not answer within %g s"):format(timeout_s))
  end
  if not channel.reply then return nil, channel.failed end
  local answer, problem = M.verdict(channel.reply)
  if not answer then return nil, problem end
  return table.concat(channel.parts), answer
end

-- ---------------------------------------------------------------- reading

---Ends the link; who waits on it gets this error.
---@param problem agentbox.Err
function Link:fail(problem)
  if self.dead then return end
  self.dead = problem
  watched[self] = nil
  self.connection:close()
  local channels = self.channels
  self.channels, self.unsent, self.unsent_bytes = {}, {}, 0
  for _, channel in pairs(channels) do
    channel.failed = problem
    channel:notify()
  end
  if self.greeted then self.greeted:wake() end
end

local function deliver(self, kind, id, payload)
  if kind == frames.HELLO then
    self.hello = payload
    if self.greeted then self.greeted:wake() end
    return
  end
  local channel = self.channels[id]
  if not channel then return end -- its end was not waited for
  if channel.bounded then channel.unread = channel.unread + #payload end
  channel:on_frame(kind, payload)
  channel:notify()
  -- A reader that is slow holds up the stream, not our memory.
  while channel.unread > UNREAD_HIGH and self.channels[id] == channel and not self.dead do
    self.paused = fiber.current()
    fiber.park(1)
    self.paused = nil
    self.heard = time.monotonic()
  end
end

local function keep_stderr(self, piece)
  self.stderr = (self.stderr .. piece):sub(-STDERR_MAX)
end

local function read_all(self, bytes)
  local feed_mux, next_piece = frames.demultiplexer()
  local feed, next_frame = frames.parser()
  local problem
  while not self.dead do
    feed_mux(bytes)
    for stream, piece in next_piece do
      if stream == 2 then
        keep_stderr(self, piece)
      else
        feed(piece)
        for kind, id, payload in next_frame do deliver(self, kind, id, payload) end
      end
    end
    bytes, problem = self.connection:recv()
    if not bytes then return problem end
    self.heard, self.asked = time.monotonic(), false
  end
end

local function run(self, first, why)
  local fine, problem = pcall(read_all, self, first)
  if self.dead then return end
  if not fine then
    log.warn("a container's stream is no protocol of ours: " .. tostring(problem))
    self:fail(err.new("sandbox", "the container's stream is garbled: " .. tostring(problem)))
  else
    self:fail(why(problem))
  end
end

---Takes a connection that Docker has attached.
---@param connection agentbox.sys.HttpConnection
---@param first string                                  # bytes that came with the head already
---@param why fun(problem?: agentbox.Err): agentbox.Err # asked once, when the stream has ended
---@return agentbox.docker.Link
function M.new(connection, first, why)
  local self = setmetatable({
    connection = connection, channels = {}, last = 0, unsent = {}, unsent_bytes = 0, stderr = "",
    heard = time.monotonic(), asked = false,
  }, Link)
  watched[self] = true
  watcher = watcher or fiber.spawn(watch)
  fiber.spawn(run, self, first, why)
  return self
end

---Waits for the guest's greeting.
---@async
---@param timeout_s number
---@return string? hello
---@return agentbox.Err? err
function Link:greeting(timeout_s)
  local deadline = time.monotonic() + timeout_s
  self.greeted = fiber.current()
  while not self.hello and not self.dead do
    local left = deadline - time.monotonic()
    if left <= 0 then break end
    fiber.park(left)
  end
  self.greeted = nil
  if self.hello then return self.hello end
  if self.dead then return nil, self.dead end
  return nil, err.new("sandbox", ("the container did not come up within %g s"):format(timeout_s))
end

return M
