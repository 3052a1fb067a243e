--- Files in the making: each is written beside its name, and all get their names together, once they are whole and
--- on the disk.
---
---     local parts <close> = parts.new()
---     local file, problem = parts:open "out/a.json"
---     ...
---     return parts:settle()
---
--- A crash leaves no file that is torn under its own name. What has not got its name when `parts` is closed, however
--- that comes, is removed. Who writes the same names at once has files of his own: the last to settle is who stays.
---
--- Who is killed leaves his files in the making. The first of them is locked as long as he lives and gets its name last, so
--- that `sweep` knows the files of the dead.
local async = require "agentbox.async"
local err = require "agentbox.err"
local fs = require "agentbox.sys.fs"
local rand = require "agentbox.rand"

local M = {}

-- So many files are open before they are synced: those that are synced at once share the disk's work.
local TOGETHER = 64

-- So many threads wait for the disk at once, which shares what they ask for.
local THREADS = 4

---@class agentbox.Parts
---@field private _mark string       # ours in the names of files in the making
---@field private _paths string[]    # of all files
---@field private _named integer     # how many have their names
---@field private _open { path: string, file: table }[]   # those that are not on the disk yet
---@field private _lock? table       # of the first
local Parts = {}
Parts.__index = Parts

local function new_mark() return rand.uuid4():sub(1, 8) end

---@return agentbox.Parts
function M.new()
  return setmetatable({ _mark = new_mark(), _paths = {}, _named = 0, _open = {} }, Parts)
end

local function part_of(self, path) return ("%s.part-%s"):format(path, self._mark) end

local function close_all(self)
  for _, one in ipairs(self._open) do one.file:close() end
  self._open = {}
end

-- Puts what is open on the disk, and closes it.
local function sync(self)
  local open, shares, problem = self._open, {}, nil
  for i, one in ipairs(open) do
    local share = (i - 1) % THREADS + 1
    shares[share] = shares[share] or {}
    table.insert(shares[share], one)
  end
  async.each(shares, function(share)
    local files = {}
    for i, one in ipairs(share) do files[i] = one.file end
    local ok, bad, at = fs.finish(files)
    if not ok then problem = problem or err.wrap(bad, share[at].path) end
  end)
  close_all(self)
  return problem == nil, problem
end

-- Locks the first file. Another export may be looking at it just then, to take it away.
local function live(self, path)
  for _ = 1, 3 do
    local lock, problem = fs.lock(part_of(self, path))
    self._lock = lock
    if lock or problem.code ~= "busy" then return end -- where nothing can be locked, nothing is swept
    self._mark = new_mark()
  end
end

--- Begins a file; its name need not be free.
---@async
---@nodiscard
---@param path string
---@return table? file     # of sys.fs.append_open; stays ours
---@return agentbox.Err? err
function Parts:open(path)
  local file, problem
  if #self._paths == 0 then live(self, path) end
  self._paths[#self._paths + 1] = path
  if #self._open < TOGETHER then file, problem = fs.append_open(part_of(self, path)) end
  if not file and #self._open > 0 then -- or this process has no more descriptors
    local ok, bad = sync(self)
    if not ok then return nil, bad end
    file, problem = fs.append_open(part_of(self, path))
  end
  if not file then return nil, err.wrap(problem, path) end
  self._open[#self._open + 1] = { path = path, file = file }
  return file
end

local function folder_of(path) return path:match "^(.*)/[^/]*$" or "." end

--- Gives all of them their names.
---@async
---@nodiscard
---@return boolean? ok
---@return agentbox.Err? err
function Parts:settle()
  local ok, problem = sync(self)
  local folders, n = {}, #self._paths
  for i = n, 1, -1 do -- the one that says who lives comes last
    if not ok then return nil, problem end
    local path = self._paths[i]
    ok, problem = fs.rename(part_of(self, path), path, { sync = false })
    if ok then self._named, folders[folder_of(path)] = n - i + 1, true end
  end
  for folder in pairs(folders) do
    if ok then ok, problem = fs.sync_dir(folder ~= "" and folder or "/") end
  end
  return ok, problem
end

--- Removes what has no name. May be called twice.
function Parts:close()
  close_all(self)
  for i = #self._paths - self._named, 1, -1 do os.remove(part_of(self, self._paths[i])) end
  if self._lock then self._lock:close() end
  self._paths, self._named, self._lock = {}, 0, nil
end
Parts.__close = Parts.close

-- Removes the files of one writer, unless one is locked.
local function remove_dead(paths)
  for _, path in ipairs(paths) do
    local lock, problem = fs.lock(path, false, true)
    if lock then lock:close()
    elseif problem.code ~= "notfound" then return end
  end
  for _, path in ipairs(paths) do
    local lock <close> = fs.lock(path, false, true)
    if lock then os.remove(path) end
  end
end

local function writers_in(dir, fits)
  local writers = {}
  for _, entry in ipairs(fs.list(dir) or {}) do
    local name, mark = entry.name:match "^(.+)%.part%-(%x%x%x%x%x%x%x%x)$"
    if name and entry.type == "file" and fits(name) then
      writers[mark] = writers[mark] or {}
      table.insert(writers[mark], dir .. "/" .. entry.name)
    end
  end
  return writers
end

--- Removes what writers who were killed left in a folder, in the making of names that `fits` says yes to.
---@param dir string
---@param fits fun(name: string): boolean
function M.sweep(dir, fits)
  local before = writers_in(dir, fits)
  if not next(before) then return end
  -- Who begins just then may be listed without the first of his files, which is the one that is locked; not again.
  for mark, paths in pairs(writers_in(dir, fits)) do
    if before[mark] then remove_dead(paths) end
  end
end

return M
