/* copy.c - a tree of files, copied: for kernels whose tmpfs cannot be the upper side of
 * an overlay. */
#include <dirent.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "init/init.h"
#include "init/sys.h"

#define DEPTH_MAX 256
#define CHUNK     (1u << 20)

static int copy_dir(int from, int to, int depth);

static int copy_bytes(int from, int to, const char *name, const struct stat *st)
{
    int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int out =
        in < 0 ? -1 : openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int rc = out < 0 ? -1 : 0;
    for (off_t left = st->st_size; rc == 0 && left > 0;) {
        ssize_t n = sendfile(out, in, NULL, left < (off_t)CHUNK ? (size_t)left : CHUNK);
        if (n <= 0)
            rc = n < 0 ? -1 : (left = 0);
        left -= n;
    }
    if (rc == 0)
        rc = fchmod(out, st->st_mode & 07777);
    int saved = errno;
    sys_close(&in);
    sys_close(&out);
    errno = saved;
    return rc;
}

static int copy_link(int from, int to, const char *name)
{
    char target[4096];
    ssize_t n = readlinkat(from, name, target, sizeof target - 1);
    if (n < 0)
        return -1;
    target[n] = 0;
    return symlinkat(target, to, name);
}

static int copy_below(int from, int to, const char *name, const struct stat *st,
                      int depth)
{
    if (depth == DEPTH_MAX) {
        errno = ELOOP;
        return -1;
    }
    int in = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int out = in < 0 || mkdirat(to, name, 0700) < 0
                  ? -1
                  : openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int rc = out < 0 ? -1 : copy_dir(in, out, depth + 1);
    if (rc == 0)
        rc = fchmod(out, st->st_mode & 07777);
    int saved = errno;
    sys_close(&in);
    sys_close(&out);
    errno = saved;
    return rc;
}

/* Pipes and sockets are nothing without the processes that had them. */
static int copy_one(int from, int to, const char *name, int depth)
{
    struct stat st;
    int rc = fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW);
    if (rc == 0 && S_ISREG(st.st_mode))
        rc = copy_bytes(from, to, name, &st);
    else if (rc == 0 && S_ISLNK(st.st_mode))
        rc = copy_link(from, to, name);
    else if (rc == 0 && S_ISDIR(st.st_mode))
        rc = copy_below(from, to, name, &st, depth);
    else
        return rc;
    const struct timespec times[2] = {st.st_atim, st.st_mtim};
    if (rc == 0)
        rc = utimensat(to, name, times, AT_SYMLINK_NOFOLLOW);
    return rc;
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

int ab_copy_tree(int from, int to)
{
    return copy_dir(from, to, 0);
}
