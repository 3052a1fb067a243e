--- image/bundle.lua: the files of an unpacked image file, whose names and links come from who made it.
local err = require "agentbox.err"
local fs = require "agentbox.sys.fs"

local M = {}

local DOCUMENT_MAX = 8 << 20
local MAX_LINKS = 8

---@param text string
---@return nil
---@return agentbox.Err
function M.invalid(text)
  return nil, err.new("invalid", text)
end

-- "a/../b" as "b"; nil when it leaves.
local function normal(path)
  local parts = {}
  for part in path:gmatch "[^/]+" do
    if part == ".." then
      if #parts == 0 then return nil end
      parts[#parts] = nil
    elseif part ~= "." then
      parts[#parts + 1] = part
    end
  end
  return table.concat(parts, "/")
end

---The path of a regular file below dir, links followed only inside it: the names come from the bundle.
---@param dir string
---@param path string
---@return string?
function M.inside(dir, path)
  path = normal(path)
  local links, at, rest = 0, "", path
  while rest and rest ~= "" do
    local part, tail = rest:match "^([^/]+)/?(.*)$"
    local here = at == "" and part or at .. "/" .. part
    local stat = fs.lstat(dir .. "/" .. here)
    if not stat then return nil end
    if stat.type == "link" then
      local target = fs.readlink(dir .. "/" .. here)
      links = links + 1
      if not target or target:sub(1, 1) == "/" or links > MAX_LINKS then return nil end
      at, rest = "", normal(at .. "/" .. target .. "/" .. tail)
    else
      if tail == "" then return stat.type == "file" and dir .. "/" .. here or nil end
      at, rest = here, tail
    end
  end
end

---A small file, such as a manifest.
---@async
---@param dir string
---@param path string
---@return string?
---@return agentbox.Err?
function M.read(dir, path)
  local file = M.inside(dir, path)
  if not file then return M.invalid(("the bundle has no file %s"):format(path)) end
  return fs.read(file, DOCUMENT_MAX)
end

---A file of the bundle as a blob of the store.
---@async
---@param self agentbox.image.Store
---@param dir string
---@param path string
---@param expected? string   # digest
---@return string? digest
---@return integer|agentbox.Err size
function M.take(self, dir, path, expected)
  local file = M.inside(dir, path)
  local handle = file and io.open(file, "rb")
  if not handle then return M.invalid(("the bundle has no file %s"):format(path)) end
  local digest, size = self:ingest(function(n) return handle:read(n) end, expected)
  handle:close()
  return digest, size
end

return M
