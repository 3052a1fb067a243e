---@meta agentbox.sys.json
--- Private. `agentbox.json` is the same with its documentation.

local M = {}

---@type userdata
M.null = nil

---@param text string
---@param opts? agentbox.JsonDecodeOpts
---@return any value
---@return agentbox.Err|boolean? err_or_repaired
function M.decode(text, opts) end

---@param value any
---@param opts? agentbox.JsonEncodeOpts
---@return string
function M.encode(value, opts) end

---@param t? table
---@return table
function M.array(t) end

---@param t? table
---@param first? string[]
---@return table
function M.object(t, first) end

---@param v any
---@return boolean
function M.is_array(v) end

---@param v any
---@return boolean
function M.is_object(v) end

---@param t table
---@return string[]
function M.keys(t) end

---@param text string
---@return agentbox.JsonRaw? raw
---@return agentbox.Err? err
function M.raw(text) end

--- The list of one scalar member of every object of a list, or of the list under `inside` of an object.
---@param raw agentbox.JsonRaw
---@param inside string
---@param name string
---@return agentbox.JsonRaw? column   # nil when there is no such list, or an object lacks the member
---@return integer? n
function M.column(raw, inside, name) end

---@param v any
---@return "null"|"array"|"object"|"number"|"raw"|nil
function M.type(v) end

return M
