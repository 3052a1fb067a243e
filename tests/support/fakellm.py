#!/usr/bin/env python3
"""A scripted server that speaks the chat completions dialect, well or badly. Standard library only.

    python3 fakellm.py [--script FILE|JSON] [--port 0] [--strict] [--log FILE] [--watch-pid PID] ...

Prints its port on the first line of stdout, then serves until killed or until `POST /_quit`.

Options
    --host ADDR        default 127.0.0.1          --port N     default 0: any free one
    --unix PATH        listen on a Unix socket instead (prints the path)
    --tls CERT KEY     PEM files                  --log FILE   one JSON line for each request
    --script X         a script: JSON text, or a file that holds it
    --strict           refuse what picky servers refuse: nulls, unknown keys, tool_choice without
                       tools, unanswered tool calls, empty "properties", arguments that are not JSON
    --max-field N      refuse any text in a message longer than N bytes (as 400)
    --delay S          wait before every answer (a step's own delay_s wins)
    --token WORD       answer 401 unless "Authorization: Bearer WORD"
    --watch-pid PID    end when that process ends

Addresses
    POST /v1/chat/completions              the script of the command line
    POST /s/NAME/v1/chat/completions       the script called NAME
    PUT  /_script/NAME                     body {"steps": [...], "strict": bool, "then": step, ...}
    GET  /_log/NAME   (or /_log)           the requests so far, as a JSON list (NAME "" is the default)
    GET  /_stats                           requests, inflight, max_inflight, connections, max_connections
    GET  /v1/models, /s/NAME/v1/models     one model
    GET  /_redirect/N                      N redirects, then "arrived"
    ANY  /_echo                            method, headers and body of the request, as JSON
    GET  /_bytes/N                         N bytes;  ?chunk=N&delay_s=S sends them slowly
    GET  /_gzip                            "compressed", sent as gzip although nobody asked
    GET  /_deaf                            {"port": N} of a listener that answers no connection attempt
    POST /_quit                            end

A script is a list of steps, or {"steps": [...], "then": step, "strict": bool, "max_field": n, "delay_s": s}.
Each session (header X-Session-Id; none is a session too) walks the steps on its own. After the last one
comes "then", or the last step again. With "shared": true all sessions share one position.

A step is a text (the answer's content) or an object:
  answer     content, tool_calls [{name, arguments (object or text), id, index}], reasoning_content, reasoning,
             finish_reason, usage (object; null: none), model, message {merged}, extra {merged on top},
             logprobs N (entries), token_ids N, cookie true
  streaming  follows the request's "stream". chunk_chars N (default 4), chunk_delay_s S, usage "never"|"always",
             cut_after N (break the connection after N events), stall_after N + stall_s S, no_done true
  transport  delay_s S (before the head), first_byte_delay_s S (after the head), hang true (never answer),
             refuse true (close without an answer), reset true (TCP reset), status N, headers {}, body TEXT,
             html true, half_json true, truncate N (send N bytes less than Content-Length says),
             retry_after 2 | "date:2", error TEXT (as {"error":{"message":TEXT}}), code TEXT
  repeat N   the step counts N times
  echo true  the content is the last user message
"""
import argparse
import asyncio
import email.utils
import gzip
import json
import os
import socket
import ssl
import struct
import time
import urllib.parse

USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}

BODY_KEYS = set("""model messages temperature top_p max_tokens max_completion_tokens n stop seed stream stream_options
    tools tool_choice parallel_tool_calls presence_penalty frequency_penalty logit_bias logprobs top_logprobs
    response_format user return_token_ids return_tokens_as_token_ids extra top_k min_p repetition_penalty
    chat_template_kwargs reasoning_effort metadata priority""".split())
MESSAGE_KEYS = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "tool_calls", "reasoning_content", "reasoning", "thinking_blocks",
                  "refusal"},
    "tool": {"role", "content", "tool_call_id", "name"},
}


def first_null(value, path):
    if value is None:
        return path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found = first_null(item, f"{path}.{key}")
        if found:
            return found
    return None


def check_message(message, where):
    role = message.get("role")
    if role not in MESSAGE_KEYS:
        return f"{where}: role {role!r}"
    extra = set(message) - MESSAGE_KEYS[role]
    if extra:
        return f"{where}: unknown keys {sorted(extra)}"
    if role == "assistant" and "content" not in message and "tool_calls" not in message:
        return f"{where}: neither content nor tool_calls"
    if role != "assistant" and not isinstance(message.get("content"), (str, list)):
        return f"{where}: no content"
    if "tool_calls" in message and not message["tool_calls"]:
        return f"{where}: empty tool_calls"
    for call in message.get("tool_calls", []):
        if set(call) != {"id", "type", "function"} or set(call["function"]) != {"name", "arguments"}:
            return f"{where}: tool call of a wrong shape"
        if not call["id"] or not isinstance(call["function"]["arguments"], str):
            return f"{where}: tool call without id, or arguments that are not text"
        try:
            if not isinstance(json.loads(call["function"]["arguments"]), dict):
                return f"{where}: arguments are not an object"
        except ValueError as e:
            return f"{where}: arguments are not JSON: {e}"
    return None


def check_order(messages):
    """Every tool call is answered once, right after its turn."""
    open_ids = []
    for i, message in enumerate(messages):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in open_ids:
                return f"messages.{i}: answers no open tool call"
            open_ids.remove(message["tool_call_id"])
            continue
        if open_ids:
            return f"messages.{i}: tool calls {open_ids} are not answered"
        open_ids = [c["id"] for c in message.get("tool_calls", [])]
        if len(set(open_ids)) != len(open_ids):
            return f"messages.{i}: two tool calls with one id"
    return None


def check_strict(body):
    null = first_null(body, "body")
    if null:
        return f"null at {null}"
    extra = set(body) - BODY_KEYS
    if extra:
        return f"unknown keys {sorted(extra)}"
    if not body.get("messages"):
        return "no messages"
    if "tool_choice" in body and not body.get("tools"):
        return "tool_choice without tools"
    if "tools" in body and not body["tools"]:
        return "empty tools"
    for tool in body.get("tools", []):
        parameters = tool["function"].get("parameters")
        if parameters is not None and not parameters.get("properties"):
            return f"tool {tool['function']['name']}: empty properties"
    if "stream_options" in body and not body.get("stream"):
        return "stream_options without stream"
    for i, message in enumerate(body["messages"]):
        bad = check_message(message, f"messages.{i}")
        if bad:
            return bad
    return check_order(body["messages"])


def longest_text(value):
    if isinstance(value, str):
        return len(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, dict):
        value = list(value.values())
    return max((longest_text(v) for v in value), default=0) if isinstance(value, list) else 0


class Script:
    def __init__(self, spec):
        if isinstance(spec, list):
            spec = {"steps": spec}
        self.spec = spec
        self.steps = []
        for step in spec.get("steps", []):
            step = {"content": step} if isinstance(step, str) else step
            self.steps += [step] * int(step.get("repeat", 1))
        self.then = spec.get("then")
        if isinstance(self.then, str):
            self.then = {"content": self.then}
        self.at = {}
        self.log = []

    def next(self, session):
        key = "" if self.spec.get("shared") else session
        n = self.at.get(key, 0)
        self.at[key] = n + 1
        if n < len(self.steps):
            return self.steps[n]
        return self.then or (self.steps[-1] if self.steps else {"content": "ok"})


class Cut(Exception):
    """The connection ends here, by order of the script."""


class Server:
    def __init__(self, options):
        self.options = options
        self.scripts = {"": Script(options.script)}
        self.requests = self.inflight = self.max_inflight = self.connections = self.max_connections = 0
        self.log = open(options.log, "a") if options.log else None
        self.quit = asyncio.Event()
        self.aborted = []

    # ---- HTTP/1.1, the little that is needed

    async def read_request(self, reader):
        line = await reader.readline()
        if not line.strip():
            return None
        method, target, _ = line.decode("latin-1").split(" ", 2)
        headers = {}
        while True:
            line = (await reader.readline()).decode("latin-1").rstrip("\r\n")
            if not line:
                break
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        body = b""
        if "content-length" in headers:
            body = await reader.readexactly(int(headers["content-length"]))
        elif headers.get("transfer-encoding") == "chunked":
            while True:
                size = int(await reader.readline(), 16)
                body += (await reader.readexactly(size + 2))[:-2]
                if not size:
                    break
        return method, target, headers, body

    async def handle(self, reader, writer):
        self.connections += 1
        self.max_connections = max(self.max_connections, self.connections)
        current, feed_eof = asyncio.current_task(), reader.feed_eof

        def client_left():
            feed_eof()
            current.cancel()  # a hanging answer ends with the one who waited for it

        reader.feed_eof = client_left
        try:
            while True:
                request = await self.read_request(reader)
                if not request:
                    break
                await self.answer(writer, *request)
                if request[2].get("connection", "").lower() == "close":
                    break
        except (Cut, ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, ValueError):
            pass
        finally:
            self.connections -= 1
            writer.close()

    async def send(self, writer, status, body, headers=None, kind="application/json", declare=None):
        if not isinstance(body, bytes):
            body = (body if isinstance(body, str) else json.dumps(body)).encode()
        head = [f"HTTP/1.1 {status} X", f"Content-Type: {kind}", f"Content-Length: {declare or len(body)}"]
        head += [f"{k}: {v}" for k, v in (headers or {}).items()]
        writer.write("\r\n".join(head).encode() + b"\r\n\r\n" + body)
        await writer.drain()
        if declare and declare != len(body):
            raise Cut

    async def answer(self, writer, method, target, headers, body):
        url = urllib.parse.urlsplit(target)
        path, query = url.path, dict(urllib.parse.parse_qsl(url.query))
        if path.endswith("/chat/completions"):
            name = path.split("/")[2] if path.startswith("/s/") else ""
            await self.complete(writer, name, target, headers, body)
        elif path == "/abort_requests":
            self.aborted += json.loads(body)["request_ids"]
            await self.send(writer, 200, {})
        elif path.startswith("/_"):
            await self.control(writer, method, path, query, headers, body)
        elif path.endswith("/models"):
            await self.send(writer, 200, {"object": "list", "data": [{"id": "fake", "object": "model"}]})
        else:
            await self.send(writer, 404, {"error": {"message": f"no such address: {path}"}})

    async def control(self, writer, method, path, query, headers, body):
        verb, _, rest = path[2:].partition("/")
        if verb == "script":
            self.scripts[rest] = Script(json.loads(body))
            await self.send(writer, 200, {})
        elif verb == "log":
            await self.send(writer, 200, self.scripts[rest].log if rest in self.scripts else [])
        elif verb == "aborted":
            await self.send(writer, 200, self.aborted)
        elif verb == "stats":
            await self.send(writer, 200, {k: getattr(self, k) for k in (
                "requests", "inflight", "max_inflight", "connections", "max_connections")})
        elif verb == "gzip":
            await self.send(writer, 200, gzip.compress(b"compressed"), {"Content-Encoding": "gzip"}, "text/plain")
        elif verb == "deaf":
            await self.send(writer, 200, {"port": self.deaf_port()})
        elif verb == "quit":
            await self.send(writer, 200, {})
            self.quit.set()
        elif verb == "echo":
            text = body.decode("utf-8", "replace")
            await self.send(writer, 200, {"method": method, "headers": headers, "body": text, "query": query})
        elif verb == "redirect":
            n = int(rest)
            if n:
                await self.send(writer, 302, "moved", {"Location": f"/_redirect/{n - 1}"})
            else:
                await self.send(writer, 200, "arrived", kind="text/plain")
        elif verb == "bytes":
            await self.send_bytes(writer, int(rest), query)
        else:
            await self.send(writer, 404, {})

    def deaf_port(self):
        """Nobody accepts and the backlog is full, so the kernel drops what comes."""
        listener = socket.socket()
        listener.bind((self.options.host, 0))
        listener.listen(0)
        self.deaf = [listener]
        for _ in range(3):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
            self.deaf.append(filler)
        return listener.getsockname()[1]

    async def send_bytes(self, writer, n, query):
        chunk, delay = int(query.get("chunk", 65536)), float(query.get("delay_s", 0))
        writer.write(f"HTTP/1.1 200 X\r\nContent-Length: {n}\r\n\r\n".encode())
        while n > 0:
            writer.write(b"x" * min(n, chunk))
            await writer.drain()
            n -= chunk
            if delay:
                await asyncio.sleep(delay)

    # ---- completions

    async def complete(self, writer, name, target, headers, body):
        script = self.scripts.get(name)
        if script is None:
            return await self.send(writer, 404, {"error": {"message": f"no script {name!r}"}})
        self.requests += 1
        self.inflight += 1
        self.max_inflight = max(self.max_inflight, self.inflight)
        try:
            await self.complete_step(writer, script, target, headers, body)
        finally:
            self.inflight -= 1

    def note(self, script, target, headers, body, text):
        entry = {"n": len(script.log), "t": time.time(), "session": headers.get("x-session-id"), "path": target,
                 "headers": headers, "body": body, "inflight": self.inflight}
        if body is None:
            entry["text"] = text
        script.log.append(entry)
        if self.log:
            self.log.write(json.dumps(entry) + "\n")
            self.log.flush()

    def refusal(self, script, headers, body):
        if self.options.token and headers.get("authorization") != f"Bearer {self.options.token}":
            return 401, "wrong key"
        if body is None:
            return 400, "the body is not JSON"
        strict = script.spec.get("strict", self.options.strict)
        bad = check_strict(body) if strict else None
        limit = script.spec.get("max_field", self.options.max_field)
        if not bad and limit and longest_text(body.get("messages", [])) > limit:
            bad = f"string too long. Expected a string with maximum length {limit}"
        return (400, bad) if bad else None

    async def complete_step(self, writer, script, target, headers, text):
        try:
            body = json.loads(text)
        except ValueError:
            body = None
        self.note(script, target, headers, body, text.decode("utf-8", "replace"))
        refused = self.refusal(script, headers, body)
        if refused:
            return await self.send(writer, refused[0], {"error": {"message": refused[1], "type": "invalid_request"}})
        step = script.next(headers.get("x-session-id", ""))
        await asyncio.sleep(step.get("delay_s", script.spec.get("delay_s", self.options.delay)))
        if step.get("hang"):
            await asyncio.sleep(86400)
        if step.get("refuse"):
            raise Cut
        if step.get("reset"):
            sock = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            raise Cut
        if await self.send_trouble(writer, step):
            return
        if body.get("stream"):
            await self.stream(writer, step, body)
        else:
            await self.whole(writer, step, body)

    async def send_trouble(self, writer, step):
        headers = dict(step.get("headers", {}))
        if "retry_after" in step:
            after = step["retry_after"]
            if isinstance(after, str):
                after = email.utils.formatdate(time.time() + float(after[5:]), usegmt=True)
            headers["Retry-After"] = after
        status = step.get("status", 200)
        if step.get("html"):
            await self.send(writer, status, "<html><body><h1>Bad gateway</h1></body></html>", headers, "text/html")
        elif step.get("half_json"):
            await self.send(writer, status, '{"id":"x","choices":[{"index":0,"message":{"role":"assi', headers)
        elif "body" in step:
            await self.send(writer, status, step["body"], headers)
        elif "error" in step or status != 200:
            error = {"message": step.get("error", f"status {status}"), "type": "error", "code": step.get("code", status)}
            await self.send(writer, step.get("status", 400), {"error": error}, headers)
        else:
            return False
        return True

    def message(self, step, body):
        content = step.get("content")
        if step.get("echo"):
            content = [m["content"] for m in body["messages"] if m["role"] == "user"][-1]
        message = {"role": "assistant", "content": content}
        for key in ("reasoning_content", "reasoning"):
            if key in step:
                message[key] = step[key]
        calls = []
        for i, call in enumerate(step.get("tool_calls", [])):
            arguments = call.get("arguments", {})
            if not isinstance(arguments, str) and not step.get("object_arguments"):
                arguments = json.dumps(arguments)
            made = {"type": "function", "function": {"name": call["name"], "arguments": arguments}}
            made["id"] = call.get("id", f"call_{self.requests}_{i}")
            calls.append(made)
        if calls:
            message["tool_calls"] = calls
        message.update(step.get("message", {}))
        return message

    def base(self, step, body, kind):
        return {"id": f"cmpl-{self.requests}", "object": kind, "created": int(time.time()),
                "model": step.get("model", body.get("model", "fake"))}

    def choice(self, step, message):
        finish = step.get("finish_reason", "tool_calls" if message.get("tool_calls") else "stop")
        choice = {"index": 0, "message": message, "finish_reason": finish}
        if "logprobs" in step:
            one = {"token": "tok", "logprob": -0.25, "bytes": [116, 111, 107], "top_logprobs": []}
            choice["logprobs"] = {"content": [one] * step["logprobs"]}
        if "token_ids" in step:
            choice["token_ids"] = list(range(100, 100 + step["token_ids"]))
        return choice

    async def whole(self, writer, step, body):
        reply = self.base(step, body, "chat.completion")
        reply["choices"] = [self.choice(step, self.message(step, body))]
        if step.get("usage", USAGE) is not None:
            reply["usage"] = step.get("usage", USAGE)
        if "token_ids" in step:
            reply["prompt_token_ids"] = [1, 2, 3]
        reply.update(step.get("extra", {}))
        headers = {"Set-Cookie": "node=7; Path=/"} if step.get("cookie") else {}
        text = json.dumps(reply).encode()
        if "first_byte_delay_s" in step:
            writer.write(f"HTTP/1.1 200 X\r\nContent-Length: {len(text)}\r\n\r\n".encode())
            await writer.drain()
            await asyncio.sleep(step["first_byte_delay_s"])
            writer.write(text)
            return await writer.drain()
        if "truncate" in step:
            return await self.send(writer, 200, text[:-step["truncate"]], headers, declare=len(text))
        await self.send(writer, 200, text, headers)

    def deltas(self, step, message):
        size = step.get("chunk_chars", 4)

        def pieces(text):
            return [text[i:i + size] for i in range(0, len(text), size)] or [""]

        yield {"role": "assistant", "content": ""}
        for key in ("reasoning_content", "reasoning", "content"):
            for piece in pieces(message[key]) if message.get(key) else ():
                yield {key: piece}
        for i, call in enumerate(message.get("tool_calls", [])):
            fn = call["function"]
            yield {"tool_calls": [{"index": i, "id": call["id"], "type": "function",
                                   "function": {"name": fn["name"], "arguments": ""}}]}
            for piece in pieces(fn["arguments"]):
                yield {"tool_calls": [{"index": i, "function": {"arguments": piece}}]}

    def events(self, step, body):
        message = self.message(step, body)
        choice = self.choice(step, message)
        base = self.base(step, body, "chat.completion.chunk")
        for n, delta in enumerate(self.deltas(step, message)):
            part = {"index": 0, "delta": delta, "finish_reason": None}
            if "token_ids" in step:
                part["token_ids"] = [100 + n]
            if "logprobs" in choice:
                part["logprobs"] = {"content": choice["logprobs"]["content"][:1]}
            yield {**base, "choices": [part]}
        yield {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
        asked = (body.get("stream_options") or {}).get("include_usage")
        usage = step.get("usage", USAGE)
        if usage == "always" or (isinstance(usage, dict) and asked):
            yield {**base, "choices": [], "usage": usage if isinstance(usage, dict) else USAGE}

    async def stream(self, writer, step, body):
        async def event(text):
            data = f"data: {text}\n\n".encode()
            writer.write(b"%x\r\n%s\r\n" % (len(data), data))
            await writer.drain()

        writer.write(b"HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(step.get("first_byte_delay_s", 0))
        for n, item in enumerate(self.events(step, body)):
            if n == step.get("cut_after"):
                raise Cut
            if n == step.get("stall_after"):
                await asyncio.sleep(step.get("stall_s", 86400))
            await event(json.dumps(item))
            await asyncio.sleep(step.get("chunk_delay_s", 0))
        if not step.get("no_done"):
            await event("[DONE]")
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def run(self):
        context = None
        if self.options.tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.options.tls)
        if self.options.unix:
            server = await asyncio.start_unix_server(self.handle, self.options.unix)
            print(self.options.unix, flush=True)
        else:
            server = await asyncio.start_server(self.handle, self.options.host, self.options.port, ssl=context,
                                                backlog=4096)
            print(server.sockets[0].getsockname()[1], flush=True)
        if self.options.watch_pid:
            loop, fd = asyncio.get_running_loop(), os.pidfd_open(self.options.watch_pid)
            loop.add_reader(fd, self.quit.set)
        await self.quit.wait()
        server.close()
        os._exit(0)  # not waiting for the requests that hang


def read_script(text):
    if os.path.exists(text):
        with open(text) as f:
            text = f.read()
    return json.loads(text)


def parse_options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--host", default="127.0.0.1")
    p.add_argument("--port", type=int, default=0)
    p.add_argument("--unix")
    p.add_argument("--tls", nargs=2, metavar=("CERT", "KEY"))
    p.add_argument("--log")
    p.add_argument("--script", type=read_script, default=[])
    p.add_argument("--strict", action="store_true")
    p.add_argument("--max-field", type=int, default=0)
    p.add_argument("--delay", type=float, default=0)
    p.add_argument("--token")
    p.add_argument("--watch-pid", type=int)
    return p.parse_args()


def main():
    options = parse_options()
    try:
        asyncio.run(Server(options).run())
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
