/* tree.c - the file system of one sandbox.
 *
 *     tmpfs of limited size          u, w    upper and work directory of the root overlay
 *     (b->upper, kept for freeze)    v, x    the same for /usr, image "host" only
 *
 *     root overlay   u over layers' u over skeleton or image directory
 *       └─ usr       v over layers' v over the host's /usr
 *
 * Two copies of this tree are made: one that the child completes with /proc and /dev, and
 * one that stays as it is for the engine's file functions. Nothing of the kernel can ever
 * appear beneath the second, whatever the sandbox does: paths through /proc/PID/root
 * would lead there.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "init/init.h"
#include "init/sys.h"

#define MOUNT_ATTRS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

static int set(int fs, const char *key, const char *value)
{
    return fsconfig(fs, FSCONFIG_SET_STRING, key, value, 0);
}

static int own_dir(int tree, const char *name, uint32_t uid)
{
    if (mkdirat(tree, name, 0755) < 0)
        return -1;
    return uid ? fchownat(tree, name, uid, uid, AT_SYMLINK_NOFOLLOW) : 0;
}

/* The top of an overlay has the owner and the mode of its upper directory, which should
 * be those that it had in the layer below. */
static int upper_dir(const struct box *b, const char *name, uint32_t uid)
{
    struct stat was;
    if (own_dir(b->upper, name, uid) < 0)
        return -1;
    if (b->spec.layers == 0 || (b->spec.flags & AB_WIRE_MERGE) ||
        fstatat(b->layers[0], name, &was, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    return fchownat(b->upper, name, was.st_uid, was.st_gid, AT_SYMLINK_NOFOLLOW) < 0
               ? -1
               : fchmodat(b->upper, name, was.st_mode & 07777, 0);
}

int ab_tree_upper(struct box *b, uint32_t uid)
{
    char bytes[32], inodes[32];
    snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)b->spec.disk_bytes);
    snprintf(inodes, sizeof inodes, "%llu", (unsigned long long)b->spec.inodes);
    int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
    if (fs < 0)
        return -1;
    if (set(fs, "size", bytes) == 0 && set(fs, "nr_inodes", inodes) == 0 &&
        set(fs, "mode", "0700") == 0 &&
        fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
        b->upper = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTRS);
    close(fs);
    if (b->upper < 0 || upper_dir(b, "u", uid) < 0 || own_dir(b->upper, "w", uid) < 0)
        return -1;
    if (!(b->spec.flags & AB_WIRE_HOST_IMAGE))
        return 0;
    return upper_dir(b, "v", uid) < 0 || own_dir(b->upper, "x", uid) < 0 ? -1 : 0;
}

static int set_dir(int fs, const char *key, int tree, const char *name)
{
    int dir = openat(tree, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -1;
    int rc = fsconfig(fs, FSCONFIG_SET_FD, key, NULL, dir);
    int saved = errno;
    close(dir);
    errno = saved;
    return rc;
}

/* A layer that changed nothing there, as most do with /usr: each that is stacked makes
 * every look-up longer. */
static bool is_bare(int layer, const char *name)
{
    char entries[256];
    int dir = openat(layer, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ssize_t n = dir < 0 ? -1 : getdents64(dir, entries, sizeof entries);
    sys_close(&dir);
    return n == 48; /* "." and ".." take 24 bytes each */
}

/* One overlay, by descriptors: no path is in the mount options, so none shows inside. */
static int make_overlay(struct zygote *z, struct box *b, const char *up, const char *work,
                        int lower)
{
    int fs = fsopen("overlay", FSOPEN_CLOEXEC);
    if (fs < 0)
        return -1;
    int tree = -1, rc = 0;
    for (uint32_t i = 0; rc == 0 && i < b->spec.layers; i++)
        if (!is_bare(b->layers[i], up))
            rc = set_dir(fs, "lowerdir+", b->layers[i], up);
    if (rc == 0 && set_dir(fs, "lowerdir+", lower, ".") == 0 &&
        set_dir(fs, "upperdir", b->upper, up) == 0 &&
        set_dir(fs, "workdir", b->upper, work) == 0 &&
        (z->root || fsconfig(fs, FSCONFIG_SET_FLAG, "userxattr", NULL, 0) == 0) &&
        fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
        tree = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTRS);
    int saved = errno;
    close(fs);
    errno = saved;
    return tree;
}

static int clone_tree(int tree)
{
    return open_tree(tree, "",
                     OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
}

/* An image made by others need not have the directories that we rely on; where ids cannot
 * be mapped, those that root must write to are taken over. */
int ab_tree_complete(int tree, uint32_t uid, bool take)
{
    static const struct {
        const char *name;
        mode_t mode;
        bool taken;
    } needed[] = {{"proc", 0755, false},
                  {"dev", 0755, false},
                  {"tmp", 01777, true},
                  {"root", 0700, true},
                  {"home", 0755, true}};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (own_dir(tree, needed[i].name, uid) == 0) {
            if (fchmodat(tree, needed[i].name, needed[i].mode, 0) < 0)
                return -1;
        } else if (errno != EEXIST) {
            return -1;
        } else if (take && needed[i].taken &&
                   fchownat(tree, needed[i].name, uid, uid, AT_SYMLINK_NOFOLLOW) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Overlays and some network file systems cannot be mapped. Then the files are nobody's
 * inside, as they are for an ordinary user: they can be read and not changed. */
int ab_tree_image(struct zygote *z, struct box *b)
{
    int tree = ab_host_open_image(z, b->spec.image);
    b->unmapped = tree >= 0 && z->root && ab_host_idmap(tree, b->slot->userns) < 0;
    if (b->unmapped)
        z->facts |= AB_WIRE_IMAGE_UNMAPPED;
    return tree;
}

int ab_tree_build(struct zygote *z, struct box *b)
{
    bool host = b->spec.flags & AB_WIRE_HOST_IMAGE;
    uint32_t uid = ab_host_uid(z, b->slot, 0);
    if (z->old_mounts)
        return ab_tree_build_old(z, b);
    int lower = host ? b->slot->skel : ab_tree_image(z, b);
    if (lower < 0)
        return -1;
    int rc = ab_at("make the file system of limited size") ? ab_tree_upper(b, uid) : -1;
    if (rc == 0) {
        ab_at("overlay the image");
        b->tree = make_overlay(z, b, "u", "w", lower);
        rc = b->tree < 0 ? -1 : 0;
    }
    int saved = errno;
    if (!host)
        close(lower);
    errno = saved;
    if (rc < 0)
        return -1;
    if (!host && ab_at("complete the image") &&
        ab_tree_complete(b->tree, uid, b->unmapped) < 0)
        return -1;
    if (host) {
        ab_at("overlay the host's /usr");
        int usr = make_overlay(z, b, "v", "x", b->slot->usr);
        int at = sys_open_dir(b->tree, "usr");
        rc = usr < 0 || at < 0 || sys_attach(usr, at) < 0 ? -1 : 0;
        saved = errno;
        sys_close(&usr);
        sys_close(&at);
        errno = saved;
        if (rc < 0)
            return -1;
    }
    ab_at("clone the file tree");
    b->files = clone_tree(b->tree);
    if (z->root && ab_at("clone /dev"))
        b->dev = clone_tree(b->slot->dev);
    return b->files < 0 || (z->root && b->dev < 0) ? -1 : 0;
}
