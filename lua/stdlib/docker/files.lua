--- docker/files.lua: files of a container, asked of its guest; the same methods as a native sandbox's.
local err = require "agentbox.err"
local frames = require "agentbox.docker.frames"

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
    return nil, err.new("unsupported", "a tree is copied between containers of one engine; use get and put")
  end
  local packed, unpacked = open_copy(self, frames.PACK, path, opts), open_copy(other, frames.UNPACK, to, opts)
  local _ <close> = setmetatable({ packed, unpacked }, Ender)
  if not pump(packed, unpacked) then return nil, err.new("sandbox", ("a copy took longer than %d s"):format(COPY_S)) end
  local sent, problem = counts_of(packed)
  if not sent then return nil, problem end
  local made
  made, problem = counts_of(unpacked)
  if not made then return nil, problem end
  made.skipped = made.skipped + sent.skipped
  return made
end

---@param class table
function M.install(class)
  for name, fn in pairs(Files) do class[name] = fn end
end

return M
