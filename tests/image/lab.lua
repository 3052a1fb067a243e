--- What the image tests share: a store of their own, the archives of archives.py, servers of this machine.
local fiber = require "agentbox.sys.fiber"
local fs = require "agentbox.sys.fs"
local http = require "agentbox.http"
local json = require "agentbox.json"
local os_ = require "agentbox.sys.os"
local sys = require "agentbox.sys.sandbox"
local time = require "agentbox.sys.time"

if package.loaded["tests.image.lab"] then return package.loaded["tests.image.lab"] end

local M = { root = sys.probe().root }
package.loaded["tests.image.lab"] = M

M.here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "."
M.dir = assert(fs.tmpdir "agentbox-images-")
M.victim = M.dir .. "/victim"

local function quoted(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

-- The archives are made once for all tests of a file, so that no test can remove them: they go when the engine is gone.
os.execute(([[DIR=%s setsid sh -c 'tail --pid=%d -f /dev/null; chmod -R u+rwX "$DIR"; rm -rf "$DIR"' </dev/null >/dev/null 2>&1 &]])
  :format(quoted(M.dir), os_.pid()))

--- Runs a command of this machine; its output.
---@param command string
---@return string
function M.sh(command)
  local pipe <close> = assert(io.popen("exec 2>&1; " .. command))
  local text = pipe:read "a"
  local ok, _, status = pipe:close()
  assert(ok, ("%s: status %s: %s"):format(command, tostring(status), text))
  return text
end

--- The program under test, with a store of its own.
---@param home string
---@return string
function M.agentbox(home)
  return ("env AGENTBOX_HOME=%s /proc/%d/exe"):format(quoted(home), os_.pid())
end

assert(fs.mkdir(M.victim))
assert(fs.write(M.victim .. "/secret", "secret\n"))
local arch = require "agentbox.image.document".architecture()
M.sh(("VICTIM=%s ARCH=%s python3 %s/archives.py %s"):format(quoted(M.victim), arch, quoted(M.here), quoted(M.dir)))

---@param name string
---@return string
function M.archive(name)
  return M.dir .. "/" .. name
end

--- Whether the file system of TMPDIR maps user ids for root, which an overlay cannot.
function M.maps_ids()
  if M.maps == nil and M.root then
    assert(fs.mkdir(M.dir .. "/maps"))
    assert(require "agentbox".sandbox.create { image = M.dir .. "/maps", workspace = "/w" }):close()
    M.maps = not sys.probe().ways.image_unmapped
  end
  return M.maps
end

--- Skips the test where a sandbox's root cannot change an image's files.
function M.needs_mapped_ids()
  if M.root and not M.maps_ids() then require "agentbox".test.skip "the file system of TMPDIR maps no user ids, as an overlay cannot" end
end

--- What can be seen from outside: nothing hostile may have changed it.
function M.victim_is_untouched()
  local names = {}
  for i, entry in ipairs(fs.list(M.victim)) do names[i] = entry.name end
  return table.concat(names, " ") == "secret" and fs.read(M.victim .. "/secret") == "secret\n"
      and fs.stat(M.victim .. "/secret").nlink == 1
end

--- The names in a folder of the store.
---@param home string
---@param folder string
---@return string[]
function M.names(home, folder)
  local names = {}
  for i, entry in ipairs(fs.list(home .. "/images/" .. folder) or {}) do names[i] = entry.name end
  return names
end

--- A process of this machine: :read(), :kill(), :wait().
---@param words string[]
---@return table process
function M.spawn(words)
  local plain = assert(sys.plain { root = "/", workspace = "/", env = { PATH = os_.env "PATH" } })
  return assert(plain:spawn(words)), plain
end

--- Until it is so; fails after a minute.
---@param what fun(): any
function M.wait_for(what)
  local deadline = time.monotonic() + 60
  while not what() do
    assert(time.monotonic() < deadline, "it did not come to that")
    fiber.sleep(0.002)
  end
end

--- Removes every image; this process stands on none of them any more.
function M.forget()
  local image, tree = require "agentbox.image", require "agentbox.image.tree"
  for id, lock in pairs(tree._held) do
    lock:close()
    tree._held[id] = nil
  end
  for _, one in ipairs(image.list()) do assert(image.rm(one.name)) end
  assert(image.gc())
end

local server

--- The registry of registry.py.
---@return { host: string, add: fun(name: string, file: string, mode: string): string, log: fun(name: string): table[] }
function M.registry()
  if server then return server end
  local pipe <close> = assert(io.popen(("python3 %s/registry.py --watch-pid %d &"):format(quoted(M.here), os_.pid())))
  local host = "127.0.0.1:" .. assert(pipe:read "l", "the registry did not start")
  server = { host = host }
  function server.add(name, file, mode)
    local url = ("http://%s/images/%s?file=%s&mode=%s"):format(host, name, M.archive(file), mode)
    assert(assert(http.request { url = url, method = "PUT", proxy = false }).status == 201)
    return host .. "/" .. name .. ":1"
  end
  function server.log(name)
    local list = {}
    for _, entry in ipairs(json.decode(http.request { url = "http://" .. host .. "/log", proxy = false }.body)) do
      if entry.path:find("/" .. name .. "/", 1, true) then list[#list + 1] = entry end
    end
    return list
  end
  return server
end

return M
