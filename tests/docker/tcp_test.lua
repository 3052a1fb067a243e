--- An engine over TCP with TLS, and the commands that people type, as processes of their own.
local fs = require "agentbox.sys.fs"
local lu = require "luaunit"
local os_ = require "agentbox.sys.os"
local sandbox = require "agentbox.sandbox"
local test = require "agentbox.test"

local here = arg[0]:match "^(.*/)" or "./"
local image = dofile(here .. "../support/testimage.lua")

local M = {}

local REAL = (os_.env "DOCKER_HOST" or "unix:///var/run/docker.sock"):match "^unix://(.*)$"

local host, dir, program

function M.setUp()
  image.prepare "docker"
  host = assert(sandbox.create { backend = "none" })
  dir = assert(fs.tmpdir "agentbox-test-")
  program = assert(fs.readlink "/proc/self/exe")
end

function M.tearDown()
  host:close()
  fs.remove(dir, true)
end

local function sh(command, env)
  return assert(host:exec(command, { timeout_s = 120, env = env or { DOCKER_HOST = "unix://" .. REAL } }))
end

local CERTIFICATES = [[
  set -e; cd %s
  openssl req -x509 -newkey rsa:2048 -nodes -keyout ca-key.pem -out ca.pem -days 2 -subj /CN=ca 2>/dev/null
  for who in server client; do
    openssl req -newkey rsa:2048 -nodes -keyout $who-key.pem -out $who.csr -subj /CN=$who 2>/dev/null
    printf 'subjectAltName=IP:127.0.0.1\n' > ext
    openssl x509 -req -in $who.csr -CA ca.pem -CAkey ca-key.pem -CAcreateserial -out $who.pem -days 2 -extfile ext 2>/dev/null
  done
  cp client.pem cert.pem; cp client-key.pem key.pem]]

function M.test_tls_with_a_client_certificate()
  if sh("command -v openssl").exit_code ~= 0 then test.skip "openssl makes the certificates" end
  lu.assertEquals(sh(CERTIFICATES:format(dir)).exit_code, 0)
  local command = ("python3 %s../support/tlsproxy.py %s %s/server.pem %s/server-key.pem %s/ca.pem %d &")
    :format(here, REAL, dir, dir, dir, os_.pid())
  local pipe <close> = assert(io.popen(command))
  local port = assert(pipe:read "l")
  local env = { DOCKER_HOST = "tcp://127.0.0.1:" .. port, DOCKER_TLS_VERIFY = "1", DOCKER_CERT_PATH = dir }
  -- More than one record of TLS in both directions, and what curl has read ahead.
  local run = ("%s sandbox run -b docker -i %s -- sh -c 'head -c 3000000 /dev/zero | tr \"\\0\" x; echo; echo err >&2; exit 6'")
    :format(program, image.NAME)
  local out = sh(run .. " | wc -c; true", env)
  lu.assertEquals(out.stdout:match "%d+", "3000001", out.stderr)
  lu.assertEquals(sh(run .. " >/dev/null", env).exit_code, 6)
  env.DOCKER_TLS_VERIFY = ""
  out = sh(run, env)
  lu.assertEquals(out.exit_code, 3, out.stderr)
  env.DOCKER_TLS_VERIFY, env.DOCKER_CERT_PATH = "1", "/nowhere"
  out = sh(run, env)
  lu.assertStrContains(out.stderr, "DOCKER_CERT_PATH")
end

function M.test_build_image()
  assert(fs.write(dir .. "/Dockerfile", "FROM " .. image.NAME .. "\nCOPY . /ctx\nRUN cat /ctx/sub/file && test ! -e /ctx/no\n"))
  assert(fs.mkdir(dir .. "/sub"))
  assert(fs.write(dir .. "/sub/file", "from the context\n"))
  assert(fs.write(dir .. "/no", "x"))
  assert(fs.write(dir .. "/.dockerignore", "no\n"))
  local out = sh(("%s build-image --network none --path %s -t agentbox-test-built"):format(program, dir))
  lu.assertEquals(out.exit_code, 0, out.stderr)
  lu.assertStrContains(out.stdout, "from the context")
  lu.assertStrMatches(out.stdout:match "([^\n]*)\n$", "agentbox%-test%-built %x+")
  local api = require "agentbox.backends.docker".api()
  assert(api:call("DELETE", "/images/agentbox-test-built", { query = { force = 1 } }))
  assert(fs.write(dir .. "/Dockerfile", "FROM " .. image.NAME .. "\nRUN exit 9\n"))
  out = sh(("%s build-image --network none --path %s -t agentbox-test-built"):format(program, dir))
  lu.assertEquals(out.exit_code, 3)
  lu.assertEquals(sh(("%s build-image --path %s/sub"):format(program, dir)).exit_code, 2)
end

function M.test_sandbox_run_and_its_exit_status()
  local out = sh(("%s sandbox run -b docker -i %s -- sh -c 'echo out; echo err >&2; exit 4'"):format(program, image.NAME))
  lu.assertEquals({ out.exit_code, out.stdout }, { 4, "out\n" })
  lu.assertStrContains(out.stderr, "err\n")
  out = sh(program .. " sandbox run -b docker -i no-such.invalid/image -- true")
  lu.assertEquals(out.exit_code, 3)
end

function M.test_conform_says_what_differs()
  local out = sh(("%s sandbox conform -b docker -i %s --only limit.kill"):format(program, image.NAME))
  lu.assertEquals(out.exit_code, 0, out.stderr)
  lu.assertStrContains(out.stdout, "conforms docker: 1 ok, 0 differ as documented, 0 not applicable, 0 failed")
end

return M
