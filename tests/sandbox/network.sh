#!/bin/sh
# network = "full" against a small internet of our own: a network namespace that stands for the host, and another
# behind it with a server. What must be reached is; the loopback of the host is not. Usage: network.sh AGENTBOX
# Exit status 77 when this machine cannot: not root, no pasta, no ip, no tun, no veth.
if [ "$1" != inside ]; then
    [ "$(id -u)" = 0 ] && command -v pasta >/dev/null && command -v ip >/dev/null && [ -c /dev/net/tun ] || exit 77
    exec unshare -n "$0" inside "$1"
fi
agentbox=$2
dir=$(mktemp -d)
trap 'kill $far $near $hold 2>/dev/null; rm -rf "$dir"' EXIT
unshare -n sleep 60 & hold=$!
until [ "$(readlink /proc/$hold/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do :; done
ip link set lo up
ip link add d0 type veth peer name d1 2>/dev/null || exit 77
ip link set d1 netns $hold && ip addr add 10.77.0.2/24 dev d0 && ip link set d0 up || exit 1
far_ip() { nsenter -t $hold -n ip "$@"; }
far_ip link set d1 up && far_ip addr add 10.77.0.1/24 dev d1 && ip route add default via 10.77.0.1 || exit 1
echo FAR > "$dir/page"
serve() { exec python3 -m http.server "$2" --bind "$1" -d "$dir" >/dev/null 2>&1; }
nsenter -t $hold -n python3 -m http.server 8123 --bind 10.77.0.1 -d "$dir" >/dev/null 2>&1 & far=$!
serve 127.0.0.1 8124 & near=$!
until curl -s http://10.77.0.1:8123/page >/dev/null && curl -s http://127.0.0.1:8124/page >/dev/null; do :; done
cat > "$dir/test.lua" <<'LUA'
local ab = require "agentbox"
local sb <close> = assert(ab.sandbox.create { network = "full" })
local function get(url)
  return assert(sb:exec { "curl", "-s", "-m", "5", url }).stdout
end
assert(get "http://10.77.0.1:8123/page" == "FAR\n", "the world is not reached")
for _, url in ipairs { "http://127.0.0.1:8124/page", "http://10.77.0.1:8124/page", "http://10.77.0.2:8124/page" } do
  assert(get(url) == "", "the host's loopback is reached at " .. url)
end
assert(assert(sb:exec "ip link set lo down").exit_code ~= 0, "interfaces can be changed")
LUA
"$agentbox" script "$dir/test.lua"
