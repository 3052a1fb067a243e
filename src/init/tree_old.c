/* tree_old.c - the file system of one sandbox on kernels before 6.15, where a mount can
 * be cloned, mounted upon or be part of an overlay only while it is attached: in a
 * namespace of our own, see store.c.
 *
 * Before 6.6 tmpfs keeps no attributes in the name space of users, which the overlay of
 * an ordinary user needs to remember that a directory was replaced. There the root is a
 * copy, of the skeleton or of what was frozen; only /usr is an overlay, which an ordinary
 * user could not change anyway.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

#include "init/init.h"
#include "init/sys.h"

#define MOUNT_ATTRS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define CLONE       (OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)
#define OPTION_MAX  256 /* of the kernel */

bool ab_tree_is_old(int detached)
{
    int copy = open_tree(detached, "", CLONE | AT_EMPTY_PATH);
    bool old = copy < 0;
    sys_close(&copy);
    return old;
}

/* Asked of the skeleton, through a directory that can be opened for it. */
static bool keeps_user_xattr(int tree)
{
    int fd = openat(tree, "tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool keeps = fd >= 0 && fsetxattr(fd, "user.overlay.probe", "y", 1, 0) == 0;
    if (keeps)
        fremovexattr(fd, "user.overlay.probe");
    sys_close(&fd);
    return keeps;
}

static int attach(const char *kind, const struct zygote *z, const struct slot *s,
                  int tree)
{
    char path[AB_STORE_PATH];
    snprintf(path, sizeof path, "/%s%d", kind, (int)(s - z->slots));
    return tree < 0 ? -1 : ab_store_attach(tree, path);
}

/* The skeleton with the owners of one uid range: by an idmapped clone, or where tmpfs
 * refuses that, by writing it again. */
static int skeleton_for(struct zygote *z, const struct slot *s)
{
    int tree = -1;
    if (!(z->facts & AB_WIRE_SKEL_COPIED)) {
        if (ab_store_enter(z) < 0)
            return -1;
        tree = ab_host_mapped_clone(z->skel, s->userns);
        if (ab_store_leave(z) < 0)
            return -1;
        if (tree >= 0)
            return tree;
        z->facts |= AB_WIRE_SKEL_COPIED;
    }
    tree = ab_host_new_skeleton(z);
    if (tree >= 0 && ab_at("give the host image its owner") &&
        ab_skeleton_own(tree, ab_host_uid(z, s, 0)) < 0)
        sys_close(&tree);
    return tree;
}

int ab_tree_prepare_old(struct zygote *z, struct slot *s)
{
    z->facts |= AB_WIRE_OLD_MOUNTS;
    if (z->root && z->store_ns < 0) { /* the first time */
        if (ab_store_enter(z) < 0 || ab_store_attach(z->skel, "/k") < 0 ||
            ab_store_leave(z) < 0)
            return -1;
    }
    if (z->root) {
        s->skel = skeleton_for(z, s);
        s->dev = ab_host_new_dev(ab_host_uid(z, s, 0));
        if (s->skel < 0 || s->dev < 0)
            return -1;
    } else {
        s->skel = z->skel;
        if (!keeps_user_xattr(z->skel))
            z->facts |= AB_WIRE_NO_XATTR;
    }
    if (ab_store_enter(z) < 0)
        return -1;
    int rc = attach("s", z, s, s->usr) < 0 || attach("k", z, s, s->skel) < 0 ||
                     (z->root && attach("d", z, s, s->dev) < 0)
                 ? -1
                 : 0;
    return ab_store_leave(z) < 0 ? -1 : rc;
}

/* The layers' directories called up and the image, as the kernel wants them. */
static int lower_dirs(const struct box *b, const char *up, const char *image,
                      char out[OPTION_MAX])
{
    size_t len = 0;
    char path[AB_STORE_PATH];
    for (uint32_t i = 0; i < b->spec.layers; i++) {
        int n = ab_store_find(b->layers[i]);
        if (n < 0)
            return -1;
        ab_store_path(n, path);
        /* Without the slash: we stand in the root of the namespace. */
        len += (size_t)snprintf(out + len, OPTION_MAX - len, "%s/%s:", path + 1, up);
        if (len >= OPTION_MAX)
            break;
    }
    if (len < OPTION_MAX)
        len += (size_t)snprintf(out + len, OPTION_MAX - len, "%s", image);
    errno = E2BIG;
    return len < OPTION_MAX ? 0 : -1;
}

static int overlay(const struct zygote *z, const struct box *b, const char *image,
                   const char *up, const char *work)
{
    char lower[OPTION_MAX], upper[AB_STORE_PATH + 4], scratch[AB_STORE_PATH + 4];
    snprintf(upper, sizeof upper, "u%d/%s", b->upper_number, up);
    snprintf(scratch, sizeof scratch, "u%d/%s", b->upper_number, work);
    if (lower_dirs(b, up, image, lower) < 0)
        return -1;
    int tree = -1, fs = fsopen("overlay", FSOPEN_CLOEXEC);
    if (fs < 0)
        return -1;
    if (fsconfig(fs, FSCONFIG_SET_STRING, "lowerdir", lower, 0) == 0 &&
        fsconfig(fs, FSCONFIG_SET_STRING, "upperdir", upper, 0) == 0 &&
        fsconfig(fs, FSCONFIG_SET_STRING, "workdir", scratch, 0) == 0 &&
        (z->root || fsconfig(fs, FSCONFIG_SET_FLAG, "userxattr", NULL, 0) == 0) &&
        fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
        tree = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTRS);
    int saved = errno;
    close(fs);
    errno = saved;
    return tree;
}

/* The root without an overlay: a copy, in the quota file system itself. */
static int copied_root(const struct zygote *z, const struct box *b)
{
    char path[AB_STORE_PATH + 4];
    snprintf(path, sizeof path, "u%d/u", b->upper_number);
    int tree = open_tree(AT_FDCWD, path, CLONE);
    int from = b->spec.layers
                   ? openat(b->layers[0], "u", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                   : openat(b->slot->skel, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int to = tree < 0 ? -1 : openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = from < 0 || to < 0 ? -1 : ab_copy_tree(z, from, to);
    int saved = errno;
    sys_close(&from);
    sys_close(&to);
    if (rc < 0)
        sys_close(&tree);
    errno = saved;
    return tree;
}

/* What is copied does not count as the sandbox's own. */
static int widen_quota(struct box *b)
{
    struct statvfs v;
    if (fstatvfs(b->spec.layers ? b->layers[0] : b->slot->skel, &v) < 0)
        return -1;
    b->spec.disk_bytes += (uint64_t)(v.f_blocks - v.f_bfree) * v.f_frsize;
    b->spec.inodes += (uint64_t)(v.f_files - v.f_ffree);
    return 0;
}

static int attach_usr(const struct zygote *z, const struct box *b, int root)
{
    char path[AB_STORE_PATH];
    snprintf(path, sizeof path, "s%d", (int)(b->slot - z->slots));
    int usr = overlay(z, b, path, "v", "x");
    int at = sys_open_dir(root, "usr");
    int rc = usr < 0 || at < 0 || sys_attach(usr, at) < 0 ? -1 : 0;
    int saved = errno;
    sys_close(&usr);
    sys_close(&at);
    errno = saved;
    return rc;
}

static int put_together(struct zygote *z, struct box *b, int image, uint32_t uid)
{
    char path[AB_STORE_PATH];
    snprintf(path, sizeof path, image < 0 ? "k%d" : "i", (int)(b->slot - z->slots));
    ab_at("overlay the image");
    if (image >= 0 && ab_store_attach(image, "/i") < 0)
        return -1;
    int root = image < 0 && (z->facts & AB_WIRE_NO_XATTR) ? copied_root(z, b)
                                                          : overlay(z, b, path, "u", "w");
    int rc = root < 0 ? -1 : ab_store_attach(root, "/m");
    if (rc == 0 && image < 0 && ab_at("overlay the host's /usr"))
        rc = attach_usr(z, b, root);
    if (rc == 0 && image >= 0 && ab_at("complete the image"))
        rc = ab_tree_complete(root, uid, b->unmapped);
    if (rc == 0 && ab_at("clone the file tree")) {
        b->tree = open_tree(root, "", CLONE | AT_EMPTY_PATH | AT_RECURSIVE);
        b->files = open_tree(root, "", CLONE | AT_EMPTY_PATH | AT_RECURSIVE);
        if (z->root)
            b->dev = open_tree(b->slot->dev, "", CLONE | AT_EMPTY_PATH);
        rc = b->tree < 0 || b->files < 0 || (z->root && b->dev < 0) ? -1 : 0;
    }
    int saved = errno;
    umount2("/m", MNT_DETACH);
    umount2("/i", MNT_DETACH);
    sys_close(&root);
    errno = saved;
    return rc;
}

int ab_tree_build_old(struct zygote *z, struct box *b)
{
    uint32_t uid = ab_host_uid(z, b->slot, 0);
    int image = -1;
    ab_store_sweep(z);
    if (!(b->spec.flags & AB_WIRE_HOST_IMAGE) && (image = ab_tree_image(z, b)) < 0)
        return -1;
    int rc = ab_store_enter(z);
    if (rc == 0 && ab_at("make the file system of limited size")) {
        if (image < 0 && (z->facts & AB_WIRE_NO_XATTR))
            rc = widen_quota(b);
        b->upper_number =
            rc < 0 || ab_tree_upper(b, uid) < 0 ? -1 : ab_store_add(b->upper);
        rc = b->upper_number < 0 ? -1 : put_together(z, b, image, uid);
        if (ab_store_leave(z) < 0)
            rc = -1;
    }
    int saved = errno;
    sys_close(&image);
    errno = saved;
    return rc;
}
