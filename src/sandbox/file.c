#include "sandbox/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fault.h"

#define RACES_MAX 64
#define CHUNK     65536

/* Resolution that raced with a rename is told to start again; nobody can make us do it
 * for ever. */
int ab_file_open(const struct ab_tree *t, const char *path, uint64_t flags, uint32_t mode)
{
    struct open_how how = {
        .flags = flags | O_CLOEXEC | (flags & O_PATH ? 0 : O_NONBLOCK | O_NOCTTY),
        .mode = mode,
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
    };
    int fd = -1;
    for (int i = 0; i < RACES_MAX; i++) {
        fd = (int)syscall(SYS_openat2, t->root, path, &how, sizeof how);
        if (fd >= 0 || errno != EAGAIN)
            break;
    }
    return fd;
}

bool ab_file_enter(const struct ab_tree *t)
{
    if (t->ids.count != 1 || t->ids.first == 0 || geteuid() != 0)
        return false;
    syscall(SYS_setfsgid, t->ids.first);
    syscall(SYS_setfsuid, t->ids.first);
    return true;
}

void ab_file_leave(bool entered)
{
    if (!entered)
        return;
    syscall(SYS_setfsuid, 0);
    syscall(SYS_setfsgid, 0);
}

static void close_keep(int fd)
{
    int saved = errno;
    if (fd >= 0)
        close(fd);
    errno = saved;
}

static uint32_t inside(const struct ab_ids *ids, uint32_t outside)
{
    if (ids->count == 0 || outside == ids->first)
        return ids->count ? 0 : outside;
    if (outside >= ids->rest && outside - ids->rest < ids->count - 1)
        return outside - ids->rest + 1;
    return UINT32_MAX;
}

uint32_t ab_file_outside(const struct ab_ids *ids, uint32_t id)
{
    if (ids->count == 0)
        return id;
    if (id >= ids->count)
        id = 0;
    return id ? ids->rest + id - 1 : ids->first;
}

static bool can_chown(const struct ab_tree *t)
{
    return t->ids.count > 0 && geteuid() == 0;
}

static int own(const struct ab_tree *t, int fd, int64_t uid, int64_t gid)
{
    if (!can_chown(t))
        return uid > 0 || gid > 0 ? (errno = EPERM, -1) : 0;
    return fchown(fd, ab_file_outside(&t->ids, uid < 0 ? 0 : (uint32_t)uid),
                  ab_file_outside(&t->ids, gid < 0 ? 0 : (uint32_t)gid));
}

int ab_file_check_regular(int fd, const char *path, struct stat *st, struct ab_err *err)
{
    if (fstat(fd, st) < 0)
        return ab_err_sys(err, errno, "%s", path);
    if (S_ISDIR(st->st_mode))
        return ab_err_sys(err, EISDIR, "%s", path);
    if (!S_ISREG(st->st_mode))
        return ab_err_set(err, AB_EINVALID, "%s: not a regular file", path);
    return 0;
}

static int read_all(int fd, const char *path, bool head, struct ab_buf *out,
                    struct ab_err *err)
{
    for (;;) {
        size_t room = out->max - out->len;
        /* One byte beyond the cap tells a file that fits from one that grew. */
        char *at = ab_buf_reserve(out, room < CHUNK ? room + 1 : CHUNK);
        ssize_t n = read(fd, at, room < CHUNK ? room + 1 : CHUNK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ab_err_sys(err, errno, "read %s", path);
        if (n == 0)
            return 0;
        if ((size_t)n > room && head) {
            ab_buf_advance(out, room);
            return 0;
        }
        if ((size_t)n > room)
            return ab_err_set(err, AB_ETOOBIG, "%s is longer than %zu bytes", path,
                              out->max);
        ab_buf_advance(out, (size_t)n);
    }
}

int ab_file_read(const struct ab_tree *t, const char *path, bool head, struct ab_buf *out,
                 struct ab_err *err)
{
    struct stat st;
    int fault = AB_FAULT("sandbox_read");
    int fd = fault ? -1 : ab_file_open(t, path, O_RDONLY, 0);
    if (fd < 0)
        return ab_err_sys(err, fault ? fault : errno, "%s", path);
    int rc = ab_file_check_regular(fd, path, &st, err);
    if (rc == 0 && !head && (uint64_t)st.st_size > out->max)
        rc = ab_err_set(err, AB_ETOOBIG, "%s is %llu bytes long, more than %zu", path,
                        (unsigned long long)st.st_size, out->max);
    if (rc == 0)
        rc = read_all(fd, path, head, out, err);
    close_keep(fd);
    return rc;
}

/* Splits off the last component; NULL when there is none that can be made or removed. */
static const char *split(const char *path, char *parent, size_t room)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t base = end;
    while (base > 0 && path[base - 1] != '/')
        base--;
    if (base == end || (size_t)snprintf(parent, room, "/%.*s", (int)base, path) >= room)
        return NULL;
    const char *name = path + base;
    return !strcmp(name, ".") || !strcmp(name, "..") ? NULL : name;
}

static int bad_name(const char *path, struct ab_err *err)
{
    return ab_err_set(err, AB_EBADARG, "%.100s: not a name that can be made or removed",
                      path);
}

/* The name without the slashes that may follow it. */
static void trim(const char *name, char *out, size_t room)
{
    snprintf(out, room, "%.*s", (int)strcspn(name, "/"), name);
}

static int make_dir(const struct ab_tree *t, const char *path, bool parents, int mode)
{
    char parent[4096], last[256];
    const char *name = split(path, parent, sizeof parent);
    if (!name || strcspn(name, "/") >= sizeof last) {
        errno = name ? ENAMETOOLONG : EEXIST;
        return -1;
    }
    trim(name, last, sizeof last);
    int dir = ab_file_open(t, parent, O_PATH | O_DIRECTORY, 0);
    if (dir < 0 && errno == ENOENT && parents &&
        (make_dir(t, parent, true, 0755) == 0 || errno == EEXIST))
        dir = ab_file_open(t, parent, O_PATH | O_DIRECTORY, 0);
    if (dir < 0)
        return -1;
    int rc = mkdirat(dir, last, 0700);
    int made =
        rc < 0 ? -1 : openat(dir, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (rc == 0 &&
        (made < 0 || own(t, made, -1, -1) < 0 || fchmod(made, (mode_t)mode) < 0))
        rc = -1;
    close_keep(made);
    close_keep(dir);
    return rc;
}

int ab_file_mkdir(const struct ab_tree *t, const char *path, bool parents, int mode,
                  struct ab_err *err)
{
    if (make_dir(t, path, parents, mode) == 0)
        return 0;
    struct ab_file_stat st;
    if (errno == EEXIST && parents && ab_file_stat(t, path, true, &st, err) == 0 &&
        st.type == 'd')
        return 0;
    return ab_err_sys(err, errno == EEXIST ? EEXIST : errno, "%s", path);
}

/* Opens for writing without truncating: what it is must be known first. */
static int open_for_write(const struct ab_tree *t, const char *path, bool exclusive,
                          bool *made)
{
    *made = false;
    int fd = exclusive ? -1 : ab_file_open(t, path, O_WRONLY, 0);
    if (fd >= 0 || (!exclusive && errno != ENOENT))
        return fd;
    fd = ab_file_open(t, path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    *made = fd >= 0;
    if (fd < 0 && errno == EEXIST && !exclusive)
        fd = ab_file_open(t, path, O_WRONLY | O_CREAT,
                          0600); /* a link to nothing, or a race */
    return fd;
}

static int open_with_parents(const struct ab_tree *t, const char *path, bool exclusive,
                             bool *made)
{
    char parent[4096];
    int fd = open_for_write(t, path, exclusive, made);
    if (fd >= 0 || errno != ENOENT || !split(path, parent, sizeof parent))
        return fd;
    if (make_dir(t, parent, true, 0755) < 0 && errno != EEXIST)
        return -1;
    return open_for_write(t, path, exclusive, made);
}

static int write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno != EINTR)
            return -1;
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

static int set_owner(const struct ab_tree *t, int fd, bool made,
                     const struct ab_file_write *how)
{
    if (made || how->uid >= 0 || how->gid >= 0) {
        if (own(t, fd, how->uid, how->gid) < 0)
            return -1;
    }
    if (!made && how->mode < 0)
        return 0;
    return fchmod(fd, how->mode < 0 ? 0644 : (mode_t)how->mode);
}

int ab_file_write(const struct ab_tree *t, const char *path, const void *data, size_t len,
                  const struct ab_file_write *how, struct ab_err *err)
{
    bool made;
    struct stat st;
    int fault = AB_FAULT("sandbox_write");
    int fd = fault ? -1 : open_with_parents(t, path, how->exclusive, &made);
    if (fd < 0)
        return ab_err_sys(err, fault ? fault : errno, "%s", path);
    int rc = ab_file_check_regular(fd, path, &st, err);
    if (rc == 0 && (how->append ? lseek(fd, 0, SEEK_END) < 0 : ftruncate(fd, 0) < 0))
        rc = ab_err_sys(err, errno, "%s", path);
    if (rc == 0 && write_all(fd, data, len) < 0)
        rc = ab_err_sys(err, errno, "write %s", path);
    /* After the bytes: writing takes set-user-id bits away. */
    if (rc == 0 && set_owner(t, fd, made, how) < 0)
        rc = ab_err_sys(err, errno, "owner and mode of %s", path);
    close_keep(fd);
    return rc;
}

void ab_file_fill_stat(const struct ab_tree *t, const struct stat *st,
                       struct ab_file_stat *out)
{
    static const struct {
        mode_t kind;
        char type;
    } types[] = {{S_IFREG, 'f'},  {S_IFDIR, 'd'}, {S_IFLNK, 'l'}, {S_IFIFO, 'p'},
                 {S_IFSOCK, 's'}, {S_IFCHR, 'c'}, {S_IFBLK, 'b'}};
    *out = (struct ab_file_stat){
        .type = '?',
        .mode = st->st_mode & 07777,
        .uid = inside(&t->ids, st->st_uid),
        .gid = inside(&t->ids, st->st_gid),
        .size = (uint64_t)st->st_size,
        .ino = st->st_ino,
        .links = st->st_nlink,
        .mtime_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec,
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if ((st->st_mode & S_IFMT) == types[i].kind)
            out->type = types[i].type;
}

bool ab_file_is_closed(const struct ab_tree *t, int dir, const char *name)
{
    struct stat st;
    if (errno != EACCES || t->ids.count == 0)
        return false;
    bool seen = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || fstat(dir, &st) == 0;
    errno = EACCES;
    return seen && inside(&t->ids, st.st_uid) != UINT32_MAX &&
           inside(&t->ids, st.st_gid) != UINT32_MAX;
}

int ab_file_stat(const struct ab_tree *t, const char *path, bool follow,
                 struct ab_file_stat *st, struct ab_err *err)
{
    struct stat raw;
    int fd = ab_file_open(t, path, O_PATH | (follow ? 0 : O_NOFOLLOW), 0);
    if (fd < 0)
        return ab_err_sys(err, errno, "%s", path);
    int rc = fstat(fd, &raw) < 0 ? ab_err_sys(err, errno, "%s", path) : 0;
    if (rc == 0)
        ab_file_fill_stat(t, &raw, st);
    close_keep(fd);
    return rc;
}

int ab_file_readlink(const struct ab_tree *t, const char *path, char *out, size_t room,
                     struct ab_err *err)
{
    int fd = ab_file_open(t, path, O_PATH | O_NOFOLLOW, 0);
    if (fd < 0)
        return ab_err_sys(err, errno, "%s", path);
    ssize_t n = readlinkat(fd, "", out, room - 1);
    int rc = n < 0 ? ab_err_sys(err, errno == ENOENT ? EINVAL : errno, "%s", path) : 0;
    out[n < 0 ? 0 : n] = 0;
    close_keep(fd);
    return rc;
}

int ab_file_list(const struct ab_tree *t, const char *path, size_t max,
                 ab_file_visit visit, void *arg, struct ab_err *err)
{
    int fd = ab_file_open(t, path, O_RDONLY | O_DIRECTORY, 0);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        ab_err_sys(err, errno, "%s", path);
        close_keep(fd);
        return -1;
    }
    struct dirent *e;
    size_t n = 0;
    int rc = 0;
    while (rc == 0 && (e = readdir(d))) {
        struct stat raw;
        struct ab_file_stat st;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
            fstatat(dirfd(d), e->d_name, &raw, AT_SYMLINK_NOFOLLOW) < 0)
            continue; /* gone meanwhile */
        if (++n > max) {
            rc = ab_err_set(err, AB_ETOOBIG, "%s has more than %zu entries", path, max);
            break;
        }
        ab_file_fill_stat(t, &raw, &st);
        rc = visit(arg, e->d_name, &st);
    }
    closedir(d);
    return rc;
}

int ab_file_rename(const struct ab_tree *t, const char *from, const char *to,
                   struct ab_err *err)
{
    char from_parent[4096], to_parent[4096], from_name[256], to_name[256];
    const char *a = split(from, from_parent, sizeof from_parent);
    const char *b = split(to, to_parent, sizeof to_parent);
    if (!a || !b)
        return bad_name(a ? to : from, err);
    trim(a, from_name, sizeof from_name);
    trim(b, to_name, sizeof to_name);
    int from_dir = ab_file_open(t, from_parent, O_PATH | O_DIRECTORY, 0);
    int to_dir = from_dir < 0 ? -1 : ab_file_open(t, to_parent, O_PATH | O_DIRECTORY, 0);
    int rc = to_dir < 0 ? -1 : renameat(from_dir, from_name, to_dir, to_name);
    if (rc < 0)
        ab_err_sys(err, errno, "rename %s to %s", from, to);
    close_keep(from_dir);
    close_keep(to_dir);
    return rc;
}

#define DEPTH_MAX 512

static int remove_at(int dir, const char *name, bool recursive, int depth);

static int empty_dir(int dir, const char *name, int depth)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        close_keep(fd);
        return -1;
    }
    struct dirent *e;
    int rc = 0;
    while (rc == 0 && (e = readdir(d)))
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
            rc = remove_at(dirfd(d), e->d_name, true, depth + 1);
    int saved = errno;
    closedir(d);
    errno = saved;
    return rc;
}

static int remove_at(int dir, const char *name, bool recursive, int depth)
{
    if (unlinkat(dir, name, 0) == 0)
        return 0;
    if (errno != EISDIR)
        return -1;
    if (unlinkat(dir, name, AT_REMOVEDIR) == 0)
        return 0;
    if (!recursive || (errno != ENOTEMPTY && errno != EEXIST))
        return -1;
    if (depth >= DEPTH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (empty_dir(dir, name, depth) < 0)
        return -1;
    return unlinkat(dir, name, AT_REMOVEDIR);
}

int ab_file_remove(const struct ab_tree *t, const char *path, bool recursive,
                   struct ab_err *err)
{
    char parent[4096], last[256];
    const char *name = split(path, parent, sizeof parent);
    if (!name)
        return bad_name(path, err);
    trim(name, last, sizeof last);
    int dir = ab_file_open(t, parent, O_PATH | O_DIRECTORY, 0);
    int rc = dir < 0 ? -1 : remove_at(dir, last, recursive, 0);
    if (rc < 0)
        ab_err_sys(err, errno, "remove %s", path);
    close_keep(dir);
    return rc;
}
