#include "rt/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"

enum { READ_CHUNK = 256 * 1024, MAX_DEPTH = 256 };

/* Evaluates to true, with errno set, when the named point is armed. */
static bool fails(const char *point)
{
    int errnum = AB_FAULT(point);
    (void)point;
    if (errnum)
        errno = errnum;
    return errnum != 0;
}

const char *ab_fs_type(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return "file";
    case S_IFDIR:
        return "dir";
    case S_IFLNK:
        return "link";
    case S_IFIFO:
        return "fifo";
    case S_IFSOCK:
        return "socket";
    case S_IFCHR:
        return "char";
    case S_IFBLK:
        return "block";
    default:
        return "unknown";
    }
}

int ab_fs_stat(const char *path, bool follow, struct stat *out, struct ab_err *err)
{
    if ((follow ? stat(path, out) : lstat(path, out)) < 0)
        return ab_err_sys(err, errno, "%s", path);
    return 0;
}

/* first: how much to make room for at once, a guess from the file's size. */
static int read_all(int fd, const char *path, size_t first, struct ab_buf *out,
                    struct ab_err *err)
{
    for (size_t chunk = first;; chunk = READ_CHUNK) {
        /* One byte past the cap tells a file of just that size from a bigger one. */
        size_t room = out->max - out->len, want = room < chunk ? room : chunk;
        char one;
        char *at = want ? ab_buf_reserve(out, want) : &one;
        ssize_t n = fails("fs.read") ? -1 : read(fd, at, want ? want : 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ab_err_sys(err, errno, "read %s", path);
        if (n == 0)
            return 0;
        if (!want)
            return ab_err_set(err, AB_ETOOBIG, "%s is bigger than %zu bytes", path,
                              out->max);
        ab_buf_advance(out, (size_t)n);
    }
}

/* One more than the size, so that the end is seen in the same buffer; files of /proc have
 * no size. */
static size_t first_chunk(const struct stat *st)
{
    return st->st_size > 0 && st->st_size < READ_CHUNK ? (size_t)st->st_size + 1
                                                       : READ_CHUNK;
}

int ab_fs_read(const char *path, struct ab_buf *out, struct ab_err *err)
{
    struct stat st;
    /* O_NONBLOCK: opening a FIFO must not wait for its writer. */
    int fd =
        fails("fs.open") ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return ab_err_sys(err, errno, "open %s", path);
    int rc = -1;
    if (fstat(fd, &st) < 0)
        ab_err_sys(err, errno, "%s", path);
    else if (!S_ISREG(st.st_mode))
        ab_err_set(err, AB_EINVALID, "%s is not a regular file but a %s", path,
                   ab_fs_type(st.st_mode));
    else
        rc = read_all(fd, path, first_chunk(&st), out, err);
    close(fd);
    return rc;
}

int ab_fs_write_fd(int fd, const void *data, size_t len, struct ab_err *err)
{
    const char *at = data;
    while (len > 0) {
        ssize_t n = fails("fs.write") ? -1 : write(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ab_err_sys(err, errno, "write");
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

/* The directory that holds path; gives. */
static char *parent_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return ab_xstrndup(".", 1);
    return ab_xstrndup(path, slash == path ? 1 : (size_t)(slash - path));
}

int ab_fs_sync_dir(const char *dir, struct ab_err *err)
{
    int rc = 0, fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        rc = ab_err_sys(err, errno, "open %s", dir);
    /* Some file systems refuse to sync a directory: there is nothing more to be had
     * there. */
    else if ((fails("fs.syncdir") || fsync(fd) < 0) && errno != EINVAL &&
             errno != ENOTSUP)
        rc = ab_err_sys(err, errno, "sync %s", dir);
    if (fd >= 0)
        close(fd);
    return rc;
}

static int sync_parent(const char *path, struct ab_err *err)
{
    char *dir = parent_of(path);
    int rc = ab_fs_sync_dir(dir, err);
    free(dir);
    return rc;
}

static int open_temp(char *tmp, const struct ab_fs_write *how)
{
    if (fails("fs.create"))
        return -1;
    /* mkstemp would fix the mode to 0600 and ignore the umask. */
    for (int i = 0; i < 100; i++) {
        char *suffix = tmp + strlen(tmp) - 6;
        unsigned bits;
        if (getentropy(&bits, sizeof bits) < 0)
            return -1;
        snprintf(suffix, 7, "%06x", bits & 0xffffff);
        int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                      how->mode ? how->mode : 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

static int write_temp(int fd, const char *path, const void *data, size_t len,
                      const struct ab_fs_write *how, struct ab_err *err)
{
    if (how->mode && fchmod(fd, how->mode) < 0)
        return ab_err_sys(err, errno, "chmod %s", path);
    if (ab_fs_write_fd(fd, data, len, err) < 0)
        return ab_err_wrap(err, "%s", path);
    if (!how->lazy && (fails("fs.fsync") || fsync(fd) < 0))
        return ab_err_sys(err, errno, "sync %s", path);
    return 0;
}

static int put_in_place(const char *tmp, const char *path, const struct ab_fs_write *how,
                        struct ab_err *err)
{
    if (how->exclusive) {
        if (link(tmp, path) < 0)
            return ab_err_sys(err, errno, "create %s", path);
        unlink(tmp);
    } else if (fails("fs.rename") || rename(tmp, path) < 0) {
        return ab_err_sys(err, errno, "replace %s", path);
    }
    return how->lazy ? 0 : sync_parent(path, err);
}

/* A file without a name, in the directory of path: whoever is killed leaves nothing. -1
 * where the file system has no such thing. */
static int open_unnamed(const char *path, const struct ab_fs_write *how)
{
    if (fails("fs.create"))
        return -1;
    char *dir = parent_of(path);
    int fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, how->mode ? how->mode : 0666);
    free(dir);
    return fd;
}

static int link_unnamed(int fd, const char *path, const struct ab_fs_write *how,
                        struct ab_err *err)
{
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) < 0)
        return ab_err_sys(err, errno, "create %s", path);
    if (how->lazy || sync_parent(path, err) == 0)
        return 0;
    unlink(path);
    return -1;
}

int ab_fs_write(const char *path, const void *data, size_t len,
                const struct ab_fs_write *how, struct ab_err *err)
{
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return ab_err_set(err, AB_EINVALID, "%s is not a regular file but a %s", path,
                          ab_fs_type(st.st_mode));
    int rc = -1, fd = how->exclusive ? open_unnamed(path, how) : -1;
    if (fd >= 0) {
        rc = write_temp(fd, path, data, len, how, err);
        if (rc == 0)
            rc = link_unnamed(fd, path, how, err);
        close(fd);
        return rc;
    }
    size_t size = strlen(path) + sizeof ".tmp.XXXXXX";
    char *tmp = ab_xcalloc(1, size);
    snprintf(tmp, size, "%s.tmp.XXXXXX", path);
    fd = open_temp(tmp, how);
    if (fd < 0) {
        ab_err_sys(err, errno, "create %s", path);
    } else {
        rc = write_temp(fd, path, data, len, how, err);
        close(fd);
        if (rc == 0)
            rc = put_in_place(tmp, path, how, err);
        if (rc < 0)
            unlink(tmp);
    }
    free(tmp);
    return rc;
}

/* ---- directories ---- */

static int by_name(const void *a, const void *b)
{
    const struct ab_fs_entry *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static const char *entry_type(int dirfd, const struct dirent *d)
{
    struct stat st;
    if (d->d_type != DT_UNKNOWN)
        return ab_fs_type(DTTOIF(d->d_type));
    if (fstatat(dirfd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return "unknown";
    return ab_fs_type(st.st_mode);
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

int ab_fs_list(const char *dir, struct ab_fs_list *out, struct ab_err *err)
{
    DIR *d = opendir(dir);
    if (!d)
        return ab_err_sys(err, errno, "open %s", dir);
    *out = (struct ab_fs_list){0};
    size_t room = 0;
    const struct dirent *entry;
    errno = 0;
    while ((entry = readdir(d)) != NULL) {
        if (is_dots(entry->d_name))
            continue;
        if (out->count == room) {
            room = room ? room * 2 : 32;
            out->entries = ab_xrealloc(out->entries, room * sizeof *out->entries);
        }
        out->entries[out->count++] = (struct ab_fs_entry){
            .name = ab_xstrndup(entry->d_name, strlen(entry->d_name)),
            .type = entry_type(dirfd(d), entry),
        };
        errno = 0;
    }
    int errnum = errno;
    closedir(d);
    if (errnum) {
        ab_fs_list_fini(out);
        return ab_err_sys(err, errnum, "list %s", dir);
    }
    if (out->count)
        qsort(out->entries, out->count, sizeof *out->entries, by_name);
    return 0;
}

void ab_fs_list_fini(struct ab_fs_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->entries[i].name);
    free(list->entries);
    *list = (struct ab_fs_list){0};
}

static bool is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int ab_fs_mkdir(const char *path, bool parents, struct ab_err *err)
{
    if (fails("fs.mkdir"))
        return ab_err_sys(err, errno, "create %s", path);
    if (mkdir(path, 0777) == 0)
        return 0;
    int errnum = errno;
    if (!parents)
        return ab_err_sys(err, errnum, "create %s", path);
    if (errnum == EEXIST && is_dir(path))
        return 0;
    char *up = parent_of(path);
    int rc = errnum == ENOENT && strcmp(up, path) != 0
                 ? ab_fs_mkdir(up, true, err)
                 : ab_err_sys(err, errnum, "create %s", path);
    free(up);
    if (rc < 0)
        return -1;
    if (mkdir(path, 0777) < 0 && (errno != EEXIST || !is_dir(path)))
        return ab_err_sys(err, errno, "create %s", path);
    return 0;
}

/* Removes what the open directory holds. Takes fd. errno on failure. */
static int empty_dir(int fd, int depth)
{
    DIR *d = depth < MAX_DEPTH ? fdopendir(fd) : NULL;
    if (!d) {
        int errnum = depth < MAX_DEPTH ? errno : ELOOP;
        close(fd);
        return errnum;
    }
    int errnum = 0;
    const struct dirent *entry;
    while (!errnum && (entry = readdir(d)) != NULL) {
        if (is_dots(entry->d_name))
            continue;
        if (unlinkat(fd, entry->d_name, 0) == 0 || errno == ENOENT)
            continue;
        if (errno != EISDIR && errno != EPERM) {
            errnum = errno;
            break;
        }
        int sub =
            openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        errnum = sub < 0 ? errno : empty_dir(sub, depth + 1);
        if (!errnum && unlinkat(fd, entry->d_name, AT_REMOVEDIR) < 0)
            errnum = errno;
    }
    closedir(d);
    return errnum;
}

int ab_fs_remove(const char *path, bool recursive, struct ab_err *err)
{
    struct stat st;
    if (lstat(path, &st) < 0) {
        if (recursive && errno == ENOENT)
            return 0;
        return ab_err_sys(err, errno, "remove %s", path);
    }
    if (!S_ISDIR(st.st_mode)) {
        if (unlink(path) < 0)
            return ab_err_sys(err, errno, "remove %s", path);
        return 0;
    }
    if (recursive) {
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int errnum = fd < 0 ? errno : empty_dir(fd, 0);
        if (errnum)
            return ab_err_sys(err, errnum, "remove %s", path);
    }
    if (rmdir(path) < 0)
        return ab_err_sys(err, errno, "remove %s", path);
    return 0;
}

int ab_fs_rename(const char *from, const char *to, bool lazy, struct ab_err *err)
{
    if (fails("fs.rename") || rename(from, to) < 0)
        return ab_err_sys(err, errno, "rename %s to %s", from, to);
    if (lazy)
        return 0;
    char *old = parent_of(from), *new = parent_of(to);
    int rc = ab_fs_sync_dir(new, err);
    if (rc == 0 && strcmp(old, new) != 0)
        rc = ab_fs_sync_dir(old, err);
    free(old);
    free(new);
    return rc;
}
