"""A server of the Model Context Protocol that does what a test asks for: mcp_server.py KIND [--http WATCHED_PID].

KIND says how it misbehaves; its tools are `echo` (text), `count` (calls so far, kept by the process), `die`, `hang`, `late`
(an answer after the client has cancelled) and `shapes` (every kind of content). With --http it prints its port and
ends with the process WATCHED_PID.
"""
import json
import os
import select
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

kind = sys.argv[1]
calls = 0
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NONE = {"type": "object", "properties": {}}
SHAPES = [
    {"type": "text", "text": "words"}, {"type": "image", "mimeType": "image/png", "data": "AAAA"},
    {"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}},
    {"type": "resource_link", "uri": "file:///b", "name": "b"}, {"type": "hologram"}, "not an object",
]


def tools():
    if kind == "two":
        return [{"name": "a.b", "inputSchema": NONE}, {"name": "a/b", "inputSchema": NONE}]
    if kind == "schemaless":
        return [{"name": "bare"}]
    if kind == "many":
        return [{"name": f"t{i}", "inputSchema": NONE} for i in range(1000)]
    return [{"name": "echo", "description": "Says it back.", "inputSchema": TEXT}] + [
        {"name": name, "inputSchema": NONE} for name in ("count", "die", "hang", "late", "shapes", "fail")]


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def call(name, arguments):
    global calls
    calls += 1
    if name == "echo":
        return text(arguments["text"])
    if name == "count":
        return text(str(calls))
    if name == "shapes":
        return {"content": SHAPES}
    if name == "fail":
        return {"content": [{"type": "text", "text": "no such thing"}], "isError": True}
    raise KeyError(name)


def answer(message):
    """The reply to a request, or None."""
    method, ident = message.get("method"), message.get("id")
    if ident is None:
        return None
    reply = {"jsonrpc": "2.0", "id": ident}
    if method == "initialize":
        info = {"name": "test", "version": "1"}
        reply["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        reply["result"] = {"tools": tools()[:1], "nextCursor": "again"} if kind == "endless" else {"tools": tools()}
    else:
        try:
            reply["result"] = call(message["params"]["name"], message["params"].get("arguments", {}))
        except KeyError as problem:
            reply["error"] = {"code": -32602, "message": f"unknown tool {problem}"}
    return reply


# ---------------------------------------------------------------- stdin and stdout

def say(value):
    sys.stdout.write((value if isinstance(value, str) else json.dumps(value)) + "\n")
    sys.stdout.flush()


def wait_for_cancel():
    while '"notifications/cancelled"' not in sys.stdin.readline():
        pass


def misbehave(message):
    """Whether it is answered otherwise than well."""
    name = message.get("params", {}).get("name")
    if message.get("method") == "tools/list" and kind == "chatty":
        sys.stderr.write("x" * (1 << 20))
        say("starting up ...")
        say({"jsonrpc": "2.0", "id": 77, "method": "ping"})
        say({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
        say({"jsonrpc": "2.0", "id": 999, "result": {"tools": []}})
        pong = json.loads(sys.stdin.readline())
        assert pong == {"jsonrpc": "2.0", "id": 77, "result": {}}, pong
    if name == "die":
        sys.stderr.write("out of luck\n")
        os._exit(3)
    if name == "hang":
        wait_for_cancel()
        return True
    if name == "late":
        wait_for_cancel()
        say({"jsonrpc": "2.0", "id": message["id"], "result": text("too late")})
        return True
    if kind == "flood" and message.get("method") == "tools/call":
        while True:
            say({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "y" * 65536}})
    if kind == "long" and message.get("method") == "tools/call":
        sys.stdout.write("z" * (9 << 20))
        sys.stdout.flush()
        return True
    return False


def on_stdio():
    if kind == "stillborn":
        sys.exit("cannot find my module")
    if kind == "silent":
        select.select([], [], [])
    for line in sys.stdin:
        message = json.loads(line)
        if not misbehave(message):
            reply = answer(message)
            if reply:
                say(reply)


# ---------------------------------------------------------------- HTTP

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    sessions, made = set(), 0

    def reply(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_DELETE(self):
        self.sessions.discard(self.headers.get("Mcp-Session-Id"))
        self.reply(204)

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = []
        if message.get("method") == "initialize":
            Handler.made += 1
            self.sessions.add(f"s{Handler.made}")
            headers = [("Mcp-Session-Id", f"s{Handler.made}")]
        elif self.headers.get("Mcp-Session-Id") not in self.sessions or not self.headers.get("MCP-Protocol-Version"):
            return self.reply(404)
        if message.get("method") == "tools/call" and kind == "broken":
            return self.reply(500, b"<h1>oops</h1>")
        reply = answer(message)
        if not reply:
            return self.reply(202)
        if message["params"].get("name") == "count" and kind == "forgetful":
            self.sessions.clear()
        if kind == "events":
            ping = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}
            body = "".join(f"event: message\ndata: {json.dumps(one)}\n\n" for one in (ping, reply)).encode()
            return self.reply(200, body, headers + [("Content-Type", "text/event-stream")])
        if kind == "cut" and message.get("method") == "tools/call":
            return self.reply(200, b": nothing follows\n\n", headers + [("Content-Type", "text/event-stream")])
        self.reply(200, json.dumps(reply).encode(), headers + [("Content-Type", "application/json")])

    def log_message(self, *_args):
        pass


def on_http(watched):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    select.select([os.pidfd_open(watched)], [], [])


if sys.argv[2:3] == ["--http"]:
    on_http(int(sys.argv[3]))
else:
    on_stdio()
