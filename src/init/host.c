/* host.c - what is prepared once: rights, mount namespaces, uid ranges. */
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "init/init.h"
#include "init/sys.h"

int sys_write_file(int dir, const char *path, const char *text)
{
    int fd = openat(dir, path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = write(fd, text, strlen(text));
    int saved = errno;
    close(fd);
    errno = saved;
    return n < 0 ? -1 : 0;
}

/* True when every user id of the machine is ours, as for root outside of containers. */
static bool all_ids_mapped(void)
{
    FILE *f = fopen("/proc/self/uid_map", "re");
    if (!f)
        return false;
    unsigned inside = 1, outside = 1, count = 0;
    bool all = fscanf(f, "%u %u %u", &inside, &outside, &count) == 3 && inside == 0 &&
               outside == 0 && count == UINT32_MAX;
    fclose(f);
    return all;
}

static bool has_cap(int cap)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    return syscall(SYS_capget, &head, data) == 0 && (data[0].effective & 1u << cap);
}

/* Root of a container may have every id and yet no right to mount: then it goes the way
 * of others. */
static bool may_administer(void)
{
    return geteuid() == 0 && has_cap(CAP_SYS_ADMIN);
}

/* Half of the several ids may have been mapped before the other half was refused. */
static int map_if_empty(const char *path, const char *map)
{
    char text[8];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
    sys_close(&fd);
    if (n != 0)
        return n < 0 ? -1 : 0;
    if (strstr(path, "gid_map") &&
        sys_write_file(AT_FDCWD, "/proc/self/setgroups", "deny") < 0)
        return -1;
    return sys_write_file(AT_FDCWD, path, map);
}

/* Root inside must never be root of the machine: /proc/sys belongs to that one, whatever
 * its capabilities. Who is root without the right to administer becomes somebody else
 * first. */
static int leave_root(void)
{
    static const uid_t others[] = {AB_UID_BASE, 65534};
    if (geteuid() != 0)
        return 0;
    ab_at("give up being root");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (setgroups(0, NULL) == 0 && setresgid(others[i], others[i], others[i]) == 0 &&
            setresuid(others[i], others[i], others[i]) == 0)
            return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* our own /proc files stay ours */
    return -1;
}

/* An ordinary user becomes root of a namespace that holds only himself. */
static int enter_own_userns(struct zygote *z)
{
    char map[64];
    uid_t uid = geteuid();
    gid_t gid = getegid();
    z->uid_first = uid;
    z->uid_rest = 0;
    z->uid_count = 1;
    struct ab_ranges ranges;
    bool several = ab_ranges_ask(&ranges) > 0;
    int rc = ab_at("make a user namespace") ? unshare(CLONE_NEWUSER) : -1;
    int saved = errno;
    if (several && ab_ranges_wait(&ranges, rc == 0) == 0) {
        z->uid_rest = ranges.first;
        z->uid_count = ranges.count + 1;
        z->self_userns = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
        return 0;
    }
    errno = saved;
    if (rc < 0)
        return -1;
    ab_at("map our own user id");
    snprintf(map, sizeof map, "0 %u 1", uid);
    if (map_if_empty("/proc/self/uid_map", map) < 0)
        return -1;
    snprintf(map, sizeof map, "0 %u 1", gid);
    if (map_if_empty("/proc/self/gid_map", map) < 0)
        return -1;
    z->self_userns = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
    return 0;
}

int ab_host_own_ns(const struct zygote *z, const char *kind)
{
    char path[32];
    snprintf(path, sizeof path, "self/ns/%s", kind);
    return openat(z->proc, path, O_RDONLY | O_CLOEXEC);
}

int ab_host_empty_tmpfs(const char *size, unsigned attr)
{
    int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
    if (fs < 0)
        return -1;
    int tree = -1;
    if (fsconfig(fs, FSCONFIG_SET_STRING, "size", size, 0) == 0 &&
        fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0755", 0) == 0 &&
        fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
        tree = fsmount(fs, FSMOUNT_CLOEXEC, attr);
    close(fs);
    return tree;
}

static int enter_host_ns(struct zygote *z)
{
    if (ab_at("enter the host's mounts") && setns(z->host_ns, CLONE_NEWNS) < 0)
        return -1;
    return 0;
}

static int leave_host_ns(struct zygote *z)
{
    int saved = errno;
    if (setns(z->lean_ns, CLONE_NEWNS) < 0 || chdir("/") < 0)
        return -1;
    errno = saved;
    return 0;
}

static const struct {
    const char *name;
    unsigned major, minor;
} nodes[] = {{"null", 1, 3},   {"zero", 1, 5},    {"full", 1, 7},
             {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}};

#define NODE_COUNT (sizeof nodes / sizeof *nodes)

static int dev_links(int tree)
{
    static const char *const links[][2] = {{"/proc/self/fd", "fd"},
                                           {"/proc/self/fd/0", "stdin"},
                                           {"/proc/self/fd/1", "stdout"},
                                           {"/proc/self/fd/2", "stderr"},
                                           {"pts/ptmx", "ptmx"}};
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        if (symlinkat(links[i][0], tree, links[i][1]) < 0)
            return -1;
    return mkdirat(tree, "pts", 0755) < 0 || mkdirat(tree, "shm", 0755) < 0 ? -1 : 0;
}

static int set_read_only(int tree)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC};
    return mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr);
}

static int make_nodes(int tree)
{
    umask(0);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < NODE_COUNT; i++)
        rc = mknodat(tree, nodes[i].name, S_IFCHR | 0666,
                     makedev(nodes[i].major, nodes[i].minor));
    umask(022);
    return rc;
}

int ab_host_new_dev(uint32_t uid)
{
    int tree = ab_host_empty_tmpfs("64k", MOUNT_ATTR_NOSUID);
    ab_at("prepare /dev");
    if (tree >= 0 && (dev_links(tree) < 0 || make_nodes(tree) < 0 ||
                      (uid && ab_skeleton_own(tree, uid) < 0) || set_read_only(tree) < 0))
        sys_close(&tree);
    return tree;
}

/* The /dev that every sandbox gets a clone of. Device nodes when we may make them;
 * otherwise the host's own, bound one by one and kept at /dev of the lean root, to be
 * cloned as a whole. */
static int make_dev(struct zygote *z)
{
    if (z->root)
        return (z->dev = ab_host_new_dev(0)) < 0 ? -1 : 0;
    int tree = ab_host_empty_tmpfs("64k", MOUNT_ATTR_NOSUID);
    if (ab_at("prepare /dev") && (tree < 0 || dev_links(tree) < 0))
        return -1;
    int bound[NODE_COUNT];
    if (enter_host_ns(z) < 0)
        return -1;
    for (size_t i = 0; i < NODE_COUNT; i++) {
        char path[32];
        snprintf(path, sizeof path, "/dev/%s", nodes[i].name);
        bound[i] = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    }
    if (leave_host_ns(z) < 0 ||
        move_mount(tree, "", AT_FDCWD, "/dev", MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return -1;
    for (size_t i = 0; i < NODE_COUNT; i++) {
        int file = openat(tree, nodes[i].name, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
        if (ab_at("bind a device into /dev") &&
            (file < 0 || bound[i] < 0 || sys_attach(bound[i], file) < 0))
            return -1;
        close(file);
        close(bound[i]);
    }
    int rc = set_read_only(tree);
    close(tree);
    return rc;
}

int ab_host_new_skeleton(struct zygote *z)
{
    int skel = ab_host_empty_tmpfs("16m", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    if (ab_at("prepare the host image") && skel < 0)
        return -1;
    if (enter_host_ns(z) < 0)
        return -1;
    int rc = ab_skeleton_fill(skel);
    if (leave_host_ns(z) < 0 || rc < 0)
        sys_close(&skel);
    return skel;
}

static int make_images(struct zygote *z)
{
    int skel = ab_host_new_skeleton(z);
    if (skel < 0)
        return -1;
    z->old_mounts = z->old_mounts || ab_tree_is_old(skel);
    z->skel = skel;
    return 0;
}

int ab_host_prepare(struct zygote *z)
{
    if (z->ready)
        return 0;
    z->root = may_administer() && all_ids_mapped();
    z->traces = z->root && has_cap(CAP_SYS_PTRACE);
    umask(022);
    if (!z->root && (leave_root() < 0 || enter_own_userns(z) < 0))
        return -1;
    if (ab_at("make a mount namespace") && unshare(CLONE_NEWNS) < 0)
        return -1;
    if (ab_at("detach from the host's mounts") &&
        mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return -1;
    z->proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    z->host_ns = ab_host_own_ns(z, "mnt");
    if (ab_at("open /proc") && (z->proc < 0 || z->host_ns < 0))
        return -1;
    if (ab_lean_enter(z) < 0 || make_dev(z) < 0)
        return -1;
    if (ab_net_rest(z) < 0)
        return -1;
    z->ready = true;
    return 0;
}

/* A process that holds a user namespace with the slot's mapping while we open it. */
static int carrier_userns(struct zygote *z, const struct slot *s)
{
    int userns = -1;
    int pidfd = -1;
    struct clone_args args = {.flags = CLONE_NEWUSER | CLONE_PIDFD | CLONE_FILES,
                              .pidfd = (uintptr_t)&pidfd,
                              .exit_signal = SIGCHLD};
    pid_t us = getpid(), pid = (pid_t)sys_clone3(&args);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (getppid() == us) /* else we were killed before it could say so */
            pause();
        _exit(1);
    }
    if (pid < 0)
        return -1;
    char path[32];
    snprintf(path, sizeof path, "%d/ns/user", pid);
    if (ab_host_map_ids(z, pid, s) == 0)
        userns = openat(z->proc, path, O_RDONLY | O_CLOEXEC);
    int saved = errno;
    sys_pidfd_kill(pidfd, SIGKILL);
    waitpid(pid, NULL, 0);
    close(pidfd);
    errno = saved;
    return userns;
}

int ab_host_idmap(int tree, int userns)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP,
                              .userns_fd = (uint64_t)userns};
    return mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr);
}

int ab_host_mapped_clone(int tree, int userns)
{
    int copy = open_tree(tree, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
    if (copy >= 0 && ab_host_idmap(copy, userns) < 0)
        sys_close(&copy);
    return copy;
}

/* A tree may be cloned only from the namespace where it is, or was made: /usr from the
 * host's. */
int ab_host_open_image(struct zygote *z, const char *path)
{
    if (enter_host_ns(z) < 0)
        return -1;
    ab_at("open the image");
    int tree = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    int saved = errno;
    if (leave_host_ns(z) < 0)
        sys_close(&tree);
    errno = saved;
    return tree;
}

/* The host's /usr for one uid range; where its file system cannot map ids, as it is. */
static int map_usr(struct zygote *z, struct slot *s)
{
    s->usr = ab_host_open_image(z, "/usr");
    if (s->usr < 0)
        return -1;
    if (z->root && !(z->facts & AB_WIRE_USR_UNMAPPED) &&
        ab_host_idmap(s->usr, s->userns) < 0)
        z->facts |= AB_WIRE_USR_UNMAPPED;
    return 0;
}

static int fill_slot(struct zygote *z, struct slot *s)
{
    if (map_usr(z, s) < 0)
        return -1;
    if (z->old_mounts)
        return ab_tree_prepare_old(z, s);
    if (!z->root) {
        s->skel = z->skel;
        return 0;
    }
    ab_at("map the host image's user ids");
    s->skel = ab_host_mapped_clone(z->skel, s->userns);
    s->dev = ab_host_mapped_clone(z->dev, s->userns);
    return s->skel < 0 || s->dev < 0 ? -1 : 0;
}

static void keep_trees(const struct zygote *z, struct slot *s)
{
    s->usr = ab_keep_fd(s->usr);
    s->dev = ab_keep_fd(s->dev);
    if (s->skel != z->skel)
        s->skel = ab_keep_fd(s->skel);
}

struct slot *ab_host_slot(struct zygote *z, uint32_t wanted)
{
    if (z->skel < 0 && make_images(z) < 0)
        return NULL;
    struct slot *s = &z->slots[z->root ? wanted % AB_SLOTS : 0];
    bool any = z->root && wanted >= AB_SLOTS;
    for (int i = 1; any && i < AB_SLOTS && s->refs > 0; i++)
        s = &z->slots[(wanted + (uint32_t)i) % AB_SLOTS];
    if (s->skel >= 0)
        return s;
    if (z->root && s->userns < 0 && ab_at("make a range of user ids") &&
        (s->userns = ab_keep_fd(carrier_userns(z, s))) < 0)
        return NULL;
    if (fill_slot(z, s) == 0) {
        keep_trees(z, s);
        return s;
    }
    int saved = errno;
    sys_close(&s->usr);
    if (z->root)
        sys_close(&s->skel);
    s->skel = -1;
    sys_close(&s->dev);
    errno = saved;
    return NULL;
}

/* The id, as we see it, of a user inside. */
uint32_t ab_host_uid(const struct zygote *z, const struct slot *s, uint32_t inside)
{
    return z->root ? AB_UID_BASE + (uint32_t)(s - z->slots) * AB_UID_RANGE + inside
                   : inside;
}

int ab_host_map_ids(struct zygote *z, pid_t pid, const struct slot *s)
{
    char path[32], map[64];
    uint32_t first = ab_host_uid(z, s, 0);
    uint32_t count = z->root ? AB_UID_RANGE : z->uid_count;
    /* Each line must lie within one line of our own map. */
    if (z->root || count == 1)
        snprintf(map, sizeof map, "0 %u %u", first, count);
    else
        snprintf(map, sizeof map, "0 0 1\n1 1 %u", count - 1);
    snprintf(path, sizeof path, "%d/uid_map", pid);
    if (ab_at("map the user ids") && sys_write_file(z->proc, path, map) < 0)
        return -1;
    snprintf(path, sizeof path, "%d/gid_map", pid);
    return sys_write_file(z->proc, path, map);
}
