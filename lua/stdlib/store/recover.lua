--- What a crash or a kill leaves behind, put in order when a run is opened again.
local frame = require "agentbox.store.frame"
local fs = require "agentbox.sys.fs"
local regular = require "agentbox.store.regular"
local time = require "agentbox.sys.time"

local M = {}

local STALE_S = 3600

-- The offset after the last whole line of a file: whole means ended by a line feed and with a right sum.
local function whole_bytes(path, size)
  local file, problem = regular(path)
  if not file then return nil, problem end
  local _ <close> = file
  local chunk, tail, from = 1 << 20, "", size
  while from > 0 do
    local step = math.min(chunk, from)
    from = from - step
    file:seek("set", from)
    tail = file:read(step) .. tail
    local ends = #tail
    while ends > 0 and tail:byte(ends) ~= 10 do ends = ends - 1 end
    local starts = ends - 1
    while starts > 0 and tail:byte(starts) ~= 10 do starts = starts - 1 end
    if ends > 0 and (starts > 0 or from == 0) then
      if frame.check(tail:sub(starts + 1, ends)) ~= false then return from + ends end
      return from + starts
    end
    chunk = chunk * 2
  end
  return 0
end

--- Cuts a line that a crash left unfinished; what is cut is kept beside, for people.
---@async
---@nodiscard
---@param path string
---@return boolean? ok
---@return agentbox.Err? err
function M.cut_torn(path)
  local stat = fs.stat(path)
  if not stat or stat.size == 0 then return true end
  local whole, problem = whole_bytes(path, stat.size)
  if not whole then return nil, problem end
  if whole == stat.size then return true end
  local file <close> = assert(io.open(path, "rb"))
  file:seek("set", whole)
  local done, failed = fs.write(path .. ".torn", file:read "a", { mode = 384 })
  if not done then return nil, failed end
  local out, cannot = fs.append_open(path)
  if not out then return nil, cannot end
  local ok, bad = out:truncate(whole)
  if ok then ok, bad = out:sync() end
  out:close()
  return ok, bad
end

local function sweep(dir, older_than_s)
  for _, entry in ipairs(fs.list(dir) or {}) do
    local path = dir .. "/" .. entry.name
    if entry.type == "file" and entry.name:find "%.tmp%.%x%x%x%x%x%x$" then
      local stat = fs.stat(path)
      if stat and time.now() - stat.mtime >= older_than_s then fs.remove(path) end
    end
  end
end

--- Removes half-written files of an engine that was killed. In the run's folder, which is ours alone, they go at once;
--- in the output folder another process may be writing, so only old ones go.
---@async
---@param dir string
---@param run_dir string
function M.sweep(dir, run_dir)
  sweep(dir, STALE_S)
  sweep(run_dir, 0)
  for _, entry in ipairs(fs.list(run_dir .. "/blobs") or {}) do sweep(run_dir .. "/blobs/" .. entry.name, 0) end
end

return M
