---@meta

---@class agentbox.sys.sieve
local sieve = {}

--- A sieve of 2^bits bits.
---@param bits integer   # 10 to 32
---@return agentbox.Sieve
function sieve.new(bits) end

---@class agentbox.Sieve
local Sieve = {}

--- Adds a text.
---@param text string
---@return boolean seen   # it may have been there; false is certain
function Sieve:add(text) end

---@param text string
---@return boolean seen   # false is certain
function Sieve:has(text) end

return sieve
