"""Requests to the engine: one connection, tried again while the engine is away."""

from __future__ import annotations

import http.client
import json
import socket
import time
from typing import Any, Dict, Optional, Tuple
from urllib.parse import urlsplit

from .errors import DoorError, Refused, Superseded, Unreachable

_AWAY = (OSError, http.client.HTTPException)
_RETRY_STATUS = (408, 429, 503, 504, 507)  # 504 and 507: the engine waits for room on its disk


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Wire:
    """Every request may be sent again: the engine takes each of them twice as it takes it once."""

    def __init__(self, url: str, token: Optional[str], patience_s: float) -> None:
        parts = urlsplit(url)
        if parts.scheme == "unix":
            self._unix: Optional[str] = parts.path
        elif parts.scheme in ("http", "https") and parts.hostname:
            self._unix = None
        else:
            raise ValueError(f"not an address of a door: {url!r} (http://HOST:PORT or unix:/path)")
        self._parts = parts
        self._prefix = "" if self._unix else parts.path.rstrip("/")
        self._token = token
        self.patience_s = patience_s
        self.session: Optional[str] = None
        self._connection: Optional[http.client.HTTPConnection] = None

    def _open(self, timeout_s: float) -> http.client.HTTPConnection:
        if self._unix:
            return _UnixConnection(self._unix, timeout_s)
        host = self._parts.hostname or ""
        if self._parts.scheme == "https":
            return http.client.HTTPSConnection(host, self._parts.port, timeout=timeout_s)
        return http.client.HTTPConnection(host, self._parts.port, timeout=timeout_s)

    def _once(self, method: str, path: str, body: Optional[bytes], timeout_s: float) -> Tuple[int, bytes]:
        headers: Dict[str, str] = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if self.session:
            headers["Agentbox-Session"] = self.session
        if self._connection is None:
            self._connection = self._open(timeout_s)
        connection = self._connection
        connection.timeout = timeout_s
        if connection.sock is not None:
            connection.sock.settimeout(timeout_s)
        connection.request(method, self._prefix + path, body=body, headers=headers)
        response = connection.getresponse()
        return response.status, response.read()

    def ask(self, method: str, path: str, doc: Any = None, wait_s: float = 0.0) -> Any:
        """The answer as JSON. Raises Refused, Superseded, Unreachable."""
        body = None if doc is None else json.dumps(doc, ensure_ascii=False).encode("utf-8", "surrogatepass")
        give_up = time.monotonic() + self.patience_s
        pause_s = 0.05
        while True:
            try:
                status, answer = self._once(method, path, body, wait_s + 60.0)
                if status not in _RETRY_STATUS:
                    return _read(status, answer)
                problem: Exception = _refusal(status, answer)
            except _AWAY as error:
                self.close()
                problem = error
            if time.monotonic() + pause_s > give_up:
                raise Unreachable(f"no answer for {self.patience_s:g} s: {problem}")
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, 2.0)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def _read(status: int, answer: bytes) -> Any:
    if status >= 300:
        raise _refusal(status, answer)
    try:
        return json.loads(answer)
    except ValueError:
        raise DoorError(f"not an agentbox door: HTTP {status} without JSON") from None


def _refusal(status: int, answer: bytes) -> Refused:
    try:
        error = json.loads(answer)["error"]
        code, msg = str(error["code"]), str(error["msg"])
    except (ValueError, TypeError, LookupError):
        code, msg = "http", answer[:200].decode("utf-8", "replace").strip() or f"HTTP {status}"
    return (Superseded if code == "superseded" else Refused)(status, code, msg)
