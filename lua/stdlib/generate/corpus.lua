--- generate/corpus.lua: a corpus as the set of its runs of words, in memory that does not grow with it: case, blanks and punctuation
--- aside, so that a copy with other formatting is found.
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local fs = require "agentbox.fs"
local json = require "agentbox.json"
local sieve = require "agentbox.sys.sieve"
local text_ = require "agentbox.text"

local M = {}

local MAX_FILE, MAX_ALL = 1 << 30, 8 << 30
local BYTES_PER_RUN, BITS_PER_RUN = 5, 16
local MIN_BITS, MAX_BITS = 16, 32
local MAX_PASSAGE = 120

---@class agentbox.Corpus
---@field max_share number
---@field runs integer       # that were read
local Corpus = {}
Corpus.__index = Corpus

-- Every file of a path, with its size.
local function files_of(path)
  local st, problem = fs.stat(path)
  if not st then return nil, problem end
  if st.type ~= "dir" then return { { path = path, size = st.size } } end
  local list = {}
  local ok
  ok, problem = fs.walk(path, function(found, entry)
    if entry.type == "file" then list[#list + 1] = { path = found, size = fs.stat(found).size } end
  end)
  if not ok then return nil, problem end
  return list
end

local function each_text(value, fn)
  if type(value) == "string" then return fn(value) end
  if type(value) == "table" and value ~= json.null then
    for _, one in pairs(value) do each_text(one, fn) end
  end
end

-- A file's texts: those inside of JSON without its escapes, else the file as it is.
local function read_file(path, fn)
  local bytes, problem = fs.read(path, MAX_FILE)
  if not bytes then return nil, problem end
  if path:find "%.jsonl$" then
    for line in bytes:gmatch "[^\n]+" do each_text(json.decode(line) or line, fn) end
  elseif path:find "%.json$" then
    each_text(json.decode(bytes) or bytes, fn)
  else
    fn(bytes)
  end
  return true
end

local function bits_for(bytes)
  local bits = MIN_BITS
  while bits < MAX_BITS and 1 << bits < bytes // BYTES_PER_RUN * BITS_PER_RUN do bits = bits + 1 end
  return bits
end

--- Reads a corpus.
---@async
---@param opts { paths: string[], words: integer, max_share: number }
---@return agentbox.Corpus?
---@return agentbox.Err? err
function M.read(opts)
  local all, bytes = {}, 0
  for _, path in ipairs(opts.paths) do
    local list, problem = files_of(path)
    if not list then return nil, err.wrap(problem, "the corpus") end
    for _, one in ipairs(list) do all[#all + 1], bytes = one.path, bytes + one.size end
  end
  if bytes > MAX_ALL then return nil, err.new("toobig", ("the corpus has %d bytes, more than %d"):format(bytes, MAX_ALL)) end
  local self = setmetatable({ max_share = opts.max_share, runs = 0, _words = opts.words, _sieve = sieve.new(bits_for(bytes)) }, Corpus)
  for _, path in ipairs(all) do
    local ok, problem = read_file(path, function(text) self.runs = self.runs + self._sieve:add_runs(text, self._words) end)
    if not ok then return nil, err.wrap(problem, "the corpus") end
    fiber.yield()
  end
  return self
end

--- How much of a text is in the corpus: the share of its runs, and the longest passage.
---@param text string
---@return { share: number, words: integer, passage: string }
function Corpus:look(text)
  local all, hits, words, from, to = self._sieve:look_runs(text, self._words)
  local passage = words > 0 and text_.cut(text_.scrub(text:sub(from, to)):gsub("%s+", " "), MAX_PASSAGE, "...") or ""
  return { share = all > 0 and hits / all or 0, words = words, passage = passage }
end

return M
