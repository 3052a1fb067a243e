--- docker/files.lua: files of a container, asked of its guest; the same methods as a native sandbox's.
local err = require "agentbox.err"
local frames = require "agentbox.docker.frames"
local transfer = require "agentbox.docker.transfer"

local M = {}

local READ_DEFAULT, ENTRIES_DEFAULT, COPY_BYTES = 64 << 20, 100000, 4 << 30
local ANSWER_S = 300 -- a tree may be large
local COPY_S = 3600

local TYPES = { f = "file", d = "dir", l = "link", p = "fifo", s = "socket", c = "char", b = "block" }
local STAT = "<c1I4I4I4I8I8i8"

---@class agentbox.docker.Container
local Files = {}

local function nobody(id) return id == 0xffffffff and 65534 or id end

-- The entry at that place of the text, and the place behind it.
local function entry_at(text, at)
  local kind, mode, uid, gid, size, ino, mtime, after = STAT:unpack(text, at)
  return {
    type = TYPES[kind] or "unknown", mode = mode, uid = nobody(uid), gid = nobody(gid), size = size, ino = ino,
    mtime = mtime / 1e9,
  }, after
end

local function ask(self, kind, payload)
  return self.link:request(kind, payload, ANSWER_S)
end

local function done(data, problem)
  if not data then return nil, problem end
  return true
end

---@async
function Files:read(path, max, head)
  local data, problem = ask(self, frames.READ, ("<BI8z"):pack(head and 1 or 0, max or READ_DEFAULT, path))
  if data then return data end
  return nil, problem
end

-- In pieces: others on the stream have their turn, and the container's memory is the commands'.
---@async
function Files:write(path, bytes, opts)
  opts = opts or {}
  local at, append, exclusive = 1, opts.append, opts.exclusive
  repeat
    local piece = bytes:sub(at, at + frames.PIECE - 1)
    local last = at + #piece > #bytes
    local head = ("<BBi4i8i8z"):pack(append and 1 or 0, exclusive and 1 or 0, last and opts.mode or at == 1
      and not last and opts.mode and 0x180 or -1, last and opts.uid or -1, last and opts.gid or -1, path)
    local data, problem = ask(self, frames.WRITE, head .. piece)
    if not data then return nil, problem end
    at, append, exclusive = at + #piece, true, false
  until last
  return true
end

local function stat(self, path, follow)
  local _, reply = ask(self, frames.STAT, ("<Bz"):pack(follow and 1 or 0, path))
  if not _ then return nil, reply end
  local entry, after = entry_at(reply, 1)
  if entry.type == "link" then entry.target = ("z"):unpack(reply, after) end
  return entry
end

---@async
function Files:stat(path) return stat(self, path, true) end

---@async
function Files:lstat(path) return stat(self, path, false) end

local function list(self, path, max, recursive)
  local data, problem = ask(self, frames.LIST, ("<BI8z"):pack(recursive and 1 or 0, max or ENTRIES_DEFAULT, path))
  if not data then return nil, problem end
  local entries, at, key = {}, 1, recursive and "path" or "name"
  while at <= #data do
    local entry
    entry, at = entry_at(data, at)
    entry.ino = nil
    entry[key], at = ("z"):unpack(data, at)
    entries[#entries + 1] = entry
  end
  return entries
end

---@async
function Files:list(path, max) return list(self, path, max, false) end

---@async
function Files:tree(path, max) return list(self, path, max, true) end

---@async
function Files:mkdir(path, opts)
  opts = opts or {}
  return done(ask(self, frames.MKDIR, ("<BI4z"):pack(opts.parents == false and 0 or 1, opts.mode or 0x1ed, path)))
end

---@async
function Files:remove(path, recursive)
  return done(ask(self, frames.REMOVE, ("<Bz"):pack(recursive and 1 or 0, path)))
end

---@async
function Files:rename(from, to)
  return done(ask(self, frames.RENAME, ("<zz"):pack(from, to)))
end

-- ---------------------------------------------------------------- trees

-- One side of a copy: a channel whose guest writes or reads a packed tree.
local function open_copy(self, kind, path, opts)
  local channel = self.link:open()
  channel.bounded = kind == frames.PACK
  channel.parts, channel.sent, channel.taken = {}, 0, 0
  channel.on_frame = function(ch, what, payload)
    if what == frames.OUT then
      ch.parts[#ch.parts + 1] = payload
    elseif what == frames.TAKEN then
      ch.taken = ch.taken + ("<I8"):unpack(payload)
    elseif what == frames.REPLY then
      ch.reply = payload
      ch:close()
    end
  end
  channel:send(kind, ("<I8I8z"):pack(opts.max_bytes or COPY_BYTES, opts.max_entries or ENTRIES_DEFAULT, path))
  return channel
end

local function counts_of(channel)
  if not channel.reply then return nil, channel.failed end
  local payload, problem = require "agentbox.docker.link".verdict(channel.reply)
  if not payload then return nil, problem end
  local files, dirs, links, bytes, skipped = ("<I8I8I8I8I8"):unpack(payload)
  return { files = files, dirs = dirs, links = links, bytes = bytes, skipped = skipped }
end

local WINDOW = 1 << 20

-- What the two ends of a copy say. One whose pipe broke tells the other's trouble, not its own.
local function both(sent, why_not_sent, made, why_not_made)
  if not sent and (made or not tostring(why_not_sent.msg):find "Broken pipe$") then return nil, why_not_sent end
  if not made then return nil, why_not_made end
  made.skipped = made.skipped + sent.skipped
  return made
end

-- The packed tree goes through us; whoever is slow holds up the other by its window.
local function pump(from, to)
  from:send(frames.CREDIT, ("<I8"):pack(WINDOW))
  while true do
    if not from:wait(function(ch) return #ch.parts > 0 or ch.reply end, COPY_S) then return false end
    if #from.parts == 0 then break end
    local bytes = table.concat(from.parts)
    from.parts = {}
    from:took(#bytes)
    for at = 1, #bytes, frames.PIECE do
      local piece = bytes:sub(at, at + frames.PIECE - 1)
      if not to:wait(function(ch) return ch.sent - ch.taken < WINDOW or ch.reply end, COPY_S) then return false end
      to.sent = to.sent + #piece
      to:send(frames.STDIN, piece)
    end
    from:send(frames.CREDIT, ("<I8"):pack(#bytes))
  end
  to:send(frames.STDIN_END)
  return to:wait(function(ch) return ch.reply end, COPY_S)
end

local Ender = { __close = function(self)
  for _, channel in ipairs(self) do
    if not channel.reply then channel:send(frames.KILL) end
  end
end }

---@async
---@param path string
---@param other agentbox.docker.Container
---@param to string
---@param opts? { max_bytes?: integer, max_entries?: integer }
function Files:copy_tree(path, other, to, opts)
  opts = opts or {}
  if getmetatable(other) ~= getmetatable(self) then
    return nil, err.new("unsupported", "a tree is copied between containers only; use get and put")
  end
  local packed, unpacked = open_copy(self, frames.PACK, path, opts), open_copy(other, frames.UNPACK, to, opts)
  local _ <close> = setmetatable({ packed, unpacked }, Ender)
  if not pump(packed, unpacked) then return nil, err.new("sandbox", ("a copy took longer than %d s"):format(COPY_S)) end
  local sent, why = counts_of(packed)
  return both(sent, why, counts_of(unpacked))
end

-- Between a channel and a process of the host: move() copies until its source ends.
local function with_host(self, kind, path, dir, opts, move)
  opts = { max_bytes = opts and opts.max_bytes or COPY_BYTES, max_entries = opts and opts.max_entries or ENTRIES_DEFAULT }
  local process <close>, plain = transfer.open(kind == frames.PACK and "unpack" or "pack", dir, opts)
  if not process then return nil, plain end
  local _ <close> = plain
  local channel = open_copy(self, kind, path, opts)
  local _ <close> = setmetatable({ channel }, Ender)
  move(channel, process)
  if not channel:wait(function(ch) return ch.reply end, COPY_S) then
    return nil, err.new("sandbox", ("a copy took longer than %d s"):format(COPY_S))
  end
  local inside, why_inside = counts_of(channel)
  local outside, why_outside = transfer.counts(process)
  if kind == frames.PACK then return both(inside, why_inside, outside, why_outside) end
  return both(outside, why_outside, inside, why_inside)
end

local function fill(channel, process)
  process:close_stdin()
  while not channel.reply and not channel.failed do
    local bytes = process:read(frames.PIECE)
    if not bytes then break end
    channel:wait(function(ch) return ch.sent - ch.taken < WINDOW or ch.reply end, COPY_S)
    channel.sent = channel.sent + #bytes
    channel:send(frames.STDIN, bytes)
  end
  channel:send(frames.STDIN_END)
end

local function drain(channel, process)
  channel:send(frames.CREDIT, ("<I8"):pack(WINDOW))
  while true do
    channel:wait(function(ch) return #ch.parts > 0 or ch.reply end, COPY_S)
    local bytes = table.concat(channel.parts)
    if bytes == "" then break end
    channel.parts = {}
    channel:took(#bytes)
    if not process:write(bytes) then
      channel:send(frames.KILL) -- it will say why
      break
    end
    channel:send(frames.CREDIT, ("<I8"):pack(#bytes))
  end
  process:close_stdin()
end

---@async
function Files:put(path, dir, opts) return with_host(self, frames.UNPACK, path, dir, opts, fill) end

---@async
function Files:get(path, dir, opts) return with_host(self, frames.PACK, path, dir, opts, drain) end

---@param class table
function M.install(class)
  for name, fn in pairs(Files) do class[name] = fn end
end

return M
