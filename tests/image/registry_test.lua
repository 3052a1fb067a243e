--- Registries: those that work, those that lie, those that fail in the middle.
local ab = require "agentbox"
local async = require "agentbox.async"
local fs = require "agentbox.sys.fs"
local lab = dofile((debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or ".") .. "/lab.lua")
local lu = require "luaunit"
local os_ = require "agentbox.sys.os"
local registry = require "agentbox.image.registry"
local store = require "agentbox.image.store"

local M = {}

local count = 0
local home

function M.setUp()
  count = count + 1
  home = lab.dir .. "/registry-home" .. count
  store._home = home
end

function M.tearDown()
  lu.assertEquals(lab.names(home, "tmp"), {})
  lab.forget()
  store._home = nil
end

local function pulls(mode, name)
  name = name or "r" .. count .. "/" .. mode:gsub("%W", "")
  return lab.registry().add(name, "saved.tar", mode), name
end

local function good(mode)
  local text, name = pulls(mode)
  local image = assert(ab.image.pull(text))
  lu.assertEquals(image.name, text)
  lu.assertEquals(fs.read(image.root .. "/opq/new"), "new")
  lu.assertNil(fs.lstat(image.root .. "/gone"))
  lu.assertEquals(lab.names(home, "partial"), {})
  return image, lab.registry().log(name)
end

local function bad(mode, code, text)
  local image, problem = ab.image.pull((pulls(mode)))
  lu.assertNil(image, mode)
  lu.assertEquals(problem.code, code, problem.msg)
  lu.assertStrContains(problem.msg, text)
  lu.assertEquals(ab.image.list(), {})
  lu.assertEquals(lab.names(home, "trees"), {})
  return problem
end

local function ranges(log)
  local list = {}
  for _, entry in ipairs(log) do
    if entry.range ~= "" then list[#list + 1] = entry.range end
  end
  return list
end

function M.test_an_image_and_the_same_again()
  local image, log = good "ok"
  lu.assertEquals(#log, 4) -- manifest, config, two layers
  assert(ab.image.pull(image.name))
  lu.assertEquals(#lab.registry().log(image.name:match "/(.*):1$"), 5) -- only the manifest again
end

function M.test_by_digest()
  local image = good "ok"
  local again = assert(ab.image.pull(image.name:gsub(":1$", "") .. "@" .. image.digest))
  lu.assertEquals(again.id, image.id)
  lu.assertEquals(assert(ab.image.get(image.id:sub(1, 20))).id, image.id)
end

function M.test_compressed_layers_and_an_index()
  good "gzip"
  good "index"
end

function M.test_an_index_without_this_machine()
  local problem = bad("otherarch", "notfound", "not made for linux/")
  lu.assertStrContains(problem.msg, "linux/s390x")
end

function M.test_what_was_cut_off_goes_on()
  local _, log = good "cut:5000"
  lu.assertEquals(#log, 6) -- each layer twice
end

function M.test_a_registry_that_knows_no_ranges_or_mixes_them_up()
  good "norange"
  good "shift"
end

function M.test_a_busy_registry_is_asked_again()
  local _, log = good "busy"
  lu.assertTrue(#log > 4)
end

function M.test_bytes_that_are_not_what_was_promised()
  bad("flip", "protocol", "has the digest")
  lu.assertEquals(#lab.names(home, "blobs/sha256"), 1) -- the configuration
  bad("flipmanifest", "protocol", "has the digest")
end

function M.test_endless_answers()
  bad("long", "protocol", "longer than")
  bad("huge", "toobig", "4 MiB")
end

function M.test_layers_from_elsewhere()
  bad("foreign", "protocol", "foreign layer")
end

function M.test_what_is_not_there()
  local _, problem = ab.image.pull(lab.registry().host .. "/nobody/nothing:1")
  lu.assertEquals(problem.code, "notfound")
  _, problem = ab.image.pull "127.0.0.1:1/x:1"
  lu.assertEquals(problem.code, "network")
end

function M.test_names_that_are_none()
  for _, text in ipairs { "", "UPPER", "a b", "x:", "x@sha256:12", "../x", "x/../y", "http://x/y", "-x" } do
    local image, problem = ab.image.pull(text)
    lu.assertNil(image, text)
    lu.assertEquals(problem.code, "badarg", text)
  end
end

function M.test_b47_a_token_for_a_password_of_that_registry_only()
  local text, name = pulls "auth"
  local config = lab.dir .. "/docker" .. count
  assert(fs.mkdir(config))
  -- dXNlcjpzZWNyZXQtd29yZA== is user:secret-word
  local function try(host)
    assert(fs.write(config .. "/config.json", ('{"auths":{"%s":{"auth":"dXNlcjpzZWNyZXQtd29yZA=="}}}'):format(host)))
    return lab.sh(("DOCKER_CONFIG=%s %s image pull %s || true"):format(config, lab.agentbox(home), text))
  end
  lu.assertStrContains(try "other.example", "gave no token")
  for _, entry in ipairs(lab.registry().log(name)) do lu.assertEquals(entry.auth, "") end
  lu.assertStrContains(try(lab.registry().host), text)
  local said = lab.sh(("AGENTBOX_REGISTRY_AUTH='%s=user:secret-word' %s image pull %s"):format(lab.registry().host,
    lab.agentbox(home), text))
  lu.assertStrContains(said, text)
end

function M.test_a_token_does_not_follow_a_redirect_to_another_host()
  local text, name = pulls "redirect"
  lab.sh(("AGENTBOX_REGISTRY_AUTH='%s=user:secret-word' %s image pull %s"):format(lab.registry().host,
    lab.agentbox(home), text))
  local elsewhere = 0
  for _, entry in ipairs(lab.registry().log(name)) do
    if entry.path:find "^/elsewhere/" then
      elsewhere = elsewhere + 1
      lu.assertEquals(entry.auth, "")
    end
  end
  lu.assertEquals(elsewhere, 3) -- the configuration and two layers
end

function M.test_challenges()
  local challenge = registry._challenge 'Bearer realm="https://a/t",service="s",scope="repository:x:pull,push"'
  lu.assertEquals(challenge, { scheme = "bearer", realm = "https://a/t", service = "s", scope = "repository:x:pull,push" })
  lu.assertEquals(registry._challenge("").scheme, "")
end

function M.test_two_processes_pull_the_same_image()
  local text, name = pulls "ok"
  local one = ("%s image pull %s"):format(lab.agentbox(home), text)
  lab.sh(("%s & %s; a=$?; wait $! && exit $a"):format(one, one))
  lu.assertEquals(#ab.image.list(), 1)
  lu.assertEquals(#lab.names(home, "trees"), 1)
  lu.assertEquals(#lab.registry().log(name), 5) -- two manifests; the rest once
end

function M.test_fibers_pull_different_images_at_once()
  local names = {}
  for i = 1, 4 do names[i] = lab.registry().add(("r%d/many%d"):format(count, i), "saved.tar", "gzip") end
  async.each(names, function(text) return (assert(ab.image.pull(text))) end)
  lu.assertEquals(#ab.image.list(), 4)
  lu.assertEquals(#lab.names(home, "trees"), 1)
end

-- Starts agentbox as a process of its own; gives its pid as well.
local function start(command)
  local process, plain = lab.spawn { "/bin/sh", "-c", "echo $$; exec " .. command }
  return process, plain, assert(process:read()):match "%d+"
end

local function partial_bytes()
  local bytes = 0
  for _, name in ipairs(lab.names(home, "partial")) do
    local stat = fs.stat(home .. "/images/partial/" .. name)
    bytes = bytes + (stat and stat.size or 0)
  end
  return bytes
end

function M.test_killed_in_a_download()
  local text, name = pulls "stall:3000"
  local process, plain, pid = start(("%s image pull %s"):format(lab.agentbox(home), text))
  lab.wait_for(function() return partial_bytes() == 6000 end)
  lab.sh("kill -9 " .. pid)
  process:wait(30)
  plain:close()
  assert(ab.image.pull(text))
  lu.assertEquals(ranges(lab.registry().log(name)), { "bytes=3000-", "bytes=3000-" })
end

function M.test_killed_while_unpacking()
  local children = ("pgrep -f -- '--archive-child unpack [/]%s' || true"):format(home:sub(2))
  for _, signal in ipairs { "9", "INT" } do
    local process, plain, pid = start(("%s image import --name many %s"):format(lab.agentbox(home), lab.archive "many.tar"))
    lab.wait_for(function() return lab.names(home, "tmp")[1] and lab.sh(children) ~= "" end)
    lab.sh(("kill -%s %s"):format(signal, pid))
    process:wait(30)
    plain:close()
    lab.wait_for(function() return lab.sh(children) == "" end)
    lu.assertEquals(ab.image.list(), {})
    lu.assertEquals(lab.names(home, "trees"), {})
  end
  local image = assert(ab.image.import(lab.archive "many.tar", { name = "many" }))[1] -- sweeps
  lu.assertEquals(#fs.list(image.root), 20000)
  lu.assertEquals(lab.names(home, "tmp"), {})
end

function M.test_a_damaged_store_is_found_and_mended()
  local image = good "ok"
  local path = home .. "/images/blobs/sha256/" .. image.layers[1].digest:sub(8)
  local bytes = assert(fs.read(path))
  assert(fs.write(path, bytes:sub(1, -2) .. "X"))
  lu.assertEquals(ab.image.gc { check = true }.damaged, 1)
  assert(ab.image.pull(image.name))
  lu.assertEquals(fs.read(path), bytes)
  lu.assertEquals(os_.uid(), fs.stat(path).uid)
end

return M
