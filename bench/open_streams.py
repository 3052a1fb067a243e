"""Opens N streams of events at HOST:PORT, says so when all have begun, and keeps them until stdin ends."""

import resource
import socket
import sys

host, port, path, count = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
streams = []
for _ in range(count):
    stream = socket.create_connection((host, port))
    stream.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    streams.append(stream)
for stream in streams:
    if not stream.recv(400).startswith(b"HTTP/1.1 200"):
        sys.exit("refused")
print("open", flush=True)
sys.stdin.read()
