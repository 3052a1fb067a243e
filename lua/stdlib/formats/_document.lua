--- A document in the layout that its format has: what was made as text is laid out with the rest, but for long lists of
--- log-probs and token ids.
local json = require "agentbox.json"
local sys = require "agentbox.sys.json"

local M = {}

local AS_TEXT = { raw = { "logprobs", "token_ids", "prompt_token_ids", "prompt_logprobs" } }

-- Whether the text says all that the layout wants to know.
local function needs_no_values(layout)
  for name in pairs(layout) do
    if name ~= "indent" and name ~= "ascii" then return false end
  end
  return (layout.indent or 0) > 0
end

--- The document's text.
---@param doc any
---@param layout? { indent?: integer, ascii?: boolean }
---@return string
function M.text(doc, layout)
  local text = json.type(doc) == "raw" and doc:text() or json.encode(doc)
  if not layout then return text end
  local laid_out = needs_no_values(layout) and sys.lay_out(text, layout.indent, layout.ascii, AS_TEXT)
  return laid_out or json.encode(json.decode(text, AS_TEXT), layout)
end

--- Writes the same to a file, mostly without a string of it.
---@param file table       # of sys.fs.append_open
---@param sink table       # of sys.sink: nothing is left in it
---@param doc any
---@param layout? { indent?: integer, ascii?: boolean }
---@return boolean? ok
---@return agentbox.Err? err
function M.write(file, sink, doc, layout)
  local ok, problem = false, nil
  sink:aim(file)
  if layout and needs_no_values(layout) then ok, problem = sink:lay_out(doc, layout.indent, layout.ascii, AS_TEXT) end
  if ok == false then return file:write(M.text(doc, layout)) end
  if ok then ok, problem = sink:flush() end
  return ok, problem
end

return M
