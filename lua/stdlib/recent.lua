--- Texts that come again soon, kept once: what a thousand rollouts begin with is often the same bytes, made anew for
--- each of them.
local M = {}

--- A function that gives back the text it was given, or the same bytes from before. It remembers the last `count`.
---@param count integer
---@param max_bytes integer   # longer texts are left alone
---@return fun(text: string): string
function M.new(count, max_bytes)
  local known, at = {}, 1
  return function(text)
    if #text > max_bytes then return text end
    for i = 1, #known do
      if known[i] == text then return known[i] end
    end
    known[at] = text
    at = at % count + 1
    return text
  end
end

return M
