---@meta agentbox.sys.minhash

---@class agentbox.sys.minhash
local minhash = {}

--- How alike two texts are: the share of runs of three bytes that they have in common.
---@param a string
---@param b string
---@return number   # 0..1
function minhash.jaccard(a, b) end

--- What `near` and `add` take: 512 bytes, whatever the text.
---@param text string
---@return string
function minhash.sketch(text) end

--- An index whose bands have so many rows: 8 for a likeness of 0.8 and more, 4 from 0.6, 2 below.
---@param rows integer
---@return agentbox.MinHash
function minhash.new(rows) end

---@class agentbox.MinHash
local MinHash = {}

---@param sketch string
---@return integer number   # from 1
function MinHash:add(sketch) end

---@param sketch string
---@param least number
---@return { [1]: integer, [2]: number }[]   # number and estimated likeness, the nearest first; at most 16
function MinHash:near(sketch, least) end

return minhash
