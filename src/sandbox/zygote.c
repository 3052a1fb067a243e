#include "sandbox/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/wire.h"
#include "sandbox/cgroup.h"

#define CHILD_SOCKET 3
#define SOCKET_BYTES (1 << 20)

/* How long a killed zygote may take to be gone. */
#define DEATH_WAITS   100
#define DEATH_WAIT_US 1000

extern const uint8_t ab_init_program[], ab_init_program_end[];

/* One per process: it was started before there were threads or engines. */
static struct {
    int sock;
    pid_t pid;
    bool set_up;
    uint32_t facts;
    uint32_t first_slot; /* those before are an earlier one's */
    uint32_t next_slot;  /* beyond all that were given */
} zygote = {.sock = -1};

/* In the child: everything here must be safe after fork in a program with threads. The
 * program is copied here and not in the parent, who goes on meanwhile. */
static AB_NORETURN void exec_program(int sock)
{
    char *const argv[] = {(char *)(uintptr_t) "agentbox-init", NULL};
    char *const envp[] = {NULL}; /* the environment may hold secrets */
    const uint8_t *p = ab_init_program;
    int fd = memfd_create("agentbox-init", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    while (fd >= 0 && p < ab_init_program_end) {
        ssize_t n = write(fd, p, (size_t)(ab_init_program_end - p));
        if (n < 0)
            _exit(127);
        p += n;
    }
    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
    if (fd == CHILD_SOCKET)
        fd = fcntl(fd, F_DUPFD_CLOEXEC, CHILD_SOCKET + 1);
    if (sock == CHILD_SOCKET)
        fcntl(sock, F_SETFD, 0);
    else
        dup2(sock, CHILD_SOCKET);
    close_range(CHILD_SOCKET + 1, ~0u, CLOSE_RANGE_CLOEXEC);
    fexecve(fd, argv, envp);
    _exit(127);
}

static int send_packet(const uint8_t *packet, size_t len, const int *fds, int nfds,
                       struct ab_err *err)
{
    int rc = ab_wire_send(zygote.sock, packet, len, fds, nfds, MSG_DONTWAIT);
    if (rc == 0)
        return 0;
    if (rc == -EAGAIN)
        return ab_err_set(err, AB_EBUSY, "too many sandboxes are being created at once");
    ab_err_set(err, AB_ESANDBOX, "the zygote is gone (%s)", strerror(-rc));
    return -1;
}

static int set_up(struct ab_err *err)
{
    uint8_t buf[512];
    int fds[AB_WIRE_FDS];
    struct ab_wire_setup m = {
        .parents = (uint32_t)ab_cgroup_parents(fds),
        .ident = ab_cgroup_ident(),
        .old_mounts = getenv("AGENTBOX_OLD_MOUNTS") != NULL,
    };
    long n = ab_wire_put_setup(buf, sizeof buf, &m);
    if (n < 0)
        AB_BUG("setup message");
    if (send_packet(buf, (size_t)n, fds, (int)m.parents, err) < 0)
        return -1;
    zygote.set_up = true;
    return 0;
}

/* A failure is met again, and reported, by the request that needs the zygote. */
static void announce(void)
{
    struct ab_err err;
    if (zygote.sock >= 0 && set_up(&err) < 0)
        zygote.set_up = false;
}

int ab_zygote_start(struct ab_err *err)
{
    int pair[2];
    if (zygote.sock >= 0)
        return 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return ab_err_sys(err, errno, "socket to the zygote");
    pid_t pid = fork();
    if (pid == 0)
        exec_program(pair[1]);
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return ab_err_sys(err, errno, "start the zygote");
    }
    int bytes = SOCKET_BYTES;
    setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    zygote.sock = pair[0];
    zygote.pid = pid;
    zygote.first_slot = zygote.next_slot;
    ab_cgroup_companion(pid, announce);
    zygote.set_up = false;
    return 0;
}

void ab_zygote_note_facts(uint32_t facts, uint32_t slot)
{
    zygote.facts = facts;
    if (slot >= zygote.next_slot || slot < zygote.first_slot) /* it went round */
        zygote.next_slot = (slot + 1) % AB_WIRE_SLOTS;
}

uint32_t ab_zygote_first_slot(void)
{
    struct pollfd p = {.fd = zygote.sock, .events = POLLOUT};
    if (zygote.sock >= 0 && poll(&p, 1, 0) == 1 && (p.revents & POLLHUP))
        ab_zygote_stop(); /* dead: the request will start another */
    return zygote.sock < 0 ? zygote.next_slot : zygote.first_slot;
}

uint32_t ab_zygote_facts(void)
{
    return zygote.facts;
}

bool ab_zygote_has_room(void)
{
    struct pollfd p = {.fd = zygote.sock, .events = POLLOUT};
    return zygote.sock < 0 || (poll(&p, 1, 0) == 1 && p.revents);
}

int ab_zygote_socket(void)
{
    return zygote.sock;
}

static int request(const uint8_t *packet, size_t len, const int *fds, int nfds,
                   struct ab_err *err)
{
    if (ab_zygote_start(err) < 0 || (!zygote.set_up && set_up(err) < 0))
        return -1;
    return send_packet(packet, len, fds, nfds, err);
}

int ab_zygote_request(const uint8_t *packet, size_t len, const int *fds, int nfds,
                      struct ab_err *err)
{
    int rc = request(packet, len, fds, nfds, err);
    if (rc == 0 || err->code != AB_ESANDBOX)
        return rc;
    ab_zygote_stop(); /* it was killed, and its sandboxes with it: begin again, once */
    return request(packet, len, fds, nfds, err);
}

pid_t ab_zygote_pid(void)
{
    return zygote.sock < 0 ? 0 : zygote.pid;
}

void ab_zygote_kill(pid_t pid)
{
    if (zygote.sock < 0 || zygote.pid != pid)
        return;
    kill(pid, SIGKILL); /* to death also if it is stopped */
    close(zygote.sock);
    zygote.sock = -1;
    for (int i = 0; i < DEATH_WAITS && waitpid(pid, NULL, WNOHANG) == 0; i++)
        usleep(DEATH_WAIT_US); /* what the kernel does not let go is not waited for */
}

void ab_zygote_group(pid_t leader, bool alive)
{
    uint8_t buf[16];
    struct ab_wire_group m = {.pid = (uint32_t)leader, .alive = alive};
    long n = ab_wire_put_group(buf, sizeof buf, &m);
    if (zygote.sock >= 0 && n > 0)
        ab_wire_send(zygote.sock, buf, (size_t)n, NULL, 0, MSG_DONTWAIT);
}

void ab_zygote_stop(void)
{
    if (zygote.sock < 0)
        return;
    close(zygote.sock);
    zygote.sock = -1;
    waitpid(zygote.pid, NULL, 0);
}
