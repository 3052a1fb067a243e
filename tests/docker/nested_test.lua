--- Native sandboxes inside a Docker container conform in full, with each set of options that docs/sandbox.md names.
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local lu = require "luaunit"
local test = require "agentbox.test"

local image = dofile((arg[0]:match "^(.*/)" or "./") .. "../support/testimage.lua")

local M = {}

local api

function M.setUp()
  local bin = fs.readlink "/bin"
  if not bin or not bin:find "usr/bin/?$" then test.skip "a machine with a merged /usr is needed" end
  api = image.prepare "docker"
end

-- The output of `sandbox conform --json` in a container of its own: a machine that has this one's /usr and no more.
local function conform_in(host, user)
  host.Binds = { "/usr:/usr:ro", "/etc:/etc:ro", assert(fs.readlink "/proc/self/exe") .. ":/opt/agentbox:ro" }
  host.NetworkMode = "none"
  local made = assert(api:call("POST", "/containers/create", { json = {
    Image = image.SHELL_OF_HOST, Cmd = json.array { "/opt/agentbox", "sandbox", "conform", "--json" }, User = user,
    Env = json.array { "HOME=/tmp", "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin" }, Tty = true,
    Labels = { ["agentbox-test"] = "nested" }, HostConfig = host,
  } }))
  local _ <close> = setmetatable({}, { __close = function()
    api:call("DELETE", "/containers/" .. made.Id, { query = { force = 1, v = 1 } })
  end })
  assert(api:call("POST", "/containers/" .. made.Id .. "/start"))
  local over = assert(api:call("POST", "/containers/" .. made.Id .. "/wait", { timeout_s = 200 }))
  local log = assert(api:send("GET", "/containers/" .. made.Id .. "/logs", { query = { stdout = 1, stderr = 1 } }))
  return over.StatusCode, log.body
end

local function conforms(host, user)
  local status, text = conform_in(host, user)
  local told = json.decode(text:match "{.*}" or "")
  local bad = {}
  for _, case in ipairs(told and told.cases or {}) do
    if case.verdict ~= "ok" then bad[#bad + 1] = ("%s %s: %s"):format(case.verdict, case.id, case.why) end
  end
  lu.assertEquals(table.concat(bad, "\n"), "")
  lu.assertEquals(status, 0, text)
  lu.assertTrue(told.counts.ok > 60)
end

local function unconfined()
  return { SecurityOpt = json.array { "seccomp=unconfined", "apparmor=unconfined" },
    MaskedPaths = json.array {}, ReadonlyPaths = json.array {} }
end

-- Root without the right to mount: a sandbox's root is one id that is not ours, also for what is put into it.
function M.test_root_without_the_right_to_mount() conforms(unconfined()) end

function M.test_an_ordinary_user() conforms(unconfined(), "1000:1000") end

function M.test_root_with_the_right_to_mount()
  conforms { CapAdd = json.array { "SYS_ADMIN", "NET_ADMIN" }, SecurityOpt = json.array { "seccomp=unconfined", "apparmor=unconfined" } }
end

return M
