--- Texts of a record, by their number: in memory, or in a log on the disk until the record is put together.
---
--- In the log what is held of each is one integer; where the disk has no room they stay in memory, too. A text to which
--- something will be added is in memory until another is put in its place, or the next one comes.
local M = {}

--- A list; its elements are places in the log, or the texts themselves. Thousands of rollouts have a few of them each,
--- so there is nothing else in one.
---@class agentbox.Texts
---@field private log? agentbox.ScratchLog
---@field private apart? boolean            # the texts do not lie in the log one behind the other
local Texts = {}
Texts.__index = Texts

--- An empty list.
---@param scratch? agentbox.Scratch   # nil: all of it in memory
---@return agentbox.Texts
function M.new(scratch)
  return setmetatable(scratch and { log = scratch:log() } or {}, Texts)
end

-- Between two texts in the log is a comma, so that many are read as the inside of a JSON array.
local function settle(self)
  local n = #self
  local text = self[n]
  if type(text) ~= "string" then return end
  local place = self.log:add(text, ",")
  if place then self[n] = place else self.apart = true end
end

---@param text string
---@param open? boolean   # another one will be put in its place
function Texts:add(text, open)
  if not self.log then
    self[#self + 1] = text
    return
  end
  if #self > 0 then settle(self) end
  self[#self + 1] = text
  if not open then settle(self) end
end

---@param n integer
---@return string
function Texts:get(n)
  local text = self[n]
  if type(text) == "string" then return text end
  local read, problem = self.log:get(text)
  return read or error(problem, 0)
end

--- Puts another text in the place of one.
---@param n integer
---@param text string
function Texts:set(n, text)
  if type(self[n]) ~= "string" or n < #self then self.apart = true end
  self[n] = text
  if self.log and n == #self then settle(self) end
end

--- The first `n` texts as one JSON array, in a text that begins and ends with what is given.
---@param n integer
---@param head? string   # up to the bracket: "[" unless given
---@param tail? string   # from the bracket on: "]" unless given
---@return string
function Texts:joined(n, head, tail)
  head, tail = head or "[", tail or "]"
  if n == 0 then return head .. tail end
  if self.log and n == #self then settle(self) end
  if self.log and not self.apart then
    local read, problem = self.log:span(self[1], self[n], head, tail)
    return read or error(problem, 0)
  end
  local texts = {}
  for i = 1, n do texts[i] = self:get(i) end
  return head .. table.concat(texts, ",") .. tail
end

--- All of them.
---@return string[]
function Texts:all()
  local texts = table.move(self, 1, #self, 1, {})
  if not self.log then return texts end
  local read, problem = self.log:fill(texts)
  return read or error(problem, 0)
end

--- Gives the log's room back. Nothing can be read after it.
function Texts:close()
  if self.log then self.log:close() end
end

-- Bytes by name: 1 is the file, then the log, 2 has the places by name, all other keys are names.
local Map = {}

function Map:__index(name)
  local place = (rawget(self, 2) or Map)[name]
  if type(place) ~= "number" then return place end
  local bytes, problem = rawget(self, 1):get(place)
  return bytes or error(problem, 0)
end

function Map:__newindex(name, bytes)
  if not rawget(self, 2) then
    rawset(self, 1, rawget(self, 1):log())
    rawset(self, 2, {})
  end
  rawget(self, 2)[name] = bytes and (rawget(self, 1):add(bytes) or bytes)
end

function Map:__pairs()
  local places = rawget(self, 2) or {}
  return function(_, name)
    name = next(places, name)
    if name then return name, self[name] end
  end
end

--- Bytes by name, for a while: a table, or the like of one whose values are on the disk.
---@param scratch? agentbox.Scratch
---@return table<string, string>
function M.map(scratch)
  return scratch and setmetatable({ scratch }, Map) or {}
end

return M
