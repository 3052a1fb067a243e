"""Many clients at once that say half a word: crowd.py PORT COUNT. Prints how many are connected when none is on its way any
more, and lets go when its stdin ends. Prints "limit" where so many descriptors may not be had."""
import errno
import resource
import select
import socket
import sys

port, count = int(sys.argv[1]), int(sys.argv[2])
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
if hard != resource.RLIM_INFINITY and hard < count + 64:
    print("limit", flush=True)
    sys.exit()
resource.setrlimit(resource.RLIMIT_NOFILE, (count + 64, hard))
poll, waiting, connected = select.epoll(), {}, []
for _ in range(count):
    one = socket.socket()
    one.setblocking(False)
    if one.connect_ex(("127.0.0.1", port)) not in (0, errno.EINPROGRESS):
        continue
    waiting[one.fileno()] = one
    poll.register(one, select.EPOLLOUT | select.EPOLLONESHOT)
poll.register(0, select.EPOLLIN)
while waiting:
    for fd, _ in poll.poll():
        if fd == 0:
            sys.exit()
        one = waiting.pop(fd)
        if one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
            connected.append(one)
            try:
                one.send(b"GET /half HTTP/1.1\r\nHost: ")
            except OSError:
                pass
print(len(connected), flush=True)
sys.stdin.read()
