--- Images: unpacking beside umoci and tar, which keep owners, modes and times too; and a sandbox on an image.
local ab = require "agentbox"
local child = require "agentbox.image.child"
local fs = require "agentbox.sys.fs"
local report = require "report"

local clock = ab.time.monotonic

-- An image of this machine's own files, in three gzip layers. Nil when umoci is missing.
local MAKE = [[
set -e
command -v umoci >/dev/null
cd "$1"
umoci init --layout oci
umoci new --image oci:base
umoci unpack --image oci:base bundle
for step in usr/lib/python3 usr/share/zoneinfo usr/share/perl; do
  mkdir -p "bundle/rootfs/$(dirname $step)"
  cp -a "/$step" "bundle/rootfs/$(dirname $step)/"
  umoci repack --image oci:bench --refresh-bundle bundle
done
rm -r bundle
]]

local function host(script, dir)
  local sb <close> = assert(ab.sandbox.create { backend = "none" })
  return assert(sb:exec({ "/bin/sh", "-c", script, "sh", dir }, { timeout_s = 600 }))
end

local function document(dir, digest)
  return ab.json.decode(assert(fs.read(dir .. "/oci/blobs/sha256/" .. digest:sub(8))))
end

-- The layers of the image, with what they must unpack to.
local function archives_of(dir)
  local index = ab.json.decode(assert(fs.read(dir .. "/oci/index.json")))
  local chosen
  for _, entry in ipairs(index.manifests) do
    if entry.annotations["org.opencontainers.image.ref.name"] == "bench" then chosen = entry end
  end
  local manifest = document(dir, chosen.digest)
  local config, list = document(dir, manifest.config.digest), {}
  for i, layer in ipairs(manifest.layers) do
    list[i] = { path = dir .. "/oci/blobs/sha256/" .. layer.digest:sub(8), diff_id = config.rootfs.diff_ids[i]:sub(8) }
  end
  return list
end

local function timed(dir, fn)
  local began = clock()
  fn()
  local us = (clock() - began) * 1e6
  host('rm -rf "$1"/out*', dir)
  return us
end

local function ours(dir, archives)
  return timed(dir, function()
    assert(fs.mkdir(dir .. "/out/root", true))
    assert(child.unpack(dir .. "/out/root", archives, { max_bytes = 1 << 34, max_entries = 1 << 20 }))
  end)
end

local function theirs(dir, script)
  return timed(dir, function() assert(host(script, dir).exit_code == 0) end)
end

local function tar_script(archives)
  local lines = { 'mkdir "$1/out"' }
  for _, archive in ipairs(archives) do lines[#lines + 1] = ("tar -xpzf %s -C \"$1/out\""):format(archive.path) end
  return table.concat(lines, " && ")
end

local function median_of(samples)
  return report.quantile(samples, 0.5)
end

local function unpacking(rounds, dir)
  local archives = archives_of(dir)
  local all = { ours = {}, umoci = {}, tar = {} }
  for round = 1, rounds do
    all.ours[round] = ours(dir, archives)
    all.umoci[round] = theirs(dir, 'umoci unpack --image "$1/oci:bench" "$1/out" >/dev/null 2>&1')
    all.tar[round] = theirs(dir, tar_script(archives))
  end
  report.at_most("unpack an image, digests verified", median_of(all.ours), "umoci unpack", median_of(all.umoci), 1.5)
  report.at_most("the same beside tar, which verifies nothing", median_of(all.ours), "tar", median_of(all.tar), 1.5)
end

---@param rounds integer
return function(rounds)
  local dir = assert(fs.tmpdir "agentbox-bench-image-")
  local made = host(MAKE, dir)
  if made.exit_code == 0 then unpacking(rounds, dir) else io.stderr:write "no umoci: unpacking is not measured\n" end
  host('rm -rf "$1"', dir)
end
