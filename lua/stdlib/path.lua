--- Paths as text: nothing here looks at a file system, except `abs`, which asks for the current directory.
local M = {}

---Joins with single slashes; an absolute part starts anew; empty parts are left out.
---@param ... string
---@return string
function M.join(...)
  local out = ""
  for _, part in ipairs { ... } do
    if part:sub(1, 1) == "/" or out == "" then out = part ~= "" and part or out
    elseif part ~= "" then out = (out:sub(-1) == "/" and out or out .. "/") .. part end
  end
  return out
end

---Without ".", "..", and double slashes as far as the text tells: "a/./b/../c" is "a/c". ".." at the top of an
---absolute path stays at the top; in a relative one it is kept.
---@param path string
---@return string
function M.clean(path)
  local absolute, out = path:sub(1, 1) == "/", {}
  for part in path:gmatch "[^/]+" do
    if part == ".." and #out > 0 and out[#out] ~= ".." then out[#out] = nil
    elseif part == ".." and not absolute then out[#out + 1] = part
    elseif part ~= "." and part ~= ".." then out[#out + 1] = part end
  end
  local text = table.concat(out, "/")
  if absolute then return "/" .. text end
  return text ~= "" and text or "."
end

---The last part; "" for "/".
---@param path string
---@return string
function M.base(path)
  return path:match "([^/]+)/*$" or ""
end

---Everything before the last part; "." when there is none.
---@param path string
---@return string
function M.dir(path)
  local dir = path:match "^(.*[^/])/+[^/]+/*$"
  if dir then return dir end
  return path:sub(1, 1) == "/" and "/" or "."
end

---The last part's name and its extension with the dot ("" when there is none; a leading dot is no extension).
---@param path string
---@return string stem
---@return string extension
function M.split_ext(path)
  local base = M.base(path)
  local stem, ext = base:match "^(.+)(%.[^.]*)$"
  return stem or base, ext or ""
end

---@param path string
---@return boolean
function M.is_abs(path)
  return path:sub(1, 1) == "/"
end

---Does the relative path stay inside, and is it nothing else than plain names? Refuses "", absolute paths, ".."
---and NUL.
---@param path string
---@return boolean
function M.is_inside(path)
  if path == "" or M.is_abs(path) or path:find("\0", 1, true) then return false end
  for part in path:gmatch "[^/]+" do
    if part == ".." then return false end
  end
  return M.clean(path) ~= "."
end

---@param path string
---@return string
function M.abs(path)
  if M.is_abs(path) then return M.clean(path) end
  return M.clean(M.join(assert(require "agentbox.sys.fs".cwd()), path))
end

return M
