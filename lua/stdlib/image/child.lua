--- image/child.lua: runs the program that unpacks archives (src/rt/unpack.h), and reads what it says.
local err = require "agentbox.err"
local fs = require "agentbox.sys.fs"
local os_ = require "agentbox.sys.os"
local sys = require "agentbox.sys.sandbox"

local M = {}

local WORD = "--archive-child"
local TIMEOUT_S = 3600

-- In stock Lua the program around us is not agentbox, which has to be installed beside.
local function program()
  local exe = fs.readlink "/proc/self/exe" or ""
  if not exe:match "[^/]*$":find "^lua" then return "/proc/self/exe" end
  for dir in (os_.env "PATH" or ""):gmatch "[^:]+" do
    if fs.exists(dir .. "/agentbox") then return dir .. "/agentbox" end
  end
  return nil, err.new("unsupported", "unpacking an image needs the program agentbox in the PATH")
end

local function environment()
  local env = { PATH = os_.env "PATH" }
  for _, name in ipairs { "LD_LIBRARY_PATH", "ASAN_OPTIONS", "AGENTBOX_FAULTS" } do env[name] = os_.env(name) end
  return env
end

-- Other programs that this one is instead are started in the same way.
M.program, M.environment = program, environment

local function failure(outcome)
  local code, text = outcome.stderr:match "^(%l+) ([^\n]*)"
  if outcome.timed_out then return err.new("timeout", ("unpacking took longer than %d s"):format(TIMEOUT_S)) end
  if not code then
    return err.new("invalid", ("the process that unpacks ended with %s %s"):format(
      outcome.signal or outcome.exit_code, outcome.stderr:sub(1, 200)))
  end
  return err.new(code, text)
end

---@class agentbox.image.Counts
---@field diff_ids string[]   # digits only, of each archive
---@field entries integer
---@field bytes integer       # of the unpacked archives
---@field skipped integer     # devices and sockets
---@field stripped integer    # attributes and owners that could not be kept

---@async
---@param words string[]
---@param stdin? string
---@return agentbox.image.Counts?
---@return agentbox.Err?
local function run(words, stdin)
  local exe, problem = program()
  if not exe then return nil, problem end
  local raw <close>, bad = sys.plain { root = "/", workspace = "/", env = environment() }
  if not raw then return nil, bad end
  local argv = { exe, WORD }
  for i, word in ipairs(words) do argv[i + 2] = tostring(word) end
  local outcome
  outcome, problem = raw:exec(argv, { timeout_s = TIMEOUT_S, stdin = stdin })
  if not outcome then return nil, problem end
  if outcome.exit_code ~= 0 then return nil, failure(outcome) end
  local counts = { diff_ids = {}, entries = 0, bytes = 0, skipped = 0, stripped = 0 }
  for key, value in outcome.stdout:gmatch "(%l[%l_]*) (%x+)\n" do
    if key == "diff_id" then
      table.insert(counts.diff_ids, value)
    else
      counts[key] = math.tointeger(tonumber(value))
    end
  end
  return counts
end

---@class agentbox.image.Archive
---@field path string
---@field diff_id? string    # digits; checked when given

---Unpacks archives over each other into the empty directory dest.
---@async
---@param dest string
---@param archives agentbox.image.Archive[]
---@param opts { bundle?: boolean, base?: string, max_bytes: integer, max_entries: integer }
---@return agentbox.image.Counts?
---@return agentbox.Err?
function M.unpack(dest, archives, opts)
  local words = { "unpack", dest, opts.bundle and "bundle" or "layer", M.keeps_owners() and "own" or "flat",
    opts.base or "-", opts.max_bytes, opts.max_entries }
  for _, archive in ipairs(archives) do
    words[#words + 1] = archive.path
    words[#words + 1] = archive.diff_id or "-"
  end
  return run(words)
end

---Removes the directory or file `name` in dir, whatever owners and modes are below it.
---@async
---@param dir string
---@param name string
---@return true?
---@return agentbox.Err?
function M.remove(dir, name)
  local counts, problem = run { "remove", dir, name }
  if not counts then return nil, problem end
  return true
end

---Writes the changes of a frozen sandbox as an uncompressed layer.
---@async
---@param dir string
---@param out string
---@param ids integer[]
---@param skip? string
---@return agentbox.image.Counts?
---@return agentbox.Err?
function M.pack(dir, out, ids, skip)
  return run { "pack", dir, out, ids[1], ids[2], ids[3], skip or "-" }
end

---Writes files of the host as an uncompressed layer, in the order given.
---@async
---@param out string
---@param files { from: string, to: string }[]
---@param how { uid: integer, gid: integer, mode?: integer }
---@return agentbox.image.Counts?
---@return agentbox.Err?
function M.copy(out, files, how)
  local list = {}
  for _, file in ipairs(files) do
    list[#list + 1] = file.from
    list[#list + 1] = file.to
  end
  local stdin = #list > 0 and table.concat(list, "\0") .. "\0" or ""
  return run({ "copy", out, how.uid, how.gid, how.mode and ("%o"):format(how.mode) or "-" }, stdin)
end

---Whether archives can be read here at all.
---@async
---@return true?
---@return agentbox.Err?
function M.check()
  local counts, problem = run { "check" }
  if not counts then return nil, problem end
  return true
end

---Whether files get the owners that the image says. Else everything in it belongs to the caller, root inside.
---@return boolean
function M.keeps_owners()
  return sys.probe().root
end

return M
