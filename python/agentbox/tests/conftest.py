"""An engine with a door, and a model server that it samples from."""

import http.server
import json
import os
import pathlib
import signal
import subprocess
import threading
import time
import urllib.request

import pytest

BIN = os.environ.get("AGENTBOX_BIN")


def task(task_id):
    return {"task_id": task_id, "description": f"do {task_id}", "verifier": {"type": "command", "command": "true"}}


class Model:
    """Speaks chat completions with token ids. `slow(n)` says how long the n-th call takes, `broken(n)` whether it fails."""

    def __init__(self, slow=lambda n: 0.0, broken=lambda n: False):
        self.calls = []
        self.lock = threading.Lock()
        self.gone = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with outer.lock:
                    outer.calls.append(request["model"])
                    n = len(outer.calls)
                outer.gone.wait(slow(n))
                body = json.dumps(answer(request, n)).encode()
                try:
                    self.send_response(400 if broken(n) else 200)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    pass  # the engine has given the call up

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.gone.set()
        self.server.shutdown()
        self.server.server_close()


def answer(request, n):
    ids = [n, n + 1, n + 2]
    logprobs = [{"token": f"token_id:{i}", "logprob": -0.5, "top_logprobs": []} for i in ids]
    return {
        "id": f"chatcmpl-{n}",
        "object": "chat.completion",
        "created": 1,
        "model": request["model"],
        "prompt_token_ids": [1, 2, 3, 4],
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "done"},
                "finish_reason": "stop",
                "token_ids": ids,
                "logprobs": {"content": logprobs},
            }
        ],
        "usage": {"prompt_tokens": 4, "completion_tokens": 3, "total_tokens": 7},
    }


class Engine:
    """`agentbox serve` over a run's folder, which may be killed and started again at the same address."""

    def __init__(self, run, model, *options, env=None):
        self.run, self.options, self.model, self.env = run, options, model, {**os.environ, **(env or {})}
        self.listen = f"unix:{run}.sock"
        self.url = self.listen
        self.process = None
        self.log = open(f"{run}.log", "ab")

    def start(self):
        self.process = subprocess.Popen(
            [BIN, "serve", self.run, "--listen", self.listen, "--backend", "none", "-m", "policy@1"]
            + ["--base-url", self.model.url, *self.options],
            stdout=self.log, stderr=self.log, env=self.env, cwd=os.path.dirname(self.run),
        )
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()

    def wait(self, timeout_s):
        return self.process.wait(timeout_s)

    def said(self):
        with open(f"{self.run}.log", encoding="utf-8", errors="replace") as text:
            return f"exit status {self.process.poll()}, the engine said: {text.read()[-4000:]}"

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
        self.log.close()


@pytest.fixture
def make(tmp_path):
    made = []

    def add(kind, *args, **kwargs):
        one = kind(*args, **kwargs)
        made.append(one)
        return one

    yield add
    for one in reversed(made):
        one.close()


@pytest.fixture
def run(tmp_path):
    return str(tmp_path / "run")


def wait_for(what, seconds=60.0):
    """Asks until the answer is yes."""
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up:
        value = what()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError("it never came")
