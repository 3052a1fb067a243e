---@meta agentbox.sys.fs

---@class agentbox.DirEntry
---@field name string
---@field type "file"|"dir"|"link"|"fifo"|"socket"|"char"|"block"|"unknown"

---@class agentbox.Stat
---@field type "file"|"dir"|"link"|"fifo"|"socket"|"char"|"block"
---@field size integer
---@field mode integer      # permission bits
---@field mtime number      # unix time
---@field uid integer
---@field gid integer
---@field ino integer
---@field dev integer
---@field nlink integer

--- A file that grows. Closed by close, by leaving a <close> scope, or by the collector.
---@class agentbox.File
local File = {}

--- All of the bytes, or nil and the error; what a full disk took is cut off again.
---@param bytes string
---@return true? ok
---@return agentbox.Err? err
function File:write(bytes) end

--- Waits until the bytes are on the disk.
---@async
---@return true? ok
---@return agentbox.Err? err
function File:sync() end

---@param size integer
---@return true? ok
---@return agentbox.Err? err
function File:truncate(size) end

---@return integer
function File:size() end

function File:close() end

---@class agentbox.sys.fs
local M = {}

--- The whole file. `toobig` when it is bigger than max_bytes, `invalid` when it is not a regular file.
---@async
---@param path string
---@param max_bytes? integer
---@return string? bytes
---@return agentbox.Err? err
function M.read(path, max_bytes) end

--- Replaces the file in one step and syncs it and its folder.
---@async
---@param path string
---@param bytes string
---@param opts? { mode?: integer, sync?: boolean, exclusive?: boolean }
---@return true? ok
---@return agentbox.Err? err   # `full`, `exists` with exclusive
function M.write(path, bytes, opts) end

--- Puts on the disk which files a folder has: a file that was made and synced can be lost without.
---@async
---@param dir string
---@return true? ok
---@return agentbox.Err? err
function M.sync_dir(dir) end

---@param path string
---@param mode? integer
---@return agentbox.File? file
---@return agentbox.Err? err
function M.append_open(path, mode) end

--- Waits until the bytes of all the files are on the disk, and closes them in any case. Those that go together cost the
--- disk less than one after the other.
---@async
---@param files agentbox.File[]
---@return true? ok
---@return agentbox.Err? err
---@return integer? at      # the place of the one that failed
function M.finish(files) end

--- A lock between processes, held until it is closed; `busy` when another process holds it.
---@param path string
---@param shared? boolean   # several may hold it so, and nobody otherwise meanwhile
---@param there? boolean    # no file is made: `notfound` when there is none
---@return { close: fun(self) }? lock
---@return agentbox.Err? err
function M.lock(path, shared, there) end

---@param path string
---@return agentbox.Stat? stat
---@return agentbox.Err? err
function M.stat(path) end

--- As stat, of the link itself.
---@param path string
---@return agentbox.Stat? stat
---@return agentbox.Err? err
function M.lstat(path) end

--- The entries, sorted by bytes, without "." and "..".
---@async
---@param dir string
---@return agentbox.DirEntry[]? entries
---@return agentbox.Err? err
function M.list(dir) end

---@param path string
---@param parents? boolean   # creates missing ones and accepts a folder that is there
---@return true? ok
---@return agentbox.Err? err
function M.mkdir(path, parents) end

--- Never follows a symbolic link.
---@async
---@param path string
---@param recursive? boolean   # a tree; one that is not there is no error
---@return true? ok
---@return agentbox.Err? err
function M.remove(path, recursive) end

---@param from string
---@param to string
---@param opts? { sync?: boolean }   # false: who renames many syncs their folder once
---@return true? ok
---@return agentbox.Err? err
function M.rename(from, to, opts) end

---@param target string
---@param path string
---@return true? ok
---@return agentbox.Err? err
function M.symlink(target, path) end

---@param path string
---@return string? target
---@return agentbox.Err? err
function M.readlink(path) end

---@param path string
---@return string? path
---@return agentbox.Err? err
function M.realpath(path) end

---@return string? path
---@return agentbox.Err? err
function M.cwd() end

---@param path string
---@return boolean
function M.exists(path) end

--- A new folder, mode 0700, under $TMPDIR or /tmp.
---@param prefix string
---@return string? path
---@return agentbox.Err? err
function M.tmpdir(prefix) end

return M
