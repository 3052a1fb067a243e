---@meta

---@class agentbox.sys.plane
local plane = {}

--- Counts a flat list of JSON numbers and finds its ends; nil for anything else.
---@param list string|agentbox.JsonRaw
---@return integer? count
---@return number? min
---@return number? max
function plane.measure(list) end

--- Counts a flat list of JSON numbers without reading them; nil for anything else.
---@param list agentbox.JsonRaw
---@return integer? count
function plane.count(list) end

--- Packs a flat list of JSON numbers; nil when that would lose something.
---@param list string|agentbox.JsonRaw
---@return string? bytes     # little-endian values
---@return "i4"|"f4"|"f8"|nil kind
---@return integer? count
function plane.pack(list) end

--- The list as JSON text; nil when the bytes are no such list.
---@param bytes string
---@param kind string
---@return string? json
function plane.unpack(bytes, kind) end

return plane
