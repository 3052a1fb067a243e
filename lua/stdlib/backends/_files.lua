--- The file methods of a sandbox handle: paths against the workspace, options checked, users by name.
local err = require "agentbox.err"
local schema = require "agentbox.schema"
local clean = require "agentbox.path".clean
local sys = require "agentbox.sys.sandbox"

local M = {}

local READ_MAX = 64 << 20

---@param sb agentbox.Sandbox
---@param path string
---@return string
function M.path(sb, path)
  if type(path) ~= "string" or path == "" then error("a path must be a non-empty string", 3) end
  return path:sub(1, 1) == "/" and path or sb.workspace .. "/" .. path
end

---What commands see at /proc and /dev are file systems of the kernel, laid over folders that nobody sees: a file put there
---from outside would be lost.
---@param sb agentbox.Sandbox
---@param path string     # absolute
---@return boolean
function M.is_kernels(sb, path)
  if sb.kind ~= "native" or not (path:find("/proc", 1, true) or path:find("/dev", 1, true)) then return false end
  local top = clean(path):match "^/([^/]*)"
  return top == "proc" or top == "dev"
end

-- Where a file method looks.
local function place(sb, path)
  local absolute = M.path(sb, path)
  if not M.is_kernels(sb, absolute) then return absolute end
  return nil, err.new("denied", path .. ": /proc and /dev belong to the kernel; only commands in the sandbox see them")
end

---The entry of that name in the sandbox's /etc/passwd.
---@param sb agentbox.Sandbox
---@param name string
---@return { uid: integer, gid: integer, home: string, name: string }?
---@return agentbox.Err?
function M.lookup(sb, name)
  local passwd, problem = sb._raw:read("/etc/passwd", 1 << 20)
  if not passwd then return nil, problem end
  for line in passwd:gmatch "[^\n]+" do
    local user, uid, gid, home = line:match "^([^:]*):[^:]*:(%d+):(%d+):[^:]*:([^:]*)"
    if user == name then return { uid = tonumber(uid), gid = tonumber(gid), home = home, name = name } end
  end
  return nil, err.new("notfound", ("no user '%s' in the sandbox's /etc/passwd"):format(name))
end

---Who is meant: a number, a name of the sandbox's /etc/passwd, "uid:gid".
---@param sb agentbox.Sandbox
---@param user string|integer
---@return { uid: integer, gid: integer, home?: string, name?: string }?
---@return agentbox.Err?
function M.user(sb, user)
  if user == 0 or user == "root" or user == "0" then return { uid = 0, gid = 0 } end
  local uid, gid = tostring(user):match "^(%d+):?(%d*)$"
  local found, problem
  if uid then
    found = { uid = tonumber(uid), gid = tonumber(gid) or tonumber(uid) }
  else
    found, problem = M.lookup(sb, user)
    if not found then return nil, problem end
  end
  if found.uid < sb._raw:user_count() and found.gid < sb._raw:user_count() then return found end
  return nil, err.new("unsupported", ("user %s: only root exists inside when agentbox runs as an ordinary user")
    :format(tostring(user)), { hint = "run agentbox as root, or leave the user out" })
end

local function owner_of(sb, opts)
  local who = opts.owner
  if who == nil then who = opts.user end
  if who ~= nil then return M.user(sb, who) end
  return sb._user or {}
end

-- What an ordinary user of the host may not do with files of other users inside, root inside may.
local function inside(sb, words, opts)
  opts.timeout_s = 60
  local out, problem = sb._raw:exec(words, opts)
  if not out then return nil, problem end
  if out.exit_code == 0 then return out.stdout end
  return nil, err.new("denied", (out.stderr:gsub("\n$", "")))
end

---Whether the engine has no rights over what users other than root inside own.
---@param sb agentbox.Sandbox
---@return boolean
function M.is_weak(sb)
  return sb.kind == "native" and (not sys.probe().root or sb._raw:user_count() == 1)
end

local function needs_help(sb, problem)
  return problem and problem.code == "denied" and sb.kind == "native" and M.is_weak(sb)
end

local function read_inside(sb, path, max, head, problem)
  local stat = sb._raw:stat(path)
  if not stat or stat.type ~= "file" or (stat.size > max and not head) then return nil, problem end
  return inside(sb, { "head", "-c", tostring(max), path }, { max_output_bytes = max })
end

local function write_inside(sb, path, bytes, opts)
  local redirect = opts.append and 'cat >> "$0"' or opts.exclusive and 'set -C; cat > "$0"' or 'cat > "$0"'
  local ok, problem = inside(sb, { "/bin/sh", "-c", redirect, path }, { stdin = bytes })
  if not ok or not opts.mode then return ok and true, problem end
  ok, problem = inside(sb, { "chmod", ("%o"):format(opts.mode), path }, {})
  return ok and true, problem
end

local function compare(a, b)
  return (a.name or a.path) < (b.name or b.path)
end

---@class agentbox.Sandbox
local Files = {}

---Reads a regular file: bytes. `truncate` gives its head when it is longer than max_bytes (64 MiB when nothing is said).
---@async
---@param path string
---@param opts? { max_bytes?: integer, truncate?: boolean, user?: string|integer }
---@return string? bytes
---@return agentbox.Err? err
function Files:read(path, opts)
  opts = schema.options(opts or {}, {
    max_bytes = { "integer", min = 1 }, truncate = { "boolean" }, user = { "string|integer" },
  }, "sandbox:read")
  local max, absolute, problem = opts.max_bytes or READ_MAX, place(self, path)
  if not absolute then return nil, problem end
  local bytes
  bytes, problem = self._raw:read(absolute, max, opts.truncate)
  if needs_help(self, problem) then return read_inside(self, absolute, max, opts.truncate, problem) end
  return bytes, problem
end

local write_shape = {
  mode = { "integer", min = 0, max = 4095 }, owner = { "string|integer" }, user = { "string|integer" },
  append = { "boolean" }, exclusive = { "boolean" },
}

---Writes a file; missing folders are made. A new file gets mode 0644, or exactly `mode`; one that is there keeps its own.
---@async
---@param path string
---@param bytes string
---@param opts? { mode?: integer, owner?: string|integer, append?: boolean, exclusive?: boolean }
---@return true? ok
---@return agentbox.Err? err
function Files:write(path, bytes, opts)
  opts = schema.options(opts or {}, write_shape, "sandbox:write")
  local owner, problem = owner_of(self, opts)
  if not owner then return nil, problem end
  -- A file that is there keeps its owner unless another one is asked for by name.
  local asked = opts.owner ~= nil or opts.user ~= nil or self._user ~= nil
  local absolute
  absolute, problem = place(self, path)
  if not absolute then return nil, problem end
  local gives = asked and (owner.uid or 0) > 0 and M.is_weak(self)
  local ok
  ok, problem = self._raw:write(absolute, bytes, {
    mode = opts.mode, append = opts.append, exclusive = opts.exclusive,
    uid = asked and not gives and owner.uid or nil, gid = asked and not gives and owner.gid or nil,
  })
  if needs_help(self, problem) then ok, problem = write_inside(self, absolute, bytes, opts) end
  if not ok or not gives then return ok, problem end
  ok, problem = inside(self, { "chown", ("%d:%d"):format(owner.uid, owner.gid), absolute }, {})
  return ok and true, problem
end

---Adds to the end of a file.
---@async
---@param path string
---@param bytes string
---@param opts? { mode?: integer, owner?: string|integer }
---@return true? ok
---@return agentbox.Err? err
function Files:append(path, bytes, opts)
  local with = { append = true }
  for key, value in pairs(opts or {}) do with[key] = value end
  return self:write(path, bytes, with)
end

---What a path is; with `follow = false` of a link itself.
---@param path string
---@param opts? { user?: string|integer, follow?: boolean }
---@return { type: string, size: integer, mode: integer, uid: integer, gid: integer, mtime: number, ino: integer, target?: string }? stat
---@return agentbox.Err? err
function Files:stat(path, opts)
  opts = schema.options(opts or {}, { user = { "string|integer" }, follow = { "boolean" } }, "sandbox:stat")
  local absolute, problem = place(self, path)
  if not absolute then return nil, problem end
  if opts.follow == false then return self._raw:lstat(absolute) end
  return self._raw:stat(absolute)
end

---The entries of a folder, or with `recursive` of everything below, whose names are then paths. Sorted; names are bytes.
---@async
---@param path? string
---@param opts? { recursive?: boolean, max_entries?: integer, user?: string|integer }
---@return { name: string, type: string, size: integer, mode: integer, uid: integer, gid: integer, mtime: number }[]? entries
---@return agentbox.Err? err
function Files:list(path, opts)
  opts = schema.options(opts or {}, {
    recursive = { "boolean" }, max_entries = { "integer", min = 1 }, user = { "string|integer" },
  }, "sandbox:list")
  local method = opts.recursive and self._raw.tree or self._raw.list
  local absolute, problem = place(self, path or ".")
  if not absolute then return nil, problem end
  local entries
  entries, problem = method(self._raw, absolute, opts.max_entries)
  if not entries then return nil, problem end
  for _, entry in ipairs(entries) do
    entry.name = entry.name or entry.path
    entry.path = nil
  end
  table.sort(entries, compare)
  return entries
end

---Removes a file, a link, an empty folder, or with `recursive` a folder and what is in it.
---@async
---@param path string
---@param opts? { recursive?: boolean }
---@return true? ok
---@return agentbox.Err? err
function Files:remove(path, opts)
  opts = schema.options(opts or {}, { recursive = { "boolean" } }, "sandbox:remove")
  local absolute, problem = place(self, path)
  if not absolute then return nil, problem end
  return self._raw:remove(absolute, opts.recursive)
end

---Makes a folder and those above it; one that is there is fine.
---@param path string
---@param opts? { mode?: integer }
---@return true? ok
---@return agentbox.Err? err
function Files:mkdir(path, opts)
  opts = schema.options(opts or {}, { mode = { "integer", min = 0, max = 4095 } }, "sandbox:mkdir")
  local absolute, problem = place(self, path)
  if not absolute then return nil, problem end
  return self._raw:mkdir(absolute, { mode = opts.mode })
end

---Renames within the sandbox; what is at the new name is replaced.
---@param from string
---@param to string
---@return true? ok
---@return agentbox.Err? err
function Files:rename(from, to)
  local old, new, problem
  old, problem = place(self, from)
  if not old then return nil, problem end
  new, problem = place(self, to)
  if not new then return nil, problem end
  return self._raw:rename(old, new)
end

---Copies the tree below a path to another sandbox, on a thread. Links stay links; owners and modes are kept; FIFOs,
---sockets and devices are left out and counted.
---@async
---@param path string
---@param to agentbox.Sandbox
---@param to_path string
---@param opts? { max_bytes?: integer, max_entries?: integer }
---@return { files: integer, dirs: integer, links: integer, bytes: integer, skipped: integer }? counts
---@return agentbox.Err? err
function Files:copy_tree(path, to, to_path, opts)
  if type(self._raw) ~= type(to._raw) then
    return nil, err.new("unsupported", ("a tree is not copied from backend %s to %s at once"):format(self.kind, to.kind),
      { hint = "get it to a folder of the host, and put it from there" })
  end
  local absolute, there, problem
  absolute, problem = place(self, path)
  if not absolute then return nil, problem end
  there, problem = place(to, to_path)
  if not there then return nil, problem end
  return self._raw:copy_tree(absolute, to._raw, there, opts)
end

---Copies a folder of the host into the sandbox.
---@async
---@param dir string
---@param path string
---@param opts? { max_bytes?: integer, max_entries?: integer }
---@return { files: integer, dirs: integer, links: integer, bytes: integer, skipped: integer }? counts
---@return agentbox.Err? err
function Files:put(dir, path, opts)
  local absolute, problem = place(self, path)
  if not absolute then return nil, problem end
  return self._raw:put(absolute, dir, opts)
end

---Copies a folder of the sandbox into one of the host, which must exist.
---@async
---@param path string
---@param dir string
---@param opts? { max_bytes?: integer, max_entries?: integer }
---@return { files: integer, dirs: integer, links: integer, bytes: integer, skipped: integer }? counts
---@return agentbox.Err? err
function Files:get(path, dir, opts)
  local absolute, problem = place(self, path)
  if not absolute then return nil, problem end
  return self._raw:get(absolute, dir, opts)
end

---Adds the file methods to a class.
---@param class table
function M.install(class)
  for name, fn in pairs(Files) do class[name] = fn end
end

return M
