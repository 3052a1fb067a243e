--- docker/context.lua: a folder as the archive that a build is sent; .dockerignore is kept.
local contexts = require "agentbox.image.context"
local err = require "agentbox.err"
local fs = require "agentbox.sys.fs"
local tar = require "agentbox.docker.tar"

local M = {}

local MAX_BYTES = 512 << 20 -- it is in memory once

local function entry_of(file)
  local stat, problem = fs.lstat(file.from)
  if not stat then return nil, problem end
  local opts = { type = stat.type, mode = stat.mode & 4095, mtime = math.floor(stat.mtime) }
  if stat.type == "link" then
    opts.target, problem = fs.readlink(file.from)
    if not opts.target then return nil, problem end
  elseif stat.type == "file" then
    opts.bytes, problem = fs.read(file.from, MAX_BYTES)
    if not opts.bytes then return nil, problem end
  elseif stat.type ~= "dir" then
    return "" -- FIFOs and sockets, as `docker build` does
  end
  return tar.entry(file.to, opts)
end

---@async
---@param dir string
---@return string? archive
---@return agentbox.Err? err
function M.pack(dir)
  local context, problem = contexts.open(dir)
  if not context then return nil, problem end
  local files
  files, problem = context:files({ "." }, "", true)
  if not files then return nil, problem end
  local parts, total = {}, 0
  for _, file in ipairs(files) do
    local entry
    entry, problem = entry_of(file)
    if not entry then return nil, err.wrap(problem, "the build's context") end
    parts[#parts + 1] = entry
    total = total + #entry
    if total > MAX_BYTES then
      return nil, err.new("toobig", ("the context is larger than %d MB; a .dockerignore helps"):format(MAX_BYTES >> 20))
    end
  end
  parts[#parts + 1] = tar.END
  return table.concat(parts)
end

return M
