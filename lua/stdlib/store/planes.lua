--- Long lists of token ids and log-probs, packed and beside the lines: `planes-00000.bin`.
---
--- A list whose JSON is longer than `MIN_BYTES` goes there, and the line says where it is:
--- `{"p":[file, offset, count, "i4"],"sum":"<16 hex digits>"}`. Kinds are little-endian `i4`, `f4` and `f8`, the
--- smallest that holds every value exactly; the sum is the beginning of the SHA-256 of the bytes. Whoever reads a line
--- gets the list back, as numbers that are equal.
local async = require "agentbox.async"
local err = require "agentbox.err"
local fs = require "agentbox.sys.fs"
local hash = require "agentbox.sys.hash"
local json = require "agentbox.json"
local plane = require "agentbox.sys.plane"

local M = {
  --- Lists with more bytes of JSON than this are packed.
  MIN_BYTES = 8 * 1024,
  --- A new file is begun when the last one has this many bytes.
  FILE_BYTES = 1 << 30,
}

local SIZES = { i4 = 4, f4 = 4, f8 = 8 }

local function path_of(run_dir, n)
  return ("%s/planes-%05d.bin"):format(run_dir, n)
end

local function sum_of(bytes)
  return hash.sha256(bytes):sub(1, 16)
end

---@class agentbox.Planes
local Planes = {}
Planes.__index = Planes

--- The planes of a run, to write; a file is made for the first list.
---@param run_dir string
---@return agentbox.Planes
function M.open(run_dir)
  return setmetatable({
    _dir = run_dir, _n = 0, _dirty = {}, _syncing = {}, _dropped = {}, _age = 0, _turn = async.semaphore(1),
  }, Planes)
end

local function open_last(self)
  while fs.stat(path_of(self._dir, self._n + 1)) do self._n = self._n + 1 end
  local path = path_of(self._dir, self._n)
  local new = not fs.stat(path)
  local file, problem = fs.append_open(path)
  self._file, self._new = file, self._new or new
  return file, problem
end

-- Closes the files that nobody needs any more. Whoever packs may be sliced between a look at a file and a write to it: until
-- it is done they stay open.
local function close_dropped(self)
  if self._packing then return end
  for file in pairs(self._dropped) do
    self._dirty[file] = nil
    file:close()
  end
  self._dropped = {}
end

local function drop(self, file)
  self._dropped[file] = true
  close_dropped(self)
end

-- Drops a file unless something is still to come of it.
local function let_go(self, file)
  if file ~= self._file and not self._dirty[file] and not self._syncing[file] then drop(self, file) end
end

-- The file to write to, with the offset of its end.
local function room(self)
  local file, problem = self._file, nil
  if not file then file, problem = open_last(self) end
  if not file then return nil, problem end
  local size = file:size()
  if size < M.FILE_BYTES then return file, size end
  self._n, self._file = self._n + 1, nil
  let_go(self, file)
  return room(self)
end

local function reference(n, offset, count, kind, bytes)
  local ref = json.object {}
  ref.p = json.array { n, offset, count, kind }
  ref.sum = sum_of(bytes)
  return ref
end

-- Packs a list if it is long enough: its reference, or nil and perhaps why it could not be written.
local function put(self, list)
  if json.type(list) ~= "raw" then return nil end
  local text = list:text()
  if #text <= M.MIN_BYTES or text:sub(1, 1) ~= "[" then return nil end
  local bytes, kind, count = plane.pack(list)
  if not bytes then return nil end
  local file, offset = room(self)
  if not file then return nil, offset end
  local ok, problem = file:write(bytes)
  if not ok then return nil, problem end
  self._dirty[file] = true
  return reference(self._n, offset, count, kind, bytes)
end

local LISTS = { "prompt", "out", "lp" }

-- Whether a line may hold a long list: a cheap look at its text, which is right about every line that has none. A quote
-- inside a string is escaped, so that the mark is never found there.
local function has_long(text)
  local at = 1
  while true do
    local _, last = text:find('"tokens":{', at, true)
    if not last then return false end
    at = last + 1
    for _ = 1, #LISTS do
      local stop = text:find("]", last + 1, true) or last
      if stop - last > M.MIN_BYTES then return true end
      last = stop
    end
  end
end

-- What is read of a line to pack it; all else stays as it is, byte for byte.
local UNREAD = {
  raw = {
    "prompt", "out", "lp", "request", "response", "nodes", "tool_runs", "tools", "task", "metadata", "verify", "tamper",
    "describe", "notes", "logs", "modules",
  },
}

-- Packs the lists of one call's tokens; true when there was a long one.
local function pack_tokens(self, given)
  local packed = false
  for _, name in ipairs(LISTS) do
    local list, prompt = given[name], nil
    if json.type(list) == "raw" and list:text():sub(1, 1) == "{" then
      prompt = json.decode(list:text(), { raw = { "tail" } })
      list = prompt.tail
    end
    local ref, problem = put(self, list)
    if problem then return nil, problem end
    if ref then packed = true end
    if ref and prompt then
      prompt.tail = ref
      given[name] = prompt
    elseif ref then
      given[name] = ref
    end
  end
  return packed
end

local packed_all = { __close = function(pack)
  pack.planes._packing = nil
  close_dropped(pack.planes)
end }

--- The JSON text of a record with its long lists packed, and what `sync` wants to know of it. One packs at a time: where a
--- list is, is known before it is written, and converting a very long one takes so long that its fiber may be sliced.
---@async
---@nodiscard
---@param text string
---@return string? text
---@return integer|agentbox.Err? age   # nil: nothing was packed
function Planes:pack(text)
  if not has_long(text) then return text end
  local _ <close> = self._turn:acquire()
  local packing <close> = setmetatable({ planes = self }, packed_all) -- luacheck: ignore 211
  self._packing = true
  local age = self._age
  local line, packed = json.decode(text, UNREAD), false
  for _, call in ipairs(line and line.calls or {}) do
    if json.is_object(call.tokens) then
      local done, problem = pack_tokens(self, call.tokens)
      if done == nil then return nil, problem end
      packed = packed or done
    end
  end
  if not packed then return text end
  return json.encode(line), age
end

-- The kernel tells of a failed sync once; a later one that goes well says nothing of what was written before it. So
-- those bytes count as lost, with all that was packed and has no line yet, and another file is begun.
local function lose(self)
  local lost = self._dirty
  if self._file then
    lost[self._file] = true
    self._n = self._n + 1
  end
  self._file, self._dirty, self._new, self._age = nil, {}, nil, self._age + 1
  for file in pairs(lost) do drop(self, file) end
end

-- However a sync ends: well, or by an error, or because who waited for it was cancelled.
local ending = { __close = function(sync)
  local self, files = sync.planes, sync.planes._syncing
  self._syncing = {}
  if not sync.ok then lose(self) end
  for file in pairs(files) do let_go(self, file) end
end }

--- Puts what was packed on the disk; lines that refer to it may follow.
---
--- Returns nil, err if that failed. Then it is lost, as `stands` tells.
---@async
---@nodiscard
---@return boolean? ok
---@return agentbox.Err? err
function Planes:sync()
  local sync <close> = setmetatable({ planes = self }, ending)
  local new = self._new
  self._syncing, self._dirty, self._new = self._dirty, {}, nil -- whoever packs while this waits makes a file dirty again
  local ok, problem = true, nil
  for file in pairs(self._syncing) do
    if ok then ok, problem = file:sync() end
  end
  if ok and new then ok, problem = fs.sync_dir(self._dir) end
  sync.ok = ok
  return ok, problem
end

--- Whether what was packed at an age is still there: nil, err with `again` set when it has to be packed again.
---@nodiscard
---@param age integer?
---@return boolean? ok
---@return agentbox.Err? err
function Planes:stands(age)
  if not age or age == self._age then return true end
  return nil, err.new("io", "token planes were lost when they were synced", { again = true })
end

--- May be called twice.
function Planes:close()
  local left = self._dirty
  if self._file then left[self._file] = true end
  self._file, self._dirty = nil, {}
  for file in pairs(left) do drop(self, file) end
end

-- What is wrong with a reference; nil when it has the right form.
local function misformed(ref)
  local p = json.is_object(ref) and ref.p
  if not json.is_array(p) or not SIZES[p[4]] or type(ref.sum) ~= "string" then return true end
  for i = 1, 3 do
    if math.type(p[i]) ~= "integer" or p[i] < 0 then return true end
  end
  return #p ~= 4
end

local function read_list(run_dir, ref)
  if misformed(ref) then return nil, err.new("parse", "a reference to token planes that is none") end
  local n, offset, count, kind = ref.p[1], ref.p[2], ref.p[3], ref.p[4]
  local path = path_of(run_dir, n)
  local file <close>, msg = io.open(path, "rb")
  if not file then return nil, err.new("notfound", msg) end
  local size = file:seek "end"
  local length = count * SIZES[kind]
  local bytes = offset + length <= size and file:seek("set", offset) and file:read(length) or ""
  local text = #bytes == length and sum_of(bytes) == ref.sum and plane.unpack(bytes, kind)
  if text then return assert(json.raw(text)) end
  return nil, err.new("parse", ("%s: the %d values at byte %d are not what was written"):format(path, count, offset))
end

local function is_reference(value)
  return json.type(value) == "raw" and value:text():find '^{%s*"p"' ~= nil
end

-- Reads one list back where it is a reference: nil when it is none, false and why when it cannot be read.
local function fetch(run_dir, value)
  if not is_reference(value) then return nil end
  local list, problem = read_list(run_dir, value:decode())
  if not list then return false, problem end
  return list
end

-- The tail of a packed prompt may be one.
local function expand_prompt(run_dir, given)
  if json.type(given.prompt) ~= "raw" or not given.prompt:text():find('"p"', 1, true) then return true end
  local prompt = json.decode(given.prompt:text(), { raw = { "tail" } })
  local list, problem = fetch(run_dir, prompt.tail)
  if list then
    prompt.tail = list
    given.prompt = assert(json.raw(json.encode(prompt)))
  end
  return list ~= false, problem
end

local function expand_tokens(run_dir, given)
  for _, name in ipairs(LISTS) do
    local list, problem = fetch(run_dir, given[name])
    if list == false then return nil, problem end
    if list then given[name] = list end
  end
  return expand_prompt(run_dir, given)
end

--- Replaces the references in a record that was read by the lists they stand for.
---
--- Returns nil, err (`notfound`, `parse`) when one of them is not there as it was written.
---@async
---@nodiscard
---@param calls table[]
---@param run_dir string
---@return boolean? ok
---@return agentbox.Err? err
function M.expand(calls, run_dir)
  for _, call in ipairs(calls) do
    if json.is_object(call.tokens) then
      local ok, problem = expand_tokens(run_dir, call.tokens)
      if not ok then return nil, problem end
    end
  end
  return true
end

return M
