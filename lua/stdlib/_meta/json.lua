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

--- The JSON text; nil when JSON cannot say the value, or bytes of it are not UTF-8.
---@param value any
---@return string?
function M.encode_clean(value) end

--- A function that makes objects with these members, in this order; a nil leaves its member out.
---@param name string
---@param ... string
---@return fun(...): table
function M.shape(name, ...) end

--- A function that makes the JSON text of an object with these members; a nil leaves its member out. A string for a name
--- in `texts` is JSON text itself; it is not checked.
---@param names string[]
---@param texts? table<string, boolean>
---@return fun(...): string
function M.row(names, texts) end

--- The JSON text of an object, as `row` makes it, with one more member behind the others.
---@param text string
---@param name string
---@param value any
---@return string
function M.member(text, name, value) end

--- The JSON text of a list.
---@param ... any
---@return string
function M.tuple(...) end

--- A list whose elements are the JSON texts in `list` until somebody looks; then they are decoded, once.
---@param list string[]
---@param opts? agentbox.JsonDecodeOpts
---@return userdata
function M.texts(list, opts) end

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

--- The same for a text that our own encoder made: nobody checks it.
---@param text string
---@return agentbox.JsonRaw
function M.trusted(text) end

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
