/* copy.c - a layer's files, copied into another: for kernels whose tmpfs cannot be the
 * upper side of an overlay, and to make one layer of several.
 *
 * What overlays write stays what it means: a character device 0:0 takes a name of the
 * layers below away, the attribute "opaque" of a directory everything that was in it. A
 * directory in the place of either gets the attribute: where it was made, the upper layer
 * hid what lies below this one too.
 * Hard links become files of their own.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "init/init.h"
#include "init/sys.h"

#define DEPTH_MAX 256
#define CHUNK     (1u << 20)
#define NAMES_MAX 65536
#define VALUE_MAX 65536
#define OPEN_DIR  (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static const char *opaque; /* the attribute */

static int copy_dir(int from, int to, int depth);

static int keep_errno(int rc, int *a, int *b)
{
    int saved = errno;
    sys_close(a);
    sys_close(b);
    errno = saved;
    return rc;
}

static bool is_whiteout(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == 0;
}

static bool is_opaque(int dir)
{
    char value;
    return fgetxattr(dir, opaque, &value, 1) == 1 && value == 'y';
}

/* What a directory of a lower layer had and this one has not. */
static void strip(int out, char names[NAMES_MAX])
{
    ssize_t len = flistxattr(out, names, NAMES_MAX);
    for (const char *name = names; len > 0 && name < names + len;
         name += strlen(name) + 1)
        if (!strstr(name, ".overlay."))
            fremovexattr(out, name);
}

/* Owner, attributes, mode: in this order, for a change of owner takes some of the others
 * away. Attributes that the file system refuses are left out. */
static int dress(int in, int out, const struct stat *st)
{
    static char names[NAMES_MAX], value[VALUE_MAX]; /* we are one thread */
    if (fchown(out, st->st_uid, st->st_gid) < 0)
        return -1;
    strip(out, names);
    ssize_t len = flistxattr(in, names, sizeof names);
    for (const char *name = names; len > 0 && name < names + len;
         name += strlen(name) + 1) {
        ssize_t n = fgetxattr(in, name, value, sizeof value);
        if (n >= 0 && fsetxattr(out, name, value, (size_t)n, 0) < 0 && errno == ENOSPC)
            return -1;
    }
    return fchmod(out, st->st_mode & 07777);
}

/* Holes stay holes: a file's size says nothing about what it holds. */
static int copy_bytes(int in, int out, off_t size)
{
    for (off_t at = 0; at < size;) {
        off_t data = lseek(in, at, SEEK_DATA);
        if (data < 0)
            break;
        off_t hole = lseek(in, data, SEEK_HOLE);
        if (hole < 0 || lseek(out, data, SEEK_SET) < 0)
            return -1;
        for (at = data; at < hole;) {
            ssize_t n =
                sendfile(out, in, &at, hole - at < CHUNK ? (size_t)(hole - at) : CHUNK);
            if (n <= 0)
                return n < 0 ? -1 : 0; /* somebody cut it meanwhile */
        }
    }
    return ftruncate(out, size);
}

static int copy_file(int from, int to, const char *name, const struct stat *st)
{
    int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int out =
        in < 0 ? -1 : openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int rc = out < 0 || copy_bytes(in, out, st->st_size) < 0 ? -1 : dress(in, out, st);
    return keep_errno(rc, &in, &out);
}

static int copy_link(int from, int to, const char *name, const struct stat *st)
{
    char target[4096];
    ssize_t n = readlinkat(from, name, target, sizeof target - 1);
    if (n < 0)
        return -1;
    target[n] = 0;
    if (symlinkat(target, to, name) < 0)
        return -1;
    return fchownat(to, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW);
}

static int copy_node(int to, const char *name, const struct stat *st)
{
    if (mknodat(to, name, st->st_mode, st->st_rdev) < 0)
        return -1;
    return is_whiteout(st)
               ? 0
               : fchownat(to, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW);
}

static int remove_tree(int dir, const char *name, int depth)
{
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    if ((errno != EISDIR && errno != EPERM) || depth == DEPTH_MAX)
        return -1;
    int fd = openat(dir, name, OPEN_DIR);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    int rc = d ? 0 : -1;
    struct dirent *e;
    while (rc == 0 && (e = readdir(d)))
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
            rc = remove_tree(fd, e->d_name, depth + 1);
    if (d)
        closedir(d);
    return rc < 0 ? -1 : unlinkat(dir, name, AT_REMOVEDIR);
}

/* A directory over one of a lower layer shows what is in both, unless it is opaque. */
static int copy_below(int from, int to, const char *name, const struct stat *st,
                      int depth)
{
    struct stat there;
    if (depth == DEPTH_MAX) {
        errno = ELOOP;
        return -1;
    }
    int in = openat(from, name, OPEN_DIR);
    bool is_there = fstatat(to, name, &there, AT_SYMLINK_NOFOLLOW) == 0;
    bool merged = in >= 0 && is_there && S_ISDIR(there.st_mode) && !is_opaque(in);
    int made = in < 0 ? -1 : merged ? 0 : remove_tree(to, name, 0);
    if (made == 0 && !merged)
        made = mkdirat(to, name, 0700);
    int out = made < 0 ? -1 : openat(to, name, OPEN_DIR);
    int rc = out < 0 || copy_dir(in, out, depth + 1) < 0 ? -1 : dress(in, out, st);
    if (rc == 0 && is_there && !merged)
        rc = fsetxattr(out, opaque, "y", 1, 0);
    return keep_errno(rc, &in, &out);
}

static int copy_one(int from, int to, const char *name, int depth)
{
    struct stat st;
    int rc = fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW);
    if (rc < 0)
        return errno == ENOENT ? 0 : -1; /* it lives on while we look */
    if (S_ISDIR(st.st_mode)) {
        rc = copy_below(from, to, name, &st, depth);
    } else {
        rc = remove_tree(to, name, 0);
        if (rc == 0 && S_ISREG(st.st_mode))
            rc = copy_file(from, to, name, &st);
        else if (rc == 0 && S_ISLNK(st.st_mode))
            rc = copy_link(from, to, name, &st);
        else if (rc == 0)
            rc = copy_node(to, name, &st);
    }
    const struct timespec times[2] = {st.st_atim, st.st_mtim};
    return rc < 0 ? -1 : utimensat(to, name, times, AT_SYMLINK_NOFOLLOW);
}

static int copy_dir(int from, int to, int depth)
{
    int fd = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    int rc = d ? 0 : -1;
    struct dirent *e;
    while (rc == 0 && (e = readdir(d)))
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
            rc = copy_one(from, to, e->d_name, depth);
    int saved = errno;
    if (d)
        closedir(d);
    else
        sys_close(&fd);
    errno = saved;
    return rc;
}

int ab_copy_tree(const struct zygote *z, int from, int to)
{
    struct stat st;
    opaque = z->root ? "trusted.overlay.opaque" : "user.overlay.opaque";
    return fstat(from, &st) < 0 || copy_dir(from, to, 0) < 0 ? -1 : dress(from, to, &st);
}
