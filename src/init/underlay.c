/* underlay.c - layers below sandboxes that live.
 *
 * A swap ends the writing to an upper file system, so that it can serve others as a
 * layer, and gives its sandbox a new one on top of it. Nobody but pid 1 is alive inside:
 * what had a file open would go on writing to the old one. The kernel does not like an
 * upper file system to be a lower one at the same time, so the old overlay goes first:
 *
 *     /dev and /proc move to a perch ─ pivot there: pid 1's root is the perch
 *       ─ the old overlay is let go, the new one is made ─ all back, and pivot again
 *
 * A view is a tree to compare with. A merger copies layers into one, in a process of its
 * own, since it takes time: a living sandbox's upper file system, or the upper part of a
 * pile that became too high.
 */
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "init/init.h"
#include "init/sys.h"

static void answer(const struct box *b, int rc)
{
    uint8_t buf[512];
    struct ab_wire_failed m = {.errnum = errno, .step = ab_step};
    const int fds[] = {b->upper, b->files};
    long n = rc < 0 ? ab_wire_put_failed(buf, sizeof buf, &m)
                    : ab_wire_put_bare(buf, sizeof buf, AB_WIRE_LAID);
    if (n > 0)
        ab_wire_send(b->sock, buf, (size_t)n, fds,
                     rc < 0         ? 0
                     : b->files < 0 ? 1
                                    : 2,
                     MSG_DONTWAIT);
}

/* ---- swap ---- */

static const char *const kernels[] = {"dev", "proc"};

static int perch_for(struct zygote *z)
{
    if (z->perch < 0) {
        z->perch = ab_host_empty_tmpfs("64k", MOUNT_ATTR_NOSUID);
        for (size_t i = 0; z->perch >= 0 && i < 2; i++)
            if (mkdirat(z->perch, kernels[i], 0755) < 0)
                sys_close(&z->perch);
    }
    return z->perch < 0 ? -1
                        : open_tree(z->perch, "",
                                    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
}

/* In the sandbox's namespace: tree becomes everybody's root, with /dev and /proc of the
 * old one. */
static int change_root(int tree)
{
    int from[2] = {-1, -1}, to[2] = {-1, -1};
    int rc = move_mount(tree, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH);
    for (size_t i = 0; rc == 0 && i < 2; i++) {
        /* Relative: our working directory is still the old root. */
        from[i] = sys_open_dir(AT_FDCWD, kernels[i]);
        to[i] = sys_open_dir(tree, kernels[i]);
        rc = from[i] < 0 || to[i] < 0 ? -1 : sys_attach(from[i], to[i]);
    }
    if (rc == 0 && (fchdir(tree) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
                    umount2(".", MNT_DETACH) < 0 || chdir("/") < 0))
        rc = -1;
    int saved = errno;
    for (size_t i = 0; i < 2; i++) {
        sys_close(&from[i]);
        sys_close(&to[i]);
    }
    errno = saved;
    return rc;
}

/* target: its pidfd, or its mount namespace. */
static int change_root_of(struct zygote *z, int target, int tree)
{
    if (setns(target, CLONE_NEWNS) < 0)
        return -1;
    int rc = change_root(tree), saved = errno;
    if (setns(z->lean_ns, CLONE_NEWNS) < 0 || chdir("/") < 0)
        _exit(1); /* inside a sandbox nothing else may be done */
    errno = saved;
    return rc;
}

static int swap(struct zygote *z, struct box *b)
{
    if (z->old_mounts) {
        errno = EOPNOTSUPP;
        return -1;
    }
    ab_at("prepare the change of the root");
    int perch = perch_for(z);
    if (perch < 0)
        return -1;
    ab_at("leave the old root");
    int rc = change_root_of(z, b->pidfd, perch);
    int saved = errno;
    close(perch);
    errno = saved;
    if (rc == 0)
        rc = ab_tree_build(z, b);
    if (rc == 0 && ab_at("enter the new root"))
        rc = change_root_of(z, b->pidfd, b->tree);
    saved = errno;
    if (rc < 0)
        sys_pidfd_kill(b->pidfd, SIGKILL); /* it has half a root; by the engine too */
    errno = saved;
    return rc;
}

/* ---- merger ---- */

static int merge_dirs(const struct zygote *z, const struct box *b, const char *name)
{
    int to = openat(b->upper, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = to < 0 ? -1 : 0;
    for (uint32_t i = b->spec.layers; rc == 0 && i-- > 0;) { /* the lowest first */
        int from = openat(b->layers[i], name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        rc = from < 0 ? -1 : ab_copy_tree(z, from, to);
        int saved = errno;
        sys_close(&from);
        errno = saved;
    }
    int saved = errno;
    sys_close(&to);
    errno = saved;
    return rc;
}

static int merge(const struct zygote *z, struct box *b)
{
    ab_at("copy the layers");
    if (merge_dirs(z, b, "u") < 0)
        return -1;
    return b->spec.flags & AB_WIRE_HOST_IMAGE ? merge_dirs(z, b, "v") : 0;
}

static int make_upper(struct zygote *z, struct box *b)
{
    ab_at("make the file system of limited size");
    uint32_t uid = ab_host_uid(z, b->slot, 0);
    if (!z->old_mounts)
        return ab_tree_upper(b, uid);
    if (ab_store_enter(z) < 0)
        return -1;
    b->upper_number = ab_tree_upper(b, uid) < 0 ? -1 : ab_store_add(b->upper);
    return ab_store_leave(z) < 0 || b->upper_number < 0 ? -1 : 0;
}

static int start_merger(struct zygote *z, struct box *b)
{
    if (make_upper(z, b) < 0)
        return -1;
    pid_t pid = ab_at("start the copying") ? fork() : -1;
    if (pid != 0)
        return pid < 0 ? -1 : 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    answer(b, merge(z, b));
    _exit(0);
}

void ab_underlay(struct zygote *z, struct box *b)
{
    int rc = ab_at("prepare the zygote") ? ab_host_prepare(z) : -1;
    if (rc == 0)
        rc = (b->slot = ab_host_slot(z, b->spec.slot)) ? 0 : -1;
    bool merger = b->spec.flags & AB_WIRE_MERGE;
    if (rc == 0 && merger)
        rc = start_merger(z, b);
    else if (rc == 0)
        rc = b->spec.flags & AB_WIRE_SWAP ? swap(z, b) : ab_tree_build(z, b);
    if (rc < 0 || !merger)
        answer(b, rc);
    ab_store_end(b->upper_number); /* who stands on it holds it */
}
