#include "rt/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/wire.h"

#define ID_BASE    0x6fff0000u /* just below the sandboxes' */
#define ID_COUNT   65536u
#define MEMORY_MAX ((rlim_t)2 << 30) /* a window of zstd may be 128 MB */
#define NAMESPACES \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)

static int write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));
    int saved = errno;
    if (fd >= 0)
        close(fd);
    errno = saved;
    return n < 0 ? -1 : 0;
}

/* For who has no channel back but its standard error. */
static int said(const struct ab_err *err)
{
    fprintf(stderr, "%s %s\n", ab_err_name(err->code), err->msg);
    return 1;
}

/* ---- giving up ---- */

static int only_caps(uint32_t keep)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{.permitted = keep, .effective = keep}};
    for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
            return -1;
    return (int)syscall(SYS_capset, &head, data);
}

/* A descriptor of a directory would be a way out. */
static void only_descriptors(const struct ab_confine *c)
{
    unsigned next = STDERR_FILENO + 1;
    for (int i = 0; i < c->nfds; i++) {
        unsigned fd = (unsigned)c->fds[i];
        if (fd > next)
            close_range(next, fd - 1, 0);
        next = fd + 1;
    }
    close_range(next, ~0u, 0);
}

static int give_up_rights(struct ab_err *err)
{
    const uint32_t keep = 1u << CAP_CHOWN | 1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER |
                          1u << CAP_FSETID | 1u << CAP_SETFCAP;
    const struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_CORE, &none) < 0 || setrlimit(RLIMIT_NPROC, &none) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || only_caps(keep) < 0)
        return ab_err_sys(err, errno, "give up rights");
#if !defined(__SANITIZE_ADDRESS__) /* which reserves terabytes */
    const struct rlimit memory = {MEMORY_MAX, MEMORY_MAX};
    if (setrlimit(RLIMIT_AS, &memory) < 0)
        return ab_err_sys(err, errno, "limit the memory");
#endif
    umask(022);
    return 0;
}

/* The last step of both ways: the root becomes the detached mount. */
static int do_work(const struct ab_confine *c, int tree)
{
    struct ab_err err = {0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (fchdir(tree) < 0 || chroot(".") < 0) {
        ab_err_sys(&err, errno, "change the root");
        return said(&err);
    }
    only_descriptors(c);
    if (give_up_rights(&err) < 0)
        return said(&err);
    return c->work(c->arg);
}

static int detached(int dir, struct ab_err *err)
{
    int tree = (int)syscall(SYS_open_tree, dir, "",
                            OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
    if (tree < 0 && errno == EPERM && geteuid() == 0)
        return ab_err_set(err, AB_EUNSUPPORTED,
                          "root without the right to mount (CAP_SYS_ADMIN) cannot "
                          "unpack; an ordinary user can");
    return tree < 0 ? ab_err_sys(err, errno, "clone the destination") : tree;
}

static int new_namespaces(int flags, struct ab_err *err)
{
    if (unshare(flags) == 0)
        return 0;
    return ab_err_set(err, AB_EUNSUPPORTED,
                      "unpacking needs user namespaces: %s (see agentbox doctor)",
                      strerror(errno));
}

static int status_of(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    fprintf(stderr, "%s the unpacking process was killed by signal %d%s\n",
            ab_err_name(AB_EINVALID), WTERMSIG(status),
            WTERMSIG(status) == SIGKILL ? " (out of memory?)" : "");
    return 1;
}

/* ---- as an ordinary user ---- */

static int map_ourselves(uid_t uid, gid_t gid, struct ab_err *err)
{
    char uids[64], gids[64];
    snprintf(uids, sizeof uids, "0 %u 1", (unsigned)uid);
    snprintf(gids, sizeof gids, "0 %u 1", (unsigned)gid);
    if (write_text("/proc/self/setgroups", "deny") < 0 ||
        write_text("/proc/self/uid_map", uids) < 0 ||
        write_text("/proc/self/gid_map", gids) < 0)
        return ab_err_sys(err, errno, "map our own user id");
    return 0;
}

static int confined_user(const struct ab_confine *c, struct ab_err *err)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();
    /* Only the current directory goes along into the new mount namespace. */
    if (fchdir(c->dir) < 0)
        return ab_err_sys(err, errno, "enter the destination");
    if (new_namespaces(NAMESPACES | CLONE_NEWPID, err) < 0 ||
        map_ourselves(uid, gid, err) < 0 || (c->prepare && c->prepare(c->arg, err) < 0))
        return -1;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* new rights take it back */
    int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (here < 0)
        return ab_err_sys(err, errno, "enter the destination");
    int tree = detached(here, err);
    if (tree < 0)
        return -1;
    pid_t pid = fork(); /* into the new pid namespace */
    if (pid == 0)
        _exit(do_work(c, tree));
    return pid < 0 ? ab_err_sys(err, errno, "start a process") : status_of(pid);
}

/* ---- as root ---- */

/* The child: its ids come from outside, and with them the mount to work in. */
static int await_ids(const struct ab_confine *c, int sock)
{
    struct ab_err err = {0};
    uint8_t byte[16];
    int fds[AB_WIRE_FDS], nfds = 0;
    if (new_namespaces(NAMESPACES, &err) < 0)
        return said(&err);
    if (ab_wire_send(sock, (const uint8_t *)"r", 1, NULL, 0, 0) < 0 ||
        ab_wire_recv(sock, byte, fds, &nfds, 0) != 1 || nfds != 1)
        return 1; /* the other side knows why */
    if (setresgid(0, 0, 0) < 0 || setgroups(0, NULL) < 0 || setresuid(0, 0, 0) < 0) {
        ab_err_sys(&err, errno, "become root of the namespace");
        return said(&err);
    }
    return do_work(c, fds[0]);
}

static int map_child(pid_t pid, bool mapped, struct ab_err *err)
{
    char path[64], map[64];
    snprintf(map, sizeof map, "0 %u %u", mapped ? ID_BASE : 0, ID_COUNT);
    snprintf(path, sizeof path, "/proc/%d/uid_map", (int)pid);
    int rc = write_text(path, map);
    snprintf(path, sizeof path, "/proc/%d/gid_map", (int)pid);
    if (rc < 0 || write_text(path, map) < 0)
        return ab_err_sys(err, errno, "map the user ids");
    return 0;
}

/* The mount that the child works in. */
static int make_tree(const struct ab_confine *c, pid_t pid, bool mapped,
                     struct ab_err *err)
{
    int tree = map_child(pid, mapped, err) < 0 ? -1 : detached(c->dir, err);
    if (tree < 0 || !mapped)
        return tree;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
    int userns = open(path, O_RDONLY | O_CLOEXEC);
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP,
                              .userns_fd = (uint64_t)userns};
    long rc = userns < 0 ? -1
                         : syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr,
                                   sizeof attr);
    int saved = errno;
    if (userns >= 0)
        close(userns);
    if (rc == 0)
        return tree;
    close(tree);
    return ab_err_sys(err, saved, "map ids of the destination");
}

/* One try; -1 when it could not begin. */
static int confined_root(const struct ab_confine *c, bool mapped, struct ab_err *err)
{
    int pair[2], fds[AB_WIRE_FDS], nfds = 0;
    uint8_t byte[16];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return ab_err_sys(err, errno, "make a socket");
    pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, 0);
    if (pid == 0) {
        close(pair[0]);
        _exit(await_ids(c, pair[1]));
    }
    if (pid < 0)
        ab_err_sys(err, errno, "start a process");
    close(pair[1]);
    bool began = pid > 0 && ab_wire_recv(pair[0], byte, fds, &nfds, 0) == 1;
    int tree = began ? make_tree(c, pid, mapped, err) : -1;
    if (tree >= 0) {
        ab_wire_send(pair[0], (const uint8_t *)"t", 1, &tree, 1, 0);
        close(tree);
    }
    close(pair[0]);
    int status = pid > 0 ? status_of(pid) : -1;
    return pid < 0 || (began && tree < 0) ? -1 : status;
}

int ab_confined(const struct ab_confine *c, struct ab_err *err)
{
    fflush(NULL);
    if (!c->mapped)
        return confined_user(c, err);
    if (c->prepare && c->prepare(c->arg, err) < 0)
        return -1;
    int status = confined_root(c, true, err);
    return status < 0 ? confined_root(c, false, err) : status;
}
