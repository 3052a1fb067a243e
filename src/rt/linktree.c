#include "rt/linktree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static int copy_attributes(int from, int to)
{
    char names[8192], value[8192];
    ssize_t len = flistxattr(from, names, sizeof names);
    for (const char *name = names; len > 0 && name < names + len;
         name += strlen(name) + 1) {
        ssize_t n =
            strncmp(name, "user.", 5) ? -1 : fgetxattr(from, name, value, sizeof value);
        if (n >= 0 && fsetxattr(to, name, value, (size_t)n, 0) < 0)
            return -1;
    }
    return 0;
}

/* The times last: filling a directory changes them. */
static int copy_directory(int from, int to)
{
    struct stat st;
    if (fstat(from, &st) < 0)
        return -1;
    const struct timespec times[2] = {st.st_atim, st.st_mtim};
    if (fchown(to, st.st_uid, st.st_gid) < 0 || copy_attributes(from, to) < 0 ||
        fchmod(to, st.st_mode & 07777) < 0)
        return -1;
    return futimens(to, times);
}

static int link_children(int from, int to);

static int link_one(int from, int to, const char *name)
{
    if (linkat(from, name, to, name, 0) == 0)
        return 0;
    if (errno != EPERM || mkdirat(to, name, 0700) < 0) /* directories cannot be linked */
        return -1;
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int a = openat(from, name, flags);
    int b = openat(to, name, flags);
    int rc = a < 0 || b < 0 ? -1 : link_children(a, b);
    int saved = errno;
    if (a >= 0)
        close(a);
    if (b >= 0)
        close(b);
    errno = saved;
    return rc;
}

static int link_children(int from, int to)
{
    int fd = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    int rc = 0;
    const struct dirent *entry;
    while (rc == 0 && (entry = readdir(d)) != NULL) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
            rc = link_one(from, to, name);
    }
    int saved = errno;
    closedir(d);
    errno = saved;
    return rc < 0 ? -1 : copy_directory(from, to);
}

int ab_link_tree(int from, int to, struct ab_err *err)
{
    if (link_children(from, to) < 0)
        return ab_err_sys(err, errno, "link the files of the image below");
    return 0;
}
