#!/usr/bin/env python3
"""fakedocker.py SOCKET WATCH_PID MODE...: a daemon that fails on purpose, on a Unix socket.

  hang STEP        never answers that step     (ping info image volume create attach start inspect delete)
  refuse STEP      answers it with 500
  garbage STEP     answers it with what is no JSON
  torn STEP        ends the connection in the middle of its answer
  greet WHAT       everything works; the attached stream is `silent`, `cut`, or `noise`
  proxy REAL SIZE DELAY_MS CUT STALL
                   everything goes to the real socket; of an attached stream come pieces of SIZE bytes, DELAY_MS apart,
                   and after CUT (or STALL) bytes the end (or nothing more); 0 for never
  split REAL SIZE DELAY_MS
                   everything goes to the real socket, plain calls as well as streams, and both ways: of each connection
                   the first two thousand pieces have at most SIZE bytes, and the first twenty are DELAY_MS late
  busy REAL NTH    everything goes to the real socket; every NTH creation of a container is refused, and each is logged as
                   `creating N` with how many are under way

Prints a line when it listens, writes each request to SOCKET.log, and ends with WATCH_PID.
"""
import json
import os
import re
import select
import socket
import sys
import threading
import time

path, watch, mode = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
log = open(path + ".log", "a", buffering=1)


def step_of(line):
    name = re.sub(r"^/v[0-9.]+", "", line.split()[1].split("?")[0])
    method = line.split()[0]
    if name == "/_ping":
        return "ping"
    if name == "/info":
        return "info"
    if name.startswith("/images/"):
        return "image"
    if name.startswith("/volumes"):
        return "volume"
    if name == "/containers/create":
        return "create"
    if name.endswith("/attach"):
        return "attach"
    if name.endswith("/start"):
        return "start"
    if method == "DELETE":
        return "delete"
    return "inspect"


ANSWERS = {
    "ping": "OK",
    "info": json.dumps({"Driver": "overlay2", "DriverStatus": None, "CgroupVersion": "1"}),
    "image": json.dumps({"Id": "sha256:" + "1" * 64, "Config": {"Env": None}}),
    "volume": json.dumps({"Name": "v"}),
    "create": json.dumps({"Id": "c" * 64, "Warnings": None}),
    "start": "",
    "delete": "",
    "inspect": json.dumps({"Id": "c" * 64, "State": {"Running": False, "ExitCode": 137, "OOMKilled": True}}),
}


def read_head(conn):
    got = b""
    while b"\r\n\r\n" not in got:
        more = conn.recv(65536)
        if not more:
            return None, b""
        got += more
    head, rest = got.split(b"\r\n\r\n", 1)
    length = re.search(rb"(?i)content-length: *(\d+)", head)
    want = int(length.group(1)) if length else 0
    while len(rest) < want:
        rest += conn.recv(65536)
    return head.decode(), rest


def answer(conn, status, body):
    conn.sendall(("HTTP/1.1 %s\r\nApi-Version: 1.41\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
        status, len(body), body)).encode())


def answer_half(conn, body):
    body = body.ljust(200)
    conn.sendall(("HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body[:100])).encode())


def hang(conn):
    while conn.recv(65536):
        pass


def attached(conn):
    conn.sendall(b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
    what = mode[1] if mode[0] == "greet" else "silent"
    if what == "noise":
        conn.sendall(b"\x01\0\0\0\0\0\0\x10" + b"\xff" * 4000)
    if what == "cut":
        time.sleep(0.1)
        return
    hang(conn)


def serve_fake(conn):
    while True:
        head, _ = read_head(conn)
        if head is None:
            return
        line = head.split("\r\n")[0]
        log.write(line + "\n")
        step = step_of(line)
        if mode[0] == "hang" and mode[1] == step:
            hang(conn)
            return
        if mode[0] == "refuse" and mode[1] == step:
            answer(conn, "500 Internal Server Error", '{"message":"on purpose"}')
        elif mode[0] == "garbage" and mode[1] == step:
            answer(conn, "200 OK", "<html>")
        elif mode[0] == "torn" and mode[1] == step:
            answer_half(conn, ANSWERS[step])
            return
        elif step == "attach":
            attached(conn)
            return
        else:
            answer(conn, "200 OK" if ANSWERS[step] else "204 No Content", ANSWERS[step])


def pump_slowly(src, dst, size, delay, cut, stall):
    """From the daemon to the engine, as the mode says."""
    sent = 0
    while True:
        data = src.recv(65536)
        if not data:
            break
        at = 0
        while at < len(data):
            piece = data[at:at + size] if size else data[at:]
            if cut and sent + len(piece) > cut:
                dst.sendall(piece[:cut - sent])
                return
            if stall and sent + len(piece) > stall:
                dst.sendall(piece[:stall - sent])
                hang(dst)
                return
            dst.sendall(piece)
            at += len(piece)
            sent += len(piece)
            if delay:
                time.sleep(delay / 1000)


SLOW_PIECES, SMALL_PIECES = 20, 2000  # so that a call is slow and split, and five megabytes come to an end


def pump_split(src, dst, size, delay):
    """One way, in pieces; then the end of that way."""
    pieces = 0
    try:
        while True:
            data = src.recv(65536)
            if not data:
                break
            at = 0
            while at < len(data):
                piece = data[at:at + (size if pieces < SMALL_PIECES else len(data))]
                dst.sendall(piece)
                at += len(piece)
                pieces += 1
                if delay and pieces <= SLOW_PIECES:
                    time.sleep(delay / 1000)
        dst.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def serve_split(conn):
    real = socket.socket(socket.AF_UNIX)
    real.connect(mode[1])
    size, delay = int(mode[2]), int(mode[3])
    up = threading.Thread(target=pump_split, args=(conn, real, size, delay), daemon=True)
    up.start()
    pump_split(real, conn, size, delay)
    # The engine has no more to say: whoever still waits for the other way is let go.
    conn.shutdown(socket.SHUT_RDWR)
    up.join()
    real.close()


created = {"all": 0, "now": 0}
creating = threading.Lock()


def begin_create(conn):
    """Counts one; false when it was refused."""
    with creating:
        created["all"] += 1
        created["now"] += 1
        log.write("creating %d\n" % created["now"])
        if created["all"] % int(mode[2]):
            return True
        created["now"] -= 1
    answer(conn, "500 Internal Server Error", '{"message":"on purpose"}')
    return False


def serve_proxy(conn):
    real = socket.socket(socket.AF_UNIX)
    real.connect(mode[1])
    first = conn.recv(65536)
    line = first.split(b"\r\n")[0].decode(errors="replace")
    log.write(line + "\n")
    counted = mode[0] == "busy" and "/containers/create" in line
    if counted and not begin_create(conn):
        return
    real.sendall(first)
    numbers = [int(n) for n in mode[2:6]] if mode[0] == "proxy" and "/attach" in line else [0, 0, 0, 0]

    def up():
        try:
            while True:
                data = conn.recv(65536)
                if not data:
                    break
                real.sendall(data)
            real.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    threading.Thread(target=up, daemon=True).start()
    try:
        pump_slowly(real, conn, *numbers)
    finally:
        if counted:
            with creating:
                created["now"] -= 1
        for end in (real, conn):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        real.close()


def serve(conn):
    try:
        {"proxy": serve_proxy, "busy": serve_proxy, "split": serve_split}.get(mode[0], serve_fake)(conn)
    except OSError:
        pass
    finally:
        conn.close()


def alive(pid):
    try:
        os.kill(pid, 0)
        return True
    except ProcessLookupError:
        return False


listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen(64)
print("ready", flush=True)
os.close(1)
while alive(watch):
    if select.select([listener], [], [], 0.5)[0]:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
