/* tree_old.c - the file system of one sandbox on kernels before 6.15, where a mount can be cloned, mounted
 * upon or be part of an overlay only while it is attached. So everything is attached in our own, lean
 * mount namespace for a moment:
 *
 *     /old/skel /old/usr /old/dev   for good, mapped to the one uid range that is used here
 *     /old/up /old/image /mnt       while one sandbox is being made
 *
 * What is dear then is a frozen layer, which would have to stay attached: there are none here.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "init/init.h"
#include "init/sys.h"

#define MOUNT_ATTRS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define CLONE       (OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)

bool ab_tree_is_old(int detached)
{
    int copy = open_tree(detached, "", CLONE | AT_EMPTY_PATH);
    bool old = copy < 0;
    sys_close(&copy);
    return old;
}

static int attach(int tree, const char *at)
{
    return move_mount(tree, "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH);
}

/* Owners by an idmapped mount, or on kernels whose tmpfs cannot do that, by changing them. */
static int map_owners(struct zygote *z, const struct slot *s, int tree)
{
    if (!z->root || ab_host_idmap(tree, s->userns) == 0)
        return 0;
    struct mount_attr writable = {.attr_clr = MOUNT_ATTR_RDONLY}, sealed = {.attr_set = MOUNT_ATTR_RDONLY};
    mount_setattr(tree, "", AT_EMPTY_PATH, &writable, sizeof writable);
    int rc = ab_skeleton_own(tree, ab_host_uid(z, s, 0));
    if (tree == z->dev)
        mount_setattr(tree, "", AT_EMPTY_PATH, &sealed, sizeof sealed);
    return rc;
}

int ab_tree_prepare_old(struct zygote *z, struct slot *s)
{
    static const char *const dirs[] = {"/old/skel", "/old/usr", "/old/dev", "/old/up", "/old/image"};
    ab_at("prepare the old way of mounting");
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
        if (mkdir(dirs[i], 0755) < 0 && errno != EEXIST)
            return -1;
    s->usr = ab_host_open_image(z, "/usr");
    if (s->usr < 0)
        return -1;
    ab_at("map the image's user ids");
    if ((z->root && ab_host_idmap(s->usr, s->userns) < 0) || map_owners(z, s, z->skel) < 0 ||
        (z->root && map_owners(z, s, z->dev) < 0))
        return -1;
    if (attach(s->usr, "/old/usr") < 0 || attach(z->skel, "/old/skel") < 0 ||
        (z->root && attach(z->dev, "/old/dev") < 0))
        return -1;
    s->skel = z->skel;
    return 0;
}

static int overlay(struct zygote *z, const char *lower, const char *up, const char *work)
{
    int tree = -1, fs = fsopen("overlay", FSOPEN_CLOEXEC);
    if (fs < 0)
        return -1;
    if (fsconfig(fs, FSCONFIG_SET_STRING, "lowerdir", lower, 0) == 0 &&
        fsconfig(fs, FSCONFIG_SET_STRING, "upperdir", up, 0) == 0 &&
        fsconfig(fs, FSCONFIG_SET_STRING, "workdir", work, 0) == 0 &&
        (z->root || fsconfig(fs, FSCONFIG_SET_FLAG, "userxattr", NULL, 0) == 0) &&
        fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
        tree = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTRS);
    int saved = errno;
    close(fs);
    errno = saved;
    return tree;
}

static int attach_overlay(struct zygote *z, const char *lower, const char *up, const char *work, const char *at)
{
    int tree = overlay(z, lower, up, work);
    int rc = tree < 0 ? -1 : attach(tree, at);
    int saved = errno;
    sys_close(&tree);
    errno = saved;
    return rc;
}

static int attach_image(struct zygote *z, struct box *b)
{
    int tree = ab_host_open_image(z, b->spec.image);
    int rc = tree < 0 || (z->root && ab_host_idmap(tree, b->slot->userns) < 0) ? -1 : attach(tree, "/old/image");
    int saved = errno;
    sys_close(&tree);
    errno = saved;
    return rc;
}

static int build(struct zygote *z, struct box *b, bool host, uint32_t uid)
{
    ab_at("make the file system of limited size");
    if (ab_tree_upper(b, uid) < 0 || attach(b->upper, "/old/up") < 0)
        return -1;
    if (!host && attach_image(z, b) < 0)
        return -1;
    ab_at("overlay the image");
    if (attach_overlay(z, host ? "/old/skel" : "/old/image", "/old/up/u", "/old/up/w", "/mnt") < 0)
        return -1;
    if (host && ab_at("overlay the host's /usr") &&
        attach_overlay(z, "/old/usr", "/old/up/v", "/old/up/x", "/mnt/usr") < 0)
        return -1;
    ab_at("clone the file tree");
    b->tree = open_tree(AT_FDCWD, "/mnt", CLONE | AT_RECURSIVE);
    b->files = open_tree(AT_FDCWD, "/mnt", CLONE | AT_RECURSIVE);
    if (z->root)
        b->dev = open_tree(AT_FDCWD, "/old/dev", CLONE);
    /* The mount behind this descriptor is about to end; its file system stays with the overlay. */
    int upper = open_tree(AT_FDCWD, "/old/up", CLONE);
    sys_close(&b->upper);
    b->upper = upper;
    if (b->tree < 0 || b->files < 0 || b->upper < 0 || (z->root && b->dev < 0))
        return -1;
    return !host && ab_at("complete the image") ? ab_tree_complete(b->tree, uid) : 0;
}

int ab_tree_build_old(struct zygote *z, struct box *b)
{
    bool host = b->spec.flags & AB_WIRE_HOST_IMAGE;
    if (b->spec.layers > 0 && ab_at("stack layers: that needs Linux 6.15")) {
        errno = EOPNOTSUPP;
        return -1;
    }
    int rc = build(z, b, host, ab_host_uid(z, b->slot, 0));
    int saved = errno;
    umount2("/mnt", MNT_DETACH);
    umount2("/old/up", MNT_DETACH);
    if (!host)
        umount2("/old/image", MNT_DETACH);
    errno = saved;
    return rc;
}
