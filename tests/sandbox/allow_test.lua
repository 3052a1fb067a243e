--- A network with a list: what it lets through and what it must not, against servers on this machine's loopback.
local ab = require "agentbox"
local lu = require "luaunit"

local M = {}

-- Echoes; "slow" is answered with 40 MB that nobody reads, "cut" with half an answer and a reset.
local SERVER = [[
import socket, struct, threading
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(200); print(s.getsockname()[1], flush=True)
def serve(c):
    try:
        while True:
            d = c.recv(65536)
            if d == b"cut":
                c.sendall(b"half")
                c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                break
            if not d:
                c.sendall(b"<end>")
                break
            c.sendall(b"x" * (40 << 20) if d == b"slow" else d)
    except OSError: pass
    c.close()
while True:
    c, _ = s.accept()
    threading.Thread(target=serve, args=(c,), daemon=True).start()
]]

local outside, server, port

function M.setUp()
  outside = assert(ab.sandbox.create { backend = "none" })
  server = assert(outside:spawn { "python3", "-c", SERVER })
  port = assert(server:read { until_text = "\n", timeout_s = 20 }):match "%d+"
end

function M.tearDown()
  server:kill()
  server:wait(10)
  outside:close()
end

local function create(network)
  network.hosts = network.hosts or { ["echo.test"] = "127.0.0.1", ["other.test"] = "127.0.0.1" }
  network.allow = network.allow or { "echo.test:" .. port }
  return assert(ab.sandbox.create { network = network })
end

local HEAD = [[
import socket, sys, struct, threading
def tell(c, say):
    c.sendall(say)
    c.shutdown(socket.SHUT_WR)
def tcp(host, port, say=b"hi", more=True):
    try:
        c = socket.create_connection((host, port), 10)
        c.settimeout(10)
        if len(say) < 65536: tell(c, say)
        else: threading.Thread(target=tell, args=(c, say)).start() # an echo that nobody reads fills both directions
        got = b""
        while True:
            d = c.recv(65536)
            if not d: return got.decode("latin1")
            got += d
    except (ConnectionRefusedError, socket.gaierror) as e: return type(e).__name__
    except OSError: return "reset" # noticed while it wrote, ended or read
PORT = ]]

local function py(sb, code, timeout_s)
  local out = assert(sb:exec({ "python3", "-c", HEAD .. port .. "\n" .. code }, { timeout_s = timeout_s or 60 }))
  lu.assertEquals(out.exit_code, 0, out.stderr)
  return out.stdout
end

local function denials(sb)
  local list = {}
  for _, d in ipairs(sb:denied()) do
    list[#list + 1] = ("%s %s %s %s"):format(d.protocol, d.name or d.address, d.port or "-", d.why)
    lu.assertTrue(d.at <= d.last and d.count >= 1)
  end
  table.sort(list)
  return list
end

function M.test_what_is_allowed_is_reached_and_each_direction_ends_by_itself()
  local sb <close> = create {}
  lu.assertEquals(py(sb, "print(tcp('echo.test', PORT), tcp('ECHO.test.', PORT, b'x' * 3000000).count('x'))"), "hi<end> 3000000\n")
  lu.assertEquals(sb:traffic().connections, 2)
  lu.assertEquals(sb:denied(), {})
end

function M.test_everything_else_is_refused_at_once_and_told()
  local sb <close> = create {}
  py(sb, [[
for where in (("evil.test", 80), ("other.test", PORT), ("8.8.8.8", PORT), ("169.254.169.254", 80), ("10.0.0.1", 22), ("2606:4700::1", 443),
    ("::ffff:10.1.1.1", PORT), ("echo.test", 4)):
    assert tcp(*where) in ("ConnectionRefusedError", "reset", "gaierror"), where
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.connect(("9.9.9.9", 123)); u.send(b"x")
try: u.recv(9); sys.exit(1)
except ConnectionRefusedError: pass
for family, kind, proto in ((2, 3, 1), (2, 2, 1), (17, 3, 0), (10, 3, 58)):
    try: socket.socket(family, kind, proto); sys.exit(2)
    except OSError: pass
]])
  local list = denials(sb)
  local p = port .. " address"
  local want = { "dns evil.test - name", "dns other.test - name", "tcp 10.0.0.1 22 address", "tcp 10.1.1.1 " .. p, "tcp 169.254.169.254 80 address",
    "tcp 2606:4700::1 443 address", "tcp 8.8.8.8 " .. p, "tcp echo.test 4 port", "udp 9.9.9.9 123 address" }
  lu.assertEquals(list, want)
  sb:close()
  lu.assertEquals(denials(sb), want, "gone with the sandbox")
end

-- The address that a name has inside was given to it here: whatever the sandbox does, it leads where that name led.
function M.test_an_address_of_ours_stands_for_its_name_only()
  local sb <close> = create { allow = { "echo.test:" .. port, "other.test:1" } }
  lu.assertEquals(py(sb, [[
a = socket.gethostbyname("echo.test"); b = socket.gethostbyname("other.test")
print(tcp(a, PORT), tcp(b, PORT), tcp("198.18.0.77", PORT), tcp("127.0.0.1", PORT))]]),
    "hi<end> reset reset reset\n")
end

-- Rebinding: a name of the public internet that leads to this machine or its neighbours leads nowhere.
function M.test_a_name_does_not_stand_for_an_inner_address()
  local sb <close> = create { allow = { "localhost:" .. port, "*:" .. port }, hosts = {} }
  lu.assertEquals(py(sb, [[
import random
def ask(name):
    u = socket.socket(2, 2); u.settimeout(10); u.connect(("1.1.1.1", 53))
    u.send(struct.pack(">6H", 7, 256, 1, 0, 0, 0) + b"".join(bytes([len(l)]) + l for l in name.split(b".")) + b"\0\0\1\0\1")
    d = u.recv(512)
    return d[3] & 15, d[7]
print(ask(b"localhost"), ask(b"127.1"), ask(b"2130706433"), ask(b"0x7f.1"))]]), "(3, 0) (3, 0) (3, 0) (3, 0)\n")
  for _, line in ipairs(denials(sb)) do lu.assertStrContains(line, "private_address") end
  lu.assertEquals(#sb:denied(), 4)
end

function M.test_questions_with_odd_bytes_are_answered_or_dropped()
  local sb <close> = create { allow = { "*.test:80" } }
  py(sb, [[
import os
u = socket.socket(2, 2); u.settimeout(10); u.connect(("198.18.0.1", 53))
head = struct.pack(">6H", 7, 256, 1, 0, 0, 0)
for junk in (b"", b"x", head, head + b"\xc0\x0c\0\1\0\1", head + b"\x3f" * 60, head + b"\1" * 300, os.urandom(400), head[:5] + b"\xff" * 300):
    u.send(junk)
for label in (b"a\0b", b"a.b", b"\xff\xfe", b"a b", b"\n", b"a/../b"):
    u.send(head + bytes([len(label)]) + label + b"\4test\0\0\1\0\1")
    assert u.recv(512)[3] & 15 == 3]])
  for _, d in ipairs(sb:denied()) do lu.assertNotStrContains(d.name, "\n") end
  lu.assertEquals(sb:denied()[1].name, "a\\000b.test")
end

-- A server of the same address under another name: TLS says in the clear which one it wants.
function M.test_tls_may_ask_for_allowed_servers_only()
  local sb <close> = create { allow = { "echo.test:" .. port, "*.good.test:" .. port } }
  lu.assertEquals(py(sb, [[
def part(n, b): return len(b).to_bytes(n, "big") + b
def hello(name, records=1, ext=True):
    sni = b"\0\0" + part(2, part(2, b"\0" + part(2, name)))
    body = b"\3\3" + b"r" * 32 + b"\0" + part(2, b"\x13\1") + b"\1\0" + (part(2, sni) if ext else b"")
    m = b"\1" + part(3, body)
    step = -(-len(m) // records)
    return b"".join(b"\x16\3\1" + part(2, m[i:i + step]) for i in range(0, len(m), step))
def ok(b): return tcp("echo.test", PORT, b) == (b + b"<end>").decode("latin1")
print(ok(hello(b"echo.test")), ok(hello(b"A.good.test", 20)), ok(hello(b"", 1, False)), ok(hello(b"evil.test")), ok(hello(b"evil.test", 50)),
  ok(b"\x16\3\1\0\0\1"), ok(b"\x16GET / HTTP/1.0"), ok(b"CONNECT evil.test:443 HTTP/1.1\r\n\r\n"))]]),
    "True True True False False False False True\n")
  lu.assertEquals(sb:denied()[1].name, "evil.test")
  lu.assertEquals(sb:denied()[1].why, "server_name")
end

function M.test_a_server_that_cuts_is_a_reset_inside()
  local sb <close> = create {}
  lu.assertEquals(py(sb, "print(tcp('echo.test', PORT, b'cut'))"), "reset\n")
  lu.assertEquals(py(sb, "print(tcp('echo.test', PORT))"), "hi<end>\n")
  lu.assertEquals(sb:traffic().open, 0)
end

-- Nobody reads, so the server is stopped: what lies between is bounded, and others go on.
function M.test_a_slow_reader_holds_up_itself_alone()
  local sb <close> = create {}
  lu.assertEquals(py(sb, [[
slow = socket.create_connection(("echo.test", PORT)); slow.sendall(b"slow")
print(*[tcp("echo.test", PORT) for _ in range(5)])
n = 0
slow.settimeout(20)
while n < 40 << 20: n += len(slow.recv(1 << 20))
print(n)]]), ("hi<end> "):rep(5):sub(1, -2) .. "\n41943040\n")
end

function M.test_floods_are_bounded()
  local sb <close> = create { max_connections = 4 }
  lu.assertEquals(py(sb, [[
all = []
for i in range(60):
    c = socket.socket(); c.settimeout(10); all.append(c)
    try: c.connect(("198.18.0.2" if i else "echo.test", PORT))
    except OSError: pass # refused before it was through
def alive(c):
    try:
        c.sendall(b"x")
        return c.recv(1) == b"x"
    except OSError: return False
print(sum(map(alive, all)))
for i in range(400): tcp("10.0.%d.%d" % (i >> 8, i & 255), 5)]], 120), "4\n")
  lu.assertTrue(#sb:denied() > 1 and #sb:denied() <= 256)
  lu.assertTrue(sb:traffic().denied >= #sb:denied()) -- of a flood not every packet is looked at
  lu.assertEquals(sb:denied()[1].why, "limit")
end

function M.test_bytes_are_bounded()
  local sb <close> = create { max_mb = 1 }
  lu.assertEquals(py(sb, "print(tcp('echo.test', PORT, b'x' * (3 << 20)), tcp('echo.test', PORT))"), "reset reset\n")
  lu.assertTrue(sb:traffic().bytes <= 1 << 20)
end

function M.test_what_is_open_ends_with_the_sandbox()
  local sb = create {}
  local p = assert(sb:spawn { "python3", "-c", HEAD .. port .. [[

c = socket.create_connection(("echo.test", PORT)); c.sendall(b"hi"); print(c.recv(9), flush=True); c.recv(9)]] })
  lu.assertStrContains(assert(p:read { until_text = "\n", timeout_s = 20 }), "hi")
  lu.assertEquals(sb:traffic().open, 1)
  sb:close()
  lu.assertEquals(sb:traffic().open, 0)
  local again <close> = create {}
  lu.assertEquals(py(again, "print(tcp('echo.test', PORT))"), "hi<end>\n")
end

function M.test_a_network_with_a_list_is_not_used_again()
  for _ = 1, 8 do
    create {}:close()
    local sb <close> = assert(ab.sandbox.create {})
    local out = assert(sb:exec { "python3", "-c", "import socket\ntry: socket.create_connection(('8.8.8.8', " .. port .. "), 5)\nexcept OSError as e: print(e.errno)" })
    lu.assertEquals(out.stdout, "101\n")
  end
end

function M.test_a_list_that_makes_no_sense_is_refused()
  for _, rule in ipairs { "x", "x:0", "x:99999", "x:53", "a b:1", "::1:80", "[::1:80", "127.0.0.1:80", "[::1]:80", "10.0.0.0/33:1", "*.*:1", "x\0y:1" } do
    lu.assertFalse(pcall(ab.sandbox.create, { network = { allow = { rule } } }), rule)
  end
  local ok, problem = pcall(ab.sandbox.create, { network = { alow = {} } })
  lu.assertFalse(ok)
  lu.assertStrContains(tostring(problem), "allow")
  for _, backend in ipairs { "none", "docker" } do
    local sb, e = ab.sandbox.create { backend = backend, network = { allow = {} } }
    lu.assertNil(sb)
    lu.assertEquals(e.code, "unsupported")
  end
end

return M
