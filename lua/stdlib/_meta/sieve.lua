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

--- Adds the runs of so many words of a text: case, blanks and punctuation aside.
---@param text string
---@param words integer   # 1 to 64
---@return integer runs
function Sieve:add_runs(text, words) end

--- How many runs of a text are there, and the longest passage made of them.
---@param text string
---@param words integer
---@return integer all
---@return integer hits
---@return integer longest   # words
---@return integer from      # its first byte
---@return integer to        # its last byte
function Sieve:look_runs(text, words) end

return sieve
