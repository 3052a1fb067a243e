/* main.c - the zygote's loop. See init.h for the whole. */
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "init/init.h"
#include "init/sys.h"

#define ENGINE_SOCKET 3
#define DEATH_WAIT_MS 1500
#define SWEEP_MS      500
#define LIFE_BYTES    65536

const char *ab_step = "start";

/* A sandbox that lives, to free its uid range when it ends and to kill it when the engine
 * ends. */
struct life {
    int pidfd;
    struct slot *slot;
    int upper; /* its number in the store, or -1 */
    int net;   /* to be used again, or -1 */
    struct life *prev, *next;
};

static struct zygote zygote;
static struct life *lives, *ended;
static int epoll_fd = -1;
static bool idle_sweep; /* something in the store may be let go */

int ab_keep_fd(int fd)
{
    int kept = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, AB_KEPT_FD);
    if (kept < 0)
        return fd;
    close(fd);
    return kept;
}

static void watch(int fd, void *tag)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = tag};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev);
}

/* In pages that no child gets: what we change in others is copied for who was born
 * before. */
static struct life *life_new(void)
{
    if (!ended) {
        struct life *page = mmap(NULL, LIFE_BYTES, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED || madvise(page, LIFE_BYTES, MADV_DONTFORK) < 0)
            return NULL;
        for (size_t i = 0; i < LIFE_BYTES / sizeof *page; i++) {
            page[i].next = ended;
            ended = &page[i];
        }
    }
    struct life *life = ended;
    ended = life->next;
    return life;
}

static void life_begin(int pidfd, struct box *b)
{
    struct slot *slot = b->slot;
    struct life *life = life_new();
    if (!life) {
        sys_pidfd_kill(pidfd, SIGKILL);
        close(pidfd);
        ab_store_end(b->upper_number);
        return;
    }
    *life = (struct life){
        .pidfd = pidfd, .slot = slot, .upper = b->upper_number, .net = -1, .next = lives};
    if (!(b->spec.flags & (AB_WIRE_NET_FULL | AB_WIRE_NET_GATE))) {
        life->net = ab_keep_fd(b->net);
        b->net = -1;
    }
    if (lives)
        lives->prev = life;
    lives = life;
    slot->refs++;
    watch(pidfd, life);
}

static void life_end(struct life *life)
{
    if (life->prev)
        life->prev->next = life->next;
    else
        lives = life->next;
    if (life->next)
        life->next->prev = life->prev;
    life->slot->refs--;
    ab_store_end(life->upper);
    ab_net_give(&zygote, life->net);
    idle_sweep = zygote.store_ns >= 0;
    /* The engine holds the same open file, so closing ours would not take it out. */
    epoll_ctl(epoll_fd, EPOLL_CTL_DEL, life->pidfd, NULL);
    close(life->pidfd);
    life->next = ended;
    ended = life;
}

static void take_setup(const uint8_t *buf, size_t len, const int *fds, int nfds)
{
    struct ab_wire_setup m;
    if (ab_wire_get_setup(buf, len, &m) < 0 || (int)m.parents != nfds) {
        ab_wire_close_fds(fds, nfds);
        return;
    }
    ab_wire_close_fds(zygote.parents, zygote.nparents); /* the list grew: this is all */
    memcpy(zygote.parents, fds, sizeof(int) * (size_t)nfds);
    zygote.nparents = nfds;
    zygote.old_mounts = m.old_mounts != 0;
    snprintf(zygote.ident, sizeof zygote.ident, "%s", m.ident);
}

/* Sorts the descriptors of a CREATE into the box; -1 when they do not match the message.
 */
static int take_fds(struct box *b, const int *fds, int nfds)
{
    bool cgroup2 = b->spec.flags & AB_WIRE_CGROUP2;
    bool swap = b->spec.flags & AB_WIRE_SWAP;
    int want = 1 + swap + (int)b->spec.layers + cgroup2 + (int)b->spec.v1;
    if (nfds != want)
        return -1;
    int at = 0;
    b->sock = fds[at++];
    if (swap)
        b->pidfd = fds[at++];
    for (uint32_t i = 0; i < b->spec.layers; i++)
        b->layers[i] = fds[at++];
    if (cgroup2)
        b->cgroup2 = fds[at++];
    for (uint32_t i = 0; i < b->spec.v1; i++)
        b->v1[i] = fds[at++];
    return 0;
}

static void take_create(const uint8_t *buf, size_t len, const int *fds, int nfds)
{
    struct box b;
    memset(&b, 0xff, sizeof b); /* every descriptor -1 */
    b.unmapped = false;
    b.slot = NULL;
    if (ab_wire_get_create(buf, len, &b.spec) < 0 || take_fds(&b, fds, nfds) < 0) {
        ab_wire_close_fds(fds, nfds);
        return;
    }
    if (b.spec.flags & (AB_WIRE_SWAP | AB_WIRE_MERGE | AB_WIRE_VIEW)) {
        ab_underlay(&zygote, &b);
        ab_box_close(&b);
        return;
    }
    int pidfd = ab_keep_fd(ab_born(&zygote, &b));
    if (pidfd >= 0)
        life_begin(pidfd, &b);
    else
        ab_store_end(b.upper_number);
    ab_box_close(&b);
}

/* Process groups of the host that run for the engine: backend none. */
static struct groups {
    uint32_t *pid;
    size_t count, room;
} groups;

static void take_group(const uint8_t *buf, size_t len)
{
    struct ab_wire_group m;
    struct groups *g = &groups;
    if (ab_wire_get_group(buf, len, &m) < 0 || m.pid < 2)
        return;
    for (size_t i = 0; i < g->count; i++)
        if (g->pid[i] == m.pid)
            g->pid[i--] = g->pid[--g->count];
    if (!m.alive)
        return;
    if (g->count == g->room) {
        size_t more = g->room ? g->room * 2 : 64;
        uint32_t *grown = realloc(g->pid, more * sizeof *grown);
        if (!grown)
            return;
        g->pid = grown;
        g->room = more;
    }
    g->pid[g->count++] = m.pid;
}

/* False at the end of the engine. Of a dead one only what we must tidy up is heard: the
 * sandboxes that it asked for are not made any more. */
static bool serve(bool dead)
{
    static uint8_t buf[AB_WIRE_MAX];
    int fds[AB_WIRE_FDS], nfds;
    long n = ab_wire_recv(zygote.sock, buf, fds, &nfds, MSG_DONTWAIT);
    if (n == -EPROTO || (n == -EAGAIN && !dead))
        return true;
    if (n <= 0)
        return false;
    int type = ab_wire_type(buf, (size_t)n);
    if (type == AB_WIRE_SETUP)
        take_setup(buf, (size_t)n, fds, nfds);
    else if (type == AB_WIRE_CREATE && !dead)
        take_create(buf, (size_t)n, fds, nfds);
    else
        ab_wire_close_fds(fds, nfds);
    if (type == AB_WIRE_GROUP)
        take_group(buf, (size_t)n);
    return true;
}

static int remove_below(int dir)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d)
        return -1;
    int left = 0;
    struct dirent *e;
    while ((e = readdir(d))) {
        if (e->d_type != DT_DIR || e->d_name[0] == '.')
            continue;
        int sub = openat(dir, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (sub >= 0) {
            remove_below(sub);
            close(sub);
        }
        if (unlinkat(dir, e->d_name, AT_REMOVEDIR) < 0)
            left++;
    }
    closedir(d);
    return left;
}

static bool remove_cgroups(void)
{
    int left = 0;
    for (int i = 0; i < zygote.nparents; i++) {
        int dir =
            openat(zygote.parents[i], zygote.ident, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0)
            continue;
        left += remove_below(dir);
        close(dir);
        if (unlinkat(zygote.parents[i], zygote.ident, AT_REMOVEDIR) < 0 &&
            errno != ENOENT)
            left++;
    }
    return left == 0;
}

/* The engine is gone. Its sandboxes see the end of their own sockets too; this makes
 * sure. */
static void bury(void)
{
    for (struct life *l = lives; l; l = l->next)
        sys_pidfd_kill(l->pidfd, SIGKILL);
    for (size_t i = 0; i < groups.count; i++)
        kill(-(pid_t)groups.pid[i], SIGKILL);
    for (struct life *l = lives; l; l = l->next) {
        struct pollfd p = {.fd = l->pidfd, .events = POLLIN};
        poll(&p, 1, DEATH_WAIT_MS);
    }
    /* A cgroup stays busy for a moment after its last process is gone. */
    for (int i = 0; i < 200 && !remove_cgroups(); i++)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

static void detach_from_caller(void)
{
    setsid(); /* Ctrl-C is for the engine */
    /* A stopped one is sent SIGHUP with SIGCONT when the engine ends, and has work then.
     */
    for (int sig = 1; sig < NSIG; sig++)
        signal(sig, sig == SIGPIPE || sig == SIGHUP ? SIG_IGN : SIG_DFL);
    prctl(PR_SET_NAME, "agentbox-zygote");
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; null >= 0 && fd < 3; fd++)
        dup2(null, fd);
    if (null > 2)
        close(null);
    if (chdir("/") < 0)
        _exit(1);
}

static void run(void)
{
    detach_from_caller();
    memset(&zygote, 0xff, sizeof zygote); /* every descriptor -1 */
    zygote.ready = zygote.root = zygote.old_mounts = false;
    zygote.nets = zygote.nparents = 0;
    zygote.facts = 0;
    zygote.ident[0] = 0;
    for (int i = 0; i < AB_SLOTS; i++)
        zygote.slots[i].refs = 0;
    zygote.sock = ENGINE_SOCKET;
    fcntl(zygote.sock, F_SETFD, FD_CLOEXEC);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    watch(zygote.sock, NULL);
    bool alive = true, idle_work = false;
    while (alive) {
        struct epoll_event ev[64];
        int n = epoll_wait(epoll_fd, ev, 64, idle_work ? 0 : idle_sweep ? SWEEP_MS : -1);
        if (n == 0 && idle_work)
            idle_work = ab_net_refill(&zygote);
        else if (n == 0)
            idle_sweep = ab_store_sweep(&zygote);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ; /* what copied */
        for (int i = 0; i < n; i++) {
            if (ev[i].data.ptr)
                life_end(ev[i].data.ptr);
            else
                alive = serve(ev[i].events & EPOLLHUP);
        }
        if (n > 0)
            idle_work = zygote.ready && zygote.nets < AB_NET_POOL;
    }
    bury();
    _exit(0);
}

int main(void)
{
    ab_shed(run);
}
