#!/usr/bin/env python3
"""tlsproxy.py REAL CERT KEY CA WATCH_PID: a Unix socket as a TCP port with TLS, for clients whose certificate CA signed.
Prints its port, and ends with WATCH_PID."""
import os
import select
import socket
import ssl
import sys
import threading

real, cert, key, ca, watch = sys.argv[1:5] + [int(sys.argv[5])]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(cert, key)
context.load_verify_locations(ca)
context.verify_mode = ssl.CERT_REQUIRED


def move(src, dst):
    try:
        while True:
            data = src.recv(65536)
            if not data:
                break
            dst.sendall(data)
    except OSError:
        pass
    for end in (src, dst):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def serve(raw):
    try:
        near = context.wrap_socket(raw, server_side=True)
        far = socket.socket(socket.AF_UNIX)
        far.connect(real)
    except OSError:
        raw.close()
        return
    threading.Thread(target=move, args=(near, far), daemon=True).start()
    move(far, near)


def alive(pid):
    try:
        os.kill(pid, 0)
        return True
    except ProcessLookupError:
        return False


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
os.close(1)
while alive(watch):
    if select.select([listener], [], [], 0.5)[0]:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
