--- Large bodies and artifacts of a run, each a file named by the SHA-256 of its bytes: `blobs/ab/abcd...`.
local err = require "agentbox.err"
local fs = require "agentbox.sys.fs"

local M = {}

local function folder_of(run_dir, id)
  local hex = id:gsub("^sha256:", "")
  return ("%s/blobs/%s"):format(run_dir, hex:sub(1, 2)), hex
end

--- The path of a blob.
---@param run_dir string
---@param id string    # "sha256:..."
---@return string path
function M.path(run_dir, id)
  local folder, hex = folder_of(run_dir, id)
  return folder .. "/" .. hex
end

-- Makes a folder of blobs, on the disk up to the run's own. One that is there may be so only in memory: the first time it
-- is met, it is synced all the same.
local function make_folder(run_dir, folder, known)
  if known[folder] then return true end
  local ok, problem = fs.mkdir(folder, true)
  if ok then ok, problem = fs.sync_dir(run_dir .. "/blobs") end
  if ok then ok, problem = fs.sync_dir(run_dir) end
  known[folder] = ok
  return ok, problem
end

local function write_one(folder, hex, bytes)
  local path = folder .. "/" .. hex
  local ok, problem
  if not fs.exists(path) then
    ok, problem = fs.write(path, bytes, { sync = true, exclusive = true })
    if ok or problem.code ~= "exists" then return ok, problem end
  end
  return fs.sync_dir(folder) -- another fiber may be about to
end

--- Writes the blobs that are not there yet; each is on the disk, whole, when this returns.
---@async
---@nodiscard
---@param run_dir string
---@param blobs table<string, string>     # id → bytes
---@param known table<string, boolean>    # folders that are on the disk; kept for the next call
---@return boolean? ok
---@return agentbox.Err? err
function M.write(run_dir, blobs, known)
  for id, bytes in pairs(blobs) do
    local folder, hex = folder_of(run_dir, id)
    local ok, problem = make_folder(run_dir, folder, known)
    if ok then ok, problem = write_one(folder, hex, bytes) end
    if not ok then return nil, problem end
  end
  return true
end

--- Reads a blob.
---@async
---@nodiscard
---@param run_dir string
---@param id string
---@return string? bytes
---@return agentbox.Err? err
function M.read(run_dir, id)
  local bytes, problem = fs.read(M.path(run_dir, id))
  if bytes then return bytes end
  return nil, err.wrap(problem, "blob " .. id)
end

return M
