--- Texts of a record, by their number: in memory, or in a log on the disk until the record is put together.
---
--- The last text stays in memory until the next one comes: something may still be added to it. Those before it are in
--- the log, and what is held of each is one integer; where the disk has no room they stay in memory, too.
local M = {}

---@class agentbox.Texts
---@field n integer
---@field private list (integer|string)[]   # places in the log, or the texts themselves
---@field private log? agentbox.ScratchLog
---@field private between string
---@field private apart boolean             # the texts do not lie in the log one behind the other
local Texts = {}
Texts.__index = Texts

--- An empty list.
---@param scratch? agentbox.Scratch   # nil: all of it in memory
---@param between? string             # stands between two texts that are asked for together
---@return agentbox.Texts
function M.new(scratch, between)
  return setmetatable({ n = 0, list = {}, log = scratch and scratch:log(), between = between or "", apart = not scratch }, Texts)
end

local function settle(self)
  local list, n = self.list, self.n
  local text = list[n]
  if type(text) ~= "string" then return end
  local place = self.log:add(text, self.between)
  if place then list[n] = place else self.apart = true end
end

---@param text string
function Texts:add(text)
  if self.log and self.n > 0 then settle(self) end
  self.n = self.n + 1
  self.list[self.n] = text
end

---@param n integer
---@return string
function Texts:get(n)
  local text = self.list[n]
  if type(text) == "string" then return text end
  local read, problem = self.log:get(text)
  return read or error(problem, 0)
end

--- Puts another text in the place of one.
---@param n integer
---@param text string
function Texts:set(n, text)
  if n < self.n then self.apart = true end
  self.list[n] = text
end

--- The first `n` texts with what stands between them, in brackets.
---@param n integer
---@return string
function Texts:joined(n)
  if self.log and n == self.n and n > 0 then settle(self) end
  if not self.apart and n > 0 then
    local read, problem = self.log:span(self.list[1], self.list[n], "[", "]")
    return read or error(problem, 0)
  end
  local texts = {}
  for i = 1, n do texts[i] = self:get(i) end
  return "[" .. table.concat(texts, self.between) .. "]"
end

--- All of them.
---@return string[]
function Texts:all()
  local texts = {}
  for i = 1, self.n do texts[i] = self:get(i) end
  return texts
end

--- Gives the log's room back. Nothing can be read after it.
function Texts:close()
  if self.log then self.log:close() end
end

--- Bytes by name, for a while: a table, or the like of one whose values are on the disk.
---@param scratch? agentbox.Scratch
---@return table<string, string>
function M.map(scratch)
  if not scratch then return {} end
  local log, places = scratch:log(), {}
  local function read(name)
    local place = places[name]
    if type(place) ~= "number" then return place end
    local bytes, problem = log:get(place)
    return bytes or error(problem, 0)
  end
  return setmetatable({}, {
    __index = function(_, name) return read(name) end,
    __newindex = function(_, name, bytes) places[name] = bytes and (log:add(bytes) or bytes) end,
    __pairs = function()
      return function(_, name)
        name = next(places, name)
        if name then return name, read(name) end
      end
    end,
  })
end

return M
