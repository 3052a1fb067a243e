--- docker/tar.lua: writes tar archives, as the Engine API takes files.
local M = {}

local BLOCK = 512
local TYPES = { file = "0", link = "2", dir = "5" }

local function octal(n, width) return ("%0" .. width - 1 .. "o\0"):format(n) end

local function field(text, width) return text .. ("\0"):rep(width - #text) end

local function padding(n) return ("\0"):rep(-n % BLOCK) end

local function header(name, kind, mode, size, mtime, target)
  local head = field(name, 100) .. octal(mode, 8) .. octal(0, 8) .. octal(0, 8) .. octal(size, 12) .. octal(mtime, 12)
  local rest = field(kind .. field(target, 100) .. "ustar\00000", BLOCK - #head - 8)
  local sum = 8 * 32
  for i = 1, #head do sum = sum + head:byte(i) end
  for i = 1, #rest do sum = sum + rest:byte(i) end
  return head .. ("%06o\0 "):format(sum) .. rest
end

-- "LENGTH key=value\n", where the length counts itself.
local function record(key, value)
  local body = (" %s=%s\n"):format(key, value)
  local n = #body + 1
  while #tostring(n) + #body ~= n do n = #tostring(n) + #body end
  return n .. body
end

---One entry. Root's; names and targets may have any length, a file 8 GB.
---@param name string
---@param opts { type: "file"|"dir"|"link", mode?: integer, bytes?: string, target?: string, mtime?: integer }
---@return string
function M.entry(name, opts)
  local bytes, target = opts.bytes or "", opts.target or ""
  if opts.type == "dir" then name = name:gsub("/*$", "/") end
  local long = (#name > 100 and record("path", name) or "") .. (#target > 100 and record("linkpath", target) or "")
  local before = ""
  if long ~= "" then before = header("pax", "x", 420, #long, 0, "") .. long .. padding(#long) end
  return before .. header(name:sub(1, 100), TYPES[opts.type], opts.mode or (opts.type == "dir" and 493 or 420), #bytes,
    math.max(0, opts.mtime or 0), target:sub(1, 100)) .. bytes .. padding(#bytes)
end

--- What ends an archive.
M.END = ("\0"):rep(2 * BLOCK)

return M
