"""Accepts requests and answers none. Prints its port; once COUNT are there, says so by making a file. Ends with its reader."""

import selectors
import socket
import sys

count = int(sys.argv[1])
server = socket.create_server(("127.0.0.1", 0), backlog=4096)
server.setblocking(False)
port = server.getsockname()[1]
print(port, flush=True)
selector = selectors.DefaultSelector()
selector.register(server, selectors.EVENT_READ)
held = set()
asked = set()
parent_gone = False
while not parent_gone:
    for key, _ in selector.select(timeout=1):
        if key.fileobj is server:
            client, _ = server.accept()
            held.add(client)
            selector.register(client, selectors.EVENT_READ)
        elif key.fileobj.recv(65536):
            asked.add(key.fileobj)
            if len(asked) == count:
                open(f"/tmp/agentbox-silent-{port}", "w").close()
        else:
            selector.unregister(key.fileobj)
            held.discard(key.fileobj)
            asked.discard(key.fileobj)
            key.fileobj.close()
            parent_gone = not held
