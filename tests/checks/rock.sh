#!/bin/sh
# The rock: linted, made into a scratch tree, and used from stock Lua.
set -eu
command -v luarocks >/dev/null || { echo "SKIP luarocks is not installed"; exit 77; }
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
luarocks --lua-version 5.4 lint agentbox-scm-1.rockspec
# luarocks builds where the rockspec lies; a copy keeps the tree clean.
mkdir "$root/src"
tar -c --exclude=./build --exclude=./.git --exclude=./runs . | tar -x -C "$root/src"
(cd "$root/src" && HOME=$root luarocks --lua-version 5.4 make --tree "$root/tree" agentbox-scm-1.rockspec) >"$root/log" 2>&1 ||
    { tail -n 40 "$root/log"; exit 1; }
cat >"$root/use.lua" <<'LUA'
local ab = require "agentbox"
ab.run(function()
  local began = ab.time.monotonic()
  ab.async.sleep(0.001)
  assert(ab.time.monotonic() > began)
  assert(ab.json.encode(assert(ab.json.decode '{"b":[],"a":{}}')) == '{"b":[],"a":{}}')
  print "used from stock Lua"
end)
LUA
LUA_PATH="$root/tree/share/lua/5.4/?.lua;$root/tree/share/lua/5.4/?/init.lua;;" \
    LUA_CPATH="$root/tree/lib/lua/5.4/?.so;;" lua5.4 "$root/use.lua"
