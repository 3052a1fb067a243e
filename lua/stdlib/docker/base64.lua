--- docker/base64.lua: the reading half; the writing one is in image/credentials.lua.
local M = {}

local ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
local VALUE = {}
for i = 1, #ALPHABET do VALUE[ALPHABET:sub(i, i)] = i - 1 end

---@param text string
---@return string bytes    # what is no digit is left out
function M.decode(text)
  local out, word, bits = {}, 0, 0
  for digit in text:gmatch "[%w+/]" do
    word, bits = (word << 6 | VALUE[digit]) & 0xffffff, bits + 6
    if bits >= 8 then
      bits = bits - 8
      out[#out + 1] = string.char(word >> bits & 255)
    end
  end
  return table.concat(out)
end

return M
