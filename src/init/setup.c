/* setup.c - what a new pid 1 does before it lets anything run. The order matters:
 *
 *   1 wait for the uid maps      5 new root: /dev, /proc, chroot  9 capabilities
 *   2 cgroups of version 1       6 limits that a namespace counts 10 no new privileges
 *   3 cgroup namespace           7 resource limits                11 filter
 *   4 ids, host name             8 close what came from the zygote 12 READY
 *
 * 2 before 3, or /proc/self/cgroup would show the host's names. /proc before chroot,
 * since the kernel wants to see a complete one to allow a new one. 8 before 12: nothing
 * of the zygote may be reachable when the first command runs.
 */
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "init/init.h"
#include "init/sys.h"
#include "seccomp_filter.h"

#define SOCK_FD 3
#define LAST_FD SOCK_FD

#define WORKSPACE_MAX 1024 /* as the engine has checked */

/* AddressSanitizer maps terabytes for itself: a limit would end pid 1. */
#ifdef __SANITIZE_ADDRESS__
#    define LIMITS_OWN_DATA false
#else
#    define LIMITS_OWN_DATA true
#endif

/* Like every number here a table of policy: what root inside keeps. */
static const int kept_caps[] = {
    CAP_CHOWN,   CAP_DAC_OVERRIDE, CAP_FOWNER,  CAP_FSETID,           CAP_KILL,
    CAP_SETGID,  CAP_SETUID,       CAP_SETPCAP, CAP_NET_BIND_SERVICE, CAP_SYS_CHROOT,
    CAP_SETFCAP,
};

static const struct {
    const char *file, *value;
} namespace_limits[] = {
    {"user/max_inotify_instances", "64"},
    {"user/max_inotify_watches", "32768"},
    {"user/max_user_namespaces", "0"},
};

static int join_v1(const struct box *b)
{
    for (uint32_t i = 0; i < b->spec.v1; i++)
        if (write(b->v1[i], "0\n", 2) != 2)
            return -1;
    return 0;
}

static int become_root(void)
{
    if (syscall(SYS_setgroups, 0, NULL) < 0 && errno != EPERM)
        return -1; /* EPERM: an ordinary user's namespace has no groups to drop */
    return syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0 ? -1
                                                                                      : 0;
}

static int mount_at(const char *type, const char *target, const char *const (*options)[2],
                    size_t n, unsigned attr)
{
    int fs = fsopen(type, FSOPEN_CLOEXEC);
    int rc = fs < 0 ? -1 : 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = options[i][1]
                 ? fsconfig(fs, FSCONFIG_SET_STRING, options[i][0], options[i][1], 0)
                 : fsconfig(fs, FSCONFIG_SET_FLAG, options[i][0], NULL, 0);
    if (rc == 0)
        rc = fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
    int tree = rc < 0 ? -1 : fsmount(fs, FSMOUNT_CLOEXEC, attr);
    int at = tree < 0 ? -1 : sys_open_dir(AT_FDCWD, target);
    rc = at < 0 ? -1 : sys_attach(tree, at);
    int saved = errno;
    sys_close(&at);
    sys_close(&tree);
    sys_close(&fs);
    errno = saved;
    return rc;
}

static int attach_dev(const struct box *b)
{
    int tree = b->dev >= 0
                   ? dup(b->dev)
                   : open_tree(AT_FDCWD, "/dev",
                               OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    int at = sys_open_dir(AT_FDCWD, "dev");
    int rc = tree < 0 || at < 0 ? -1 : sys_attach(tree, at);
    int saved = errno;
    sys_close(&tree);
    sys_close(&at);
    errno = saved;
    return rc;
}

static int fill_root(const struct box *b)
{
    char shm[32];
    snprintf(shm, sizeof shm, "%llu", (unsigned long long)b->spec.shm_bytes);
    const char *const pts_options[][2] = {
        {"newinstance", NULL}, {"ptmxmode", "0666"}, {"mode", "0620"}, {"max", "64"}};
    const char *const shm_options[][2] = {
        {"size", shm}, {"nr_inodes", "4096"}, {"mode", "1777"}};
    if (ab_at("attach /dev") && attach_dev(b) < 0)
        return -1;
    if (ab_at("mount /dev/pts") && mount_at("devpts", "dev/pts", pts_options, 4,
                                            MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC) < 0)
        return -1;
    if (ab_at("mount /dev/shm") && mount_at("tmpfs", "dev/shm", shm_options, 3,
                                            MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV) < 0)
        return -1;
    if (ab_at("mount /proc") &&
        mount_at("proc", "proc", NULL, 0,
                 MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC) < 0)
        return -1;
    return 0;
}

static int change_root(const struct box *b)
{
    if (ab_at("attach the root") &&
        (move_mount(b->tree, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0 ||
         fchdir(b->tree) < 0))
        return -1;
    if (fill_root(b) < 0)
        return -1;
    return ab_at("change the root") ? chroot(".") : -1;
}

/* The workspace may be any directory of the image; links in the way resolve inside. */
static int make_workspace(const char *path)
{
    char part[WORKSPACE_MAX + 1];
    if (strlen(path) >= sizeof part) {
        errno = ENAMETOOLONG;
        return -1;
    }
    for (const char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
        size_t len = slash ? (size_t)(slash - path) : strlen(path);
        snprintf(part, sizeof part, "%.*s", (int)len, path);
        if (mkdir(part, 0755) < 0 && errno != EEXIST)
            return -1;
        if (!slash)
            return 0;
    }
}

static int limit(int what, uint64_t value)
{
    struct rlimit now, want = {value, value};
    if (getrlimit(what, &now) < 0)
        return -1;
    if (now.rlim_max < want.rlim_max)
        want.rlim_cur = want.rlim_max = now.rlim_max;
    return setrlimit(what, &want);
}

static int set_limits(const struct ab_wire_create *spec)
{
    int proc = open("/proc/sys", O_PATH | O_DIRECTORY | O_CLOEXEC);
    ab_at("limit what the user namespace counts");
    for (size_t i = 0; i < sizeof namespace_limits / sizeof *namespace_limits; i++)
        if (sys_write_file(proc, namespace_limits[i].file, namespace_limits[i].value) < 0)
            return -1;
    close(proc);
    ab_at("set the resource limits");
    /* One byte of core, not none: with none a core_pattern that is a pipe still starts
     * its program. */
    if (limit(RLIMIT_CORE, 1) < 0 || limit(RLIMIT_NOFILE, spec->nofile) < 0 ||
        limit(RLIMIT_MEMLOCK, 8 << 20) < 0 || limit(RLIMIT_SIGPENDING, 4096) < 0 ||
        limit(RLIMIT_MSGQUEUE, 1 << 20) < 0 || limit(RLIMIT_RTPRIO, 0) < 0)
        return -1;
    if (!(spec->flags & AB_WIRE_RLIMITS))
        return 0;
    if (spec->pids && limit(RLIMIT_NPROC, spec->pids) < 0)
        return -1;
    return LIMITS_OWN_DATA && spec->memory_bytes ? limit(RLIMIT_DATA, spec->memory_bytes)
                                                 : 0;
}

static bool keeps(int cap)
{
    for (size_t i = 0; i < sizeof kept_caps / sizeof *kept_caps; i++)
        if (kept_caps[i] == cap)
            return true;
    return false;
}

static int drop_caps(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    for (int cap = 0; cap < 64; cap++) {
        if (keeps(cap)) {
            data[cap / 32].permitted |= 1u << (cap % 32);
            data[cap / 32].effective |= 1u << (cap % 32);
        } else if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
            if (errno != EINVAL)
                return -1;
            break; /* beyond the last that this kernel has */
        }
    }
    return (int)syscall(SYS_capset, &head, data);
}

static int load_filter(void)
{
    struct sock_fprog prog = {
        .len = sizeof ab_seccomp_filter / sizeof *ab_seccomp_filter,
        .filter = (struct sock_filter *)(uintptr_t)ab_seccomp_filter,
    };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                        SECCOMP_FILTER_FLAG_SPEC_ALLOW, &prog);
}

static int only_socket(int sock)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return -1;
    for (int fd = 0; fd < 3; fd++)
        if (dup2(null, fd) < 0)
            return -1;
    if (sock != SOCK_FD && dup3(sock, SOCK_FD, O_CLOEXEC) < 0)
        return -1;
    return close_range(LAST_FD + 1, ~0u, 0);
}

static int set_up(const struct zygote *z, const struct box *b)
{
    uint64_t go;
    errno = EPIPE; /* the zygote died */
    if (ab_at("wait for the user ids") && read(z->go[0], &go, sizeof go) != sizeof go)
        return -1;
    if (ab_at("join the cgroups") && join_v1(b) < 0)
        return -1;
    if (ab_at("make a cgroup namespace") && unshare(CLONE_NEWCGROUP) < 0)
        return -1;
    if (ab_at("become root inside") && become_root() < 0)
        return -1;
    if (ab_at("set the host name") &&
        sethostname(b->spec.hostname, strlen(b->spec.hostname)) < 0)
        return -1;
    umask(022);
    if (change_root(b) < 0)
        return -1;
    return ab_at("make the workspace") && make_workspace(b->spec.workspace) < 0 ? -1 : 0;
}

void ab_setup(struct zygote *z, struct box *b)
{
    int sock = b->sock;
    prctl(PR_SET_NAME, "init");
    if (set_up(z, b) == 0 && ab_at("close the zygote's descriptors") &&
        only_socket(sock) == 0) {
        sock = SOCK_FD;
        /* The limit of descriptors only now: the zygote's own may be beyond it. */
        if (set_limits(&b->spec) == 0 && ab_at("drop the capabilities") &&
            drop_caps() == 0 && ab_at("load the filter") && load_filter() == 0 &&
            prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
            ab_pid1(sock);
    }
    uint8_t buf[512];
    struct ab_wire_failed m = {.errnum = errno, .step = ab_step};
    long n = ab_wire_put_failed(buf, sizeof buf, &m);
    if (n > 0)
        ab_wire_send(sock, buf, (size_t)n, NULL, 0, MSG_DONTWAIT);
    _exit(1);
}
