/* born.c - one sandbox, from CREATE to its first breath. */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "init/init.h"
#include "init/sys.h"

void ab_box_close(struct box *b)
{
    sys_close(&b->sock);
    sys_close(&b->pidfd);
    for (int i = 0; i < AB_WIRE_LAYERS; i++)
        sys_close(&b->layers[i]);
    sys_close(&b->cgroup2);
    for (int i = 0; i < AB_WIRE_CGROUPS; i++)
        sys_close(&b->v1[i]);
    sys_close(&b->upper);
    sys_close(&b->files);
    sys_close(&b->tree);
    sys_close(&b->dev);
    sys_close(&b->net);
    sys_close(&b->mounts);
}

/* A child that was cloned is the engine's to reap: its pidfd goes along. */
static void say_failed(const struct box *b, int errnum, int pidfd)
{
    uint8_t buf[512];
    struct ab_wire_failed m = {.errnum = errnum, .step = ab_step};
    long n = ab_wire_put_failed(buf, sizeof buf, &m);
    if (n > 0)
        ab_wire_send(b->sock, buf, (size_t)n, &pidfd, pidfd >= 0, MSG_DONTWAIT);
}

static int say_born(struct zygote *z, const struct box *b, pid_t pid, int pidfd)
{
    uint8_t buf[64];
    uint32_t first = ab_host_uid(z, b->slot, 0);
    bool swaps = !z->old_mounts && (z->traces || b->mounts >= 0);
    struct ab_wire_born m = {
        .pid = (uint32_t)pid,
        .slot = (uint32_t)(b->slot - z->slots),
        .uid_first = z->root ? first : z->uid_first,
        .uid_rest = z->root ? first + 1 : z->uid_rest,
        .uid_count = z->root ? AB_UID_RANGE : z->uid_count,
        .facts = z->facts | (swaps ? 0u : AB_WIRE_NO_SWAP) |
                 (b->mounts < 0 ? 0u : AB_WIRE_MOUNTS),
    };
    int fds[6] = {pidfd, b->files, b->upper, b->net, z->self_userns};
    bool wired = b->spec.flags & AB_WIRE_NET_FULL;
    int nfds = !wired ? 3 : z->self_userns < 0 ? 4 : 5;
    if (b->mounts >= 0)
        fds[nfds++] = b->mounts;
    long n = ab_wire_put_born(buf, sizeof buf, &m);
    int rc = ab_wire_send(b->sock, buf, (size_t)n, fds, nfds, MSG_DONTWAIT);
    if (rc < 0) {
        errno = -rc;
        return -1;
    }
    return 0;
}

/* The engine's end of a network with a list; a namespace that had one is not used again.
 */
static int say_gate(struct box *b)
{
    uint8_t buf[16];
    int fds[AB_WIRE_PORTS + 2];
    if (!(b->spec.flags & AB_WIRE_NET_GATE))
        return 0;
    int n = ab_gate_open(b->spec.ports, (int)b->spec.nports, fds);
    if (n < 0)
        return -1;
    long len = ab_wire_put_bare(buf, sizeof buf, AB_WIRE_GATE);
    int rc = ab_wire_send(b->sock, buf, (size_t)len, fds, n, MSG_DONTWAIT);
    ab_wire_close_fds(fds, n);
    errno = -rc;
    return rc < 0 ? -1 : 0;
}

/* The child shares our descriptors for its first moment, and then takes the low ones:
 * copying them all and closing them again would cost more with each sandbox that lives,
 * and leave it a table of thousands. */
static void part(struct zygote *z)
{
    uint64_t one = 1;
    if (close_range(AB_KEPT_FD, ~0u, CLOSE_RANGE_UNSHARE) < 0 ||
        write(z->parted, &one, sizeof one) != sizeof one)
        _exit(1);
    sys_close(&z->go[1]); /* who waits must see when nobody is left to say it */
}

/* Until then our own must stay as they are. A child that died before it said so has none.
 */
static void wait_parted(struct zygote *z, int pidfd)
{
    uint64_t count;
    struct pollfd p[] = {{.fd = z->parted, .events = POLLIN},
                         {.fd = pidfd, .events = POLLIN}};
    while (poll(p, 2, -1) < 0 || (p[0].revents && read(z->parted, &count, 8) != 8))
        ;
}

/* The child waits in ab_setup() until its ids are mapped. */
static pid_t clone_child(struct zygote *z, struct box *b, int *pidfd)
{
    /* A child that died early would leave its permission to the next. */
    sys_close(&z->go[0]);
    sys_close(&z->go[1]);
    if (z->parted < 0)
        z->parted = eventfd(0, EFD_CLOEXEC);
    if (z->parted < 0 || pipe2(z->go, O_CLOEXEC) < 0)
        return -1;
    struct clone_args args = {
        .flags = CLONE_PARENT | CLONE_PIDFD | CLONE_FILES | CLONE_NEWUSER | CLONE_NEWNS |
                 CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS,
        .pidfd = (uintptr_t)pidfd,
    };
    if (b->cgroup2 >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)b->cgroup2;
    }
    pid_t pid = (pid_t)sys_clone3(&args);
    if (pid == 0) {
        part(z);
        ab_setup(z, b);
    }
    if (pid < 0)
        *pidfd = -1; /* the kernel writes a number also when it fails later */
    return pid;
}

/* For swaps, and for who looks at files as root inside (sandbox/file_inside.h). Where it
 * cannot be had, there are none. */
static void open_mounts(struct zygote *z, struct box *b, pid_t pid)
{
    char path[32];
    if (z->traces)
        return;
    snprintf(path, sizeof path, "%d/ns/mnt", pid);
    b->mounts = openat(z->proc, path, O_RDONLY | O_CLOEXEC);
}

static int start_child(struct zygote *z, struct box *b, int *pidfd)
{
    ab_at("prepare a network namespace");
    b->net = ab_net_take(z);
    if (b->net < 0 || setns(b->net, CLONE_NEWNET) < 0)
        return -1;
    pid_t pid = say_gate(b) < 0 ? -1 : 0;
    if (pid == 0 && ab_at("clone the sandbox"))
        pid = clone_child(z, b, pidfd);
    int saved = errno;
    if (setns(z->own_net, CLONE_NEWNET) < 0)
        return -1;
    errno = saved;
    if (pid < 0)
        return -1;
    if (ab_host_map_ids(z, pid, b->slot) < 0)
        return -1;
    open_mounts(z, b, pid);
    /* Pid 1 must get its turn among hundreds of busy processes with which it shares a
     * quota of CPU; commands go back to the usual. An ordinary user may not ask for that.
     */
    setpriority(PRIO_PROCESS, (id_t)pid, -20);
    ab_at("answer the engine");
    if (say_born(z, b, pid, *pidfd) < 0)
        return -1;
    uint64_t one = 1;
    return write(z->go[1], &one, sizeof one) == sizeof one ? 0 : -1;
}

int ab_born(struct zygote *z, struct box *b)
{
    int pidfd = -1;
    ab_at("prepare the zygote");
    if (ab_host_prepare(z) == 0 && (b->slot = ab_host_slot(z, b->spec.slot)) &&
        ab_tree_build(z, b) == 0 && start_child(z, b, &pidfd) == 0) {
        wait_parted(z, pidfd);
        return pidfd;
    }
    int errnum = errno;
    if (pidfd >= 0) {
        sys_pidfd_kill(pidfd, SIGKILL);
        wait_parted(z, pidfd);
    }
    say_failed(b, errnum, pidfd);
    sys_close(&pidfd);
    return -1;
}
