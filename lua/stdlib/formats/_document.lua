--- A document in the layout that its format has: what was made as text is laid out with the rest, but for long lists of
--- log-probs and token ids.
local json = require "agentbox.json"
local sys = require "agentbox.sys.json"

local AS_TEXT = { raw = { "logprobs", "token_ids", "prompt_token_ids", "prompt_logprobs" } }

---@param doc any
---@param layout? { indent?: integer, ascii?: boolean }
---@return string
return function(doc, layout)
  local text = json.type(doc) == "raw" and doc:text() or json.encode(doc)
  if not layout then return text end
  return sys.lay_out(text, layout.indent, layout.ascii, AS_TEXT) or json.encode(json.decode(text, AS_TEXT), layout)
end
