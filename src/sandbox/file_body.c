#include "sandbox/file_body.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/ab.h"

#define OURS    "user."
#define OVERLAY "user.overlay."

ssize_t ab_file_next_data(struct ab_file_data *d, char *piece, off_t *where)
{
    if (d->at >= d->hole && d->at < d->size) {
        off_t data = lseek(d->fd, d->at, SEEK_DATA);
        if (data < 0)
            return 0;
        d->at = data;
        d->hole = lseek(d->fd, data, SEEK_HOLE);
    }
    if (d->at >= d->size || d->at >= d->hole)
        return 0;
    size_t want = (size_t)(d->hole - d->at);
    ssize_t n = pread(d->fd, piece, want < AB_FILE_PIECE ? want : AB_FILE_PIECE, d->at);
    if (n > 0) {
        *where = d->at;
        d->at += n;
    }
    return n;
}

bool ab_file_is_attr(const char *name)
{
    return !strncmp(name, OURS, strlen(OURS)) && name[strlen(OURS)] &&
           strncmp(name, OVERLAY, strlen(OVERLAY)) != 0;
}

int ab_file_each_attr(int fd, ab_file_attr visit, void *arg)
{
    /* Nearly every file has none: asked without memory first. */
    ssize_t len = flistxattr(fd, NULL, 0);
    if (len <= 0)
        return 0;
    char *names = ab_xcalloc(1, (size_t)len + 1), *value = NULL;
    len = flistxattr(fd, names, (size_t)len);
    int rc = 0;
    for (ssize_t at = 0; rc == 0 && at < len; at += (ssize_t)strlen(names + at) + 1) {
        const char *name = names + at;
        if (!ab_file_is_attr(name) || strlen(name) >= AB_FILE_ATTR_NAME)
            continue;
        value = value ? value : ab_xcalloc(1, AB_FILE_ATTR_BYTES);
        ssize_t n = fgetxattr(fd, name, value, AB_FILE_ATTR_BYTES);
        if (n >= 0)
            rc = visit(arg, name, value, (size_t)n);
    }
    int saved = errno;
    free(value);
    free(names);
    errno = saved;
    return rc;
}

int ab_file_set_attr(int fd, const char *name, const void *value, size_t len)
{
    return fsetxattr(fd, name, value, len, 0) == 0 || errno == ENOTSUP ? 0 : -1;
}
