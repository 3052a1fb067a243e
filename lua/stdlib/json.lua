--- JSON without losses.
---
--- `decode` keeps what plain Lua tables forget: `[]` and `{}` differ, null is `json.null`, objects
--- remember the order of their keys (`pairs` follows it, new keys go last), 1.0 stays a float,
--- and a number that neither a 64-bit integer nor a double can hold is a value with its text
--- (`tostring` gives it). `encode` writes all of that back. A plain Lua table is a list when it has a first
--- element, else an object with sorted keys; the empty one is `{}`, so use `json.array()` for `[]`.
---
--- Floats are written as Python writes them: the shortest text that reads back as the same
--- number, `1e-07`, `1e+16`, `100000.0`.
---
--- `require "cjson"` is the real lua-cjson, for scripts written for it. It turns `[]` into `{}`, integers beyond 2^53 into
--- floats, and forgets the order of keys; its null may be encoded here.
local sys = require "agentbox.sys.json"

local M = {}

--- The value of JSON's null. It is not nil and not false.
---@type userdata
M.null = sys.null

---@class agentbox.JsonDecodeOpts
---@field raw? string[]     # members of these names whose objects and arrays stay text (agentbox.JsonRaw)
---@field repair? boolean   # accept lone surrogates, bytes that are not UTF-8, raw control characters in strings

---@class agentbox.JsonEncodeOpts
---@field indent? integer              # spaces a level, as Python's json.dumps(indent=); 0 is one line
---@field ascii? boolean               # escape every character beyond ASCII
---@field sorted? boolean              # sort the keys of all objects bytewise
---@field utf8? "replace"|"error"      # bytes that are not UTF-8: U+FFFD (the default), or an error
---@field nonfinite? "error"|"null"    # NaN and infinity: an error (the default), or null
---@field max_bytes? integer           # refuse to write more, 1 GiB unless given

--- A subtree kept as text. It is valid JSON; `encode` copies it, with line breaks made spaces.
---@class agentbox.JsonRaw: userdata
---@field text fun(self: agentbox.JsonRaw): string    # as it was in the source
---@field has fun(self: agentbox.JsonRaw, text: string): boolean   # whether the text stands in it
---@field decode fun(self: agentbox.JsonRaw): any     # a new value every time

--- Parses one JSON text. Of repeated keys the last wins; nesting beyond 1024 is an error.
---
--- Raises on bad arguments.
--- Returns the value, and with `repair` whether anything had to be repaired.
--- Returns nil, err (`parse`, with line and column; `toobig`) when the text is not JSON.
---@nodiscard
---@param text string
---@param opts? agentbox.JsonDecodeOpts
---@return any value
---@return agentbox.Err|boolean? err_or_repaired
function M.decode(text, opts)
  return sys.decode(text, opts)
end

--- Parses what a model wrote as the arguments of a call: as `decode` with `repair`, and a
--- blank text is an empty object.
---@nodiscard
---@param text string
---@return any value
---@return agentbox.Err|boolean? err_or_repaired
function M.decode_arguments(text)
  if not text:find "%S" then return sys.object(), text ~= "" end
  return sys.decode(text, { repair = true })
end

--- Writes a value as JSON, always valid UTF-8.
---
--- Raises an error value, code `badarg` with the path to the culprit, for what JSON cannot say: NaN, functions,
--- cycles, lists with holes, keys that are not strings.
---@param value any
---@param opts? agentbox.JsonEncodeOpts
---@return string text
function M.encode(value, opts)
  return sys.encode(value, opts)
end

--- Marks a table as an array, so that it is written as `[...]` even when empty.
---@param t? table
---@return table t          # the same table
function M.array(t)
  return sys.array(t)
end

--- Marks a table as an object that remembers the order of its keys from now on.
---@param t? table
---@param first? string[]   # keys that come first, in this order; the others follow sorted
---@return table t          # the same table
function M.object(t, first)
  return sys.object(t, first)
end

---@param v any
---@return boolean
function M.is_array(v)
  return sys.is_array(v)
end

---@param v any
---@return boolean
function M.is_object(v)
  return sys.is_object(v)
end

--- What kind of JSON value this is, for the kinds that Lua's `type` does not tell.
---@param v any
---@return "null"|"array"|"object"|"number"|"raw"|nil kind   # "number": one kept as text
function M.type(v)
  return sys.type(v)
end

--- A member of a document as a Lua value: nil for null, decoded where it was kept as text.
---@param field any
---@return any
function M.plain(field)
  if field == nil or field == M.null then return nil end
  if sys.type(field) == "raw" then return field:decode() end
  return field
end

--- The keys of an object in order; of a plain table, its string keys sorted bytewise.
---@param t table
---@return string[] keys
function M.keys(t)
  return sys.keys(t)
end

--- Checks a JSON text and keeps it as it is, for `encode` to copy.
---@nodiscard
---@param text string
---@return agentbox.JsonRaw? raw
---@return agentbox.Err? err
function M.raw(text)
  return sys.raw(text)
end

--- Checks a JSON text and gives it on one line: as it is, or written anew where it has line breaks; nil when it is none.
---@nodiscard
---@param text string
---@return string?
function M.one_line(text)
  if not text:find("\n", 1, true) and not text:find("\r", 1, true) then return sys.raw(text) and text or nil end
  local value = sys.decode(text)
  return value ~= nil and sys.encode(value) or nil
end

return M
