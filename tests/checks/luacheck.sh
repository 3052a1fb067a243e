#!/bin/sh
# luacheck over every Lua file of ours.
command -v luacheck >/dev/null || { echo "SKIP luacheck is not installed (package lua-check)"; exit 77; }
exec luacheck -q --no-color lua tests examples tools bench
