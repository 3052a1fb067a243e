--- docker/frames.lua: what the engine and the guest say to each other; the guest's half is src/guest/frames.h.
local M = {}

M.PROTOCOL = 1
M.HEAD = 9
M.MAX_BYTES = 4 << 20 -- of one payload
M.PIECE = 256 << 10 -- of stdin and of files, so that others on the stream have their turn

M.HELLO, M.EXEC, M.STDIN, M.STDIN_END, M.TAKEN, M.KILL, M.RESIZE, M.CREDIT, M.FLOOD, M.OUT, M.ERR, M.EXIT, M.PING,
M.PURGE, M.READ, M.WRITE, M.STAT, M.LIST, M.MKDIR, M.REMOVE, M.RENAME, M.PACK, M.UNPACK, M.DATA, M.REPLY =
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25

---@param kind integer
---@param channel integer
---@param payload? string
---@return string
function M.encode(kind, channel, payload)
  payload = payload or ""
  return ("<I4I4B"):pack(#payload, channel, kind) .. payload
end

--- Takes bytes as they come and gives frames: `feed(bytes)`, then `next()` until it gives nothing.
---@return fun(bytes: string) feed
---@return fun(): integer?, integer?, string? next   # kind, channel, payload; raises what is no frame
function M.parser()
  local held, at = "", 1
  local function feed(bytes)
    held = at > #held and bytes or held:sub(at) .. bytes
    at = 1
  end
  local function next_frame()
    if #held - at + 1 < M.HEAD then return nil end
    local size, channel, kind = ("<I4I4B"):unpack(held, at)
    if size > M.MAX_BYTES then error(("a frame of %d bytes"):format(size), 0) end
    local first = at + M.HEAD
    if #held < first + size - 1 then return nil end
    at = first + size
    return kind, channel, held:sub(first, at - 1)
  end
  return feed, next_frame
end

--- Docker's own framing of what a container without a terminal prints: stream, three zeros, length (big endian).
---@return fun(bytes: string) feed
---@return fun(): integer?, string? next   # 1 stdout, 2 stderr, and a piece of it
function M.demultiplexer()
  local held, at = "", 1
  local stream, left = nil, 0
  local function feed(bytes)
    held = at > #held and bytes or held:sub(at) .. bytes
    at = 1
  end
  local function next_piece()
    if left == 0 then
      if #held - at + 1 < 8 then return nil end
      stream, left = (">Bxxx I4"):unpack(held, at)
      if stream > 3 then error(("stream %d of an attached container"):format(stream), 0) end
      at = at + 8
      if left == 0 then return stream, "" end
    end
    if at > #held then return nil end
    local piece = held:sub(at, at + left - 1)
    at, left = at + #piece, left - #piece
    return stream, piece
  end
  return feed, next_piece
end

return M
