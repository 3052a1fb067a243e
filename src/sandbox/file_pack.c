#include "sandbox/file_pack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/file_body.h"

#define CHUNK     AB_FILE_PIECE
#define NAME_ROOM 256
#define LINK_ROOM 4096

struct pack {
    const struct ab_tree *tree;
    int fd;
    struct ab_file_copy *c;
    size_t entries;
    char top[NAME_ROOM]; /* the entry of the start that is packed, for errors */
    struct ab_buf buf;   /* written when it is long */
    char chunk[CHUNK];
};

/* ---- out ---- */

static int write_out(struct pack *k, size_t keep)
{
    size_t done = 0;
    if (k->buf.len <= keep)
        return 0;
    while (done < k->buf.len) {
        ssize_t n = write(k->fd, k->buf.data + done, k->buf.len - done);
        if (n < 0 && errno != EINTR)
            return -1;
        done += n > 0 ? (size_t)n : 0;
    }
    ab_buf_clear(&k->buf);
    return 0;
}

static void put_int(struct pack *k, uint64_t v, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ab_buf_putc(&k->buf, (char)(v >> (8 * i)));
}

static void put_text(struct pack *k, const char *text, size_t len)
{
    put_int(k, len, 2);
    ab_buf_put(&k->buf, text, len);
}

static void put_dress(struct pack *k, const struct stat *st)
{
    struct ab_file_stat in;
    ab_file_fill_stat(k->tree, st, &in);
    put_int(k, in.uid, 4);
    put_int(k, in.gid, 4);
    put_int(k, in.mode, 4);
}

static int spend(struct ab_file_copy *c, size_t bytes)
{
    if ((c->bytes += bytes) <= c->max_bytes)
        return 0;
    errno = E2BIG;
    return -1;
}

static int pack_bytes(struct pack *k, int in, off_t size)
{
    struct ab_file_data data = {.fd = in, .size = size};
    off_t at;
    ssize_t n;
    while ((n = ab_file_next_data(&data, k->chunk, &at)) > 0) {
        if (spend(k->c, (size_t)n) < 0)
            return -1;
        put_int(k, (uint64_t)at, 8);
        put_int(k, (uint64_t)n, 4);
        ab_buf_put(&k->buf, k->chunk, (size_t)n);
        if (write_out(k, CHUNK) < 0)
            return -1;
    }
    return (int)n;
}

static int pack_attr(void *arg, const char *name, const void *value, size_t len)
{
    struct pack *k = arg;
    if (spend(k->c, len) < 0)
        return -1;
    put_text(k, name, strlen(name));
    put_int(k, len, 4);
    ab_buf_put(&k->buf, value, len);
    return write_out(k, CHUNK);
}

static int pack_attrs(struct pack *k, int fd)
{
    int rc = ab_file_each_attr(fd, pack_attr, k);
    put_int(k, 0, 2);
    return rc;
}

static int pack_file(struct pack *k, int dir, const char *name)
{
    struct stat st;
    int in = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (in < 0 || fstat(in, &st) < 0 || !S_ISREG(st.st_mode)) {
        if (in >= 0)
            close(in);
        k->c->skipped++;
        return 0;
    }
    put_int(k, 'f', 1);
    put_text(k, name, strlen(name));
    put_dress(k, &st);
    put_int(k, (uint64_t)st.st_mtim.tv_sec, 8);
    put_int(k, (uint64_t)st.st_mtim.tv_nsec, 4);
    put_int(k, (uint64_t)st.st_size, 8);
    int rc = pack_attrs(k, in) < 0 ? -1 : pack_bytes(k, in, st.st_size);
    put_int(k, 0, 8);
    put_int(k, 0, 4);
    int saved = errno;
    close(in);
    errno = saved;
    k->c->files++;
    return rc;
}

static int pack_link(struct pack *k, int dir, const char *name, const struct stat *st)
{
    ssize_t n = readlinkat(dir, name, k->chunk, LINK_ROOM - 1);
    if (n < 0) {
        k->c->skipped++;
        return 0;
    }
    put_int(k, 'l', 1);
    put_text(k, name, strlen(name));
    put_dress(k, st);
    put_text(k, k->chunk, (size_t)n);
    k->c->links++;
    return 0;
}

static int pack_dir(struct pack *k, DIR *d, int depth);

static int pack_subdir(struct pack *k, int dir, const char *name, int depth)
{
    struct stat st;
    if (depth == AB_FILE_DEPTH) {
        errno = ELOOP;
        return -1;
    }
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        if (fd >= 0)
            close(fd);
        k->c->skipped++;
        return 0;
    }
    put_int(k, 'd', 1);
    put_text(k, name, strlen(name));
    int rc = pack_dir(k, d, depth + 1);
    if (rc == 0 && fstat(dirfd(d), &st) < 0)
        rc = -1;
    if (rc == 0) {
        put_int(k, 'e', 1);
        rc = pack_attrs(k, dirfd(d));
        put_dress(k, &st);
        k->c->dirs++;
    }
    int saved = errno;
    closedir(d);
    errno = saved;
    return rc;
}

static int pack_dir(struct pack *k, DIR *d, int depth)
{
    struct dirent *e;
    int rc = 0;
    while (rc == 0 && (e = readdir(d))) {
        struct stat st;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
            fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (depth == 0)
            snprintf(k->top, sizeof k->top, "%s", e->d_name);
        if (++k->entries > k->c->max_entries) {
            errno = E2BIG;
            return -1;
        }
        if (S_ISREG(st.st_mode))
            rc = pack_file(k, dirfd(d), e->d_name);
        else if (S_ISDIR(st.st_mode))
            rc = pack_subdir(k, dirfd(d), e->d_name, depth);
        else if (S_ISLNK(st.st_mode))
            rc = pack_link(k, dirfd(d), e->d_name, &st);
        else
            k->c->skipped++;
        if (rc == 0)
            rc = write_out(k, CHUNK);
    }
    return rc;
}

int ab_file_pack(const struct ab_tree *t, const char *path, int fd,
                 struct ab_file_copy *copy, struct ab_err *err)
{
    int dir = ab_file_open(t, path, O_RDONLY | O_DIRECTORY, 0);
    DIR *d = dir < 0 ? NULL : fdopendir(dir);
    if (!d) {
        ab_err_sys(err, errno, "%s", path);
        if (dir >= 0)
            close(dir);
        return -1;
    }
    struct pack *k = ab_xcalloc(1, sizeof *k);
    k->tree = t;
    k->fd = fd;
    k->c = copy;
    ab_buf_init(&k->buf, 0);
    int rc = pack_dir(k, d, 0);
    if (rc == 0) {
        put_int(k, '.', 1);
        rc = write_out(k, 0);
    }
    if (rc < 0)
        rc = ab_file_copy_failed(copy, path, k->top, "a stream", err);
    ab_buf_fini(&k->buf);
    free(k);
    closedir(d);
    return rc;
}

/* ---- in ---- */

struct unpack {
    const struct ab_tree *tree;
    int fd;
    struct ab_file_copy *c;
    size_t entries;
    size_t at, len; /* of chunk */
    bool broken;    /* the stream ended, or says what cannot be */
    int dirs[AB_FILE_DEPTH + 2];
    int depth;
    char chunk[CHUNK];
    char name[NAME_ROOM], target[LINK_ROOM], value[AB_FILE_ATTR_BYTES];
};

struct dress {
    uint32_t uid, gid, mode;
};

static int broken(struct unpack *u)
{
    u->broken = true;
    errno = EPROTO;
    return -1;
}

static int fill(struct unpack *u)
{
    ssize_t n;
    do
        n = read(u->fd, u->chunk, CHUNK);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return broken(u);
    u->at = 0;
    u->len = (size_t)n;
    return 0;
}

static int take(struct unpack *u, void *out, size_t len)
{
    char *to = out;
    while (len > 0) {
        if (u->at == u->len && fill(u) < 0)
            return -1;
        size_t n = u->len - u->at < len ? u->len - u->at : len;
        memcpy(to, u->chunk + u->at, n);
        u->at += n;
        to += n;
        len -= n;
    }
    return 0;
}

static uint64_t take_int(struct unpack *u, size_t bytes)
{
    uint8_t raw[8] = {0};
    uint64_t v = 0;
    if (take(u, raw, bytes) < 0)
        return 0;
    for (size_t i = 0; i < bytes; i++)
        v |= (uint64_t)raw[i] << (8 * i);
    return v;
}

static int take_text(struct unpack *u, char *out, size_t room)
{
    size_t len = (size_t)take_int(u, 2);
    if (u->broken || len >= room || take(u, out, len) < 0)
        return broken(u);
    out[len] = 0;
    return strlen(out) == len ? 0 : broken(u);
}

static int take_name(struct unpack *u)
{
    if (take_text(u, u->name, sizeof u->name) < 0)
        return -1;
    bool odd = !u->name[0] || strchr(u->name, '/') || !strcmp(u->name, ".") ||
               !strcmp(u->name, "..");
    if (odd)
        return broken(u);
    if (++u->entries > u->c->max_entries) {
        errno = E2BIG;
        return -1;
    }
    return 0;
}

static struct dress take_dress(struct unpack *u)
{
    struct dress d = {.uid = (uint32_t)take_int(u, 4)};
    d.gid = (uint32_t)take_int(u, 4);
    d.mode = (uint32_t)take_int(u, 4) & 07777;
    return d;
}

static int put_on(const struct unpack *u, int fd, const struct dress *d)
{
    if (u->tree->ids.count > 0 && geteuid() == 0 &&
        fchown(fd, ab_file_outside(&u->tree->ids, d->uid),
               ab_file_outside(&u->tree->ids, d->gid)) < 0)
        return -1;
    /* On the host a set-user-id bit of the sandbox would be the host's. */
    return fchmod(fd, d->mode & (u->tree->ids.count ? 07777 : 0777));
}

static int unpack_extent(struct unpack *u, int out, uint64_t at, size_t len)
{
    if (spend(u->c, len) < 0)
        return -1;
    while (len > 0) {
        if (u->at == u->len && fill(u) < 0)
            return -1;
        size_t n = u->len - u->at < len ? u->len - u->at : len;
        ssize_t done = pwrite(out, u->chunk + u->at, n, (off_t)at);
        if (done <= 0)
            return -1;
        u->at += (size_t)done;
        at += (uint64_t)done;
        len -= (size_t)done;
    }
    return 0;
}

/* Into out, as they come; they stand before the mode that may forbid it. */
static int unpack_attrs(struct unpack *u, int out)
{
    for (;;) {
        if (take_text(u, u->name, sizeof u->name) < 0)
            return -1;
        if (!u->name[0])
            return 0;
        size_t len = (size_t)take_int(u, 4);
        if (u->broken || len > sizeof u->value || !ab_file_is_attr(u->name))
            return broken(u);
        if (take(u, u->value, len) < 0 || spend(u->c, len) < 0 ||
            ab_file_set_attr(out, u->name, u->value, len) < 0)
            return -1;
    }
}

static int unpack_bytes(struct unpack *u, int out)
{
    for (;;) {
        uint64_t at = take_int(u, 8);
        size_t len = (size_t)take_int(u, 4);
        if (u->broken)
            return -1;
        if (len == 0)
            return 0;
        if (unpack_extent(u, out, at, len) < 0)
            return -1;
    }
}

static int unpack_file(struct unpack *u)
{
    if (take_name(u) < 0)
        return -1;
    int dir = u->dirs[u->depth];
    struct dress d = take_dress(u);
    struct timespec t = {.tv_sec = (time_t)take_int(u, 8)};
    t.tv_nsec = (long)take_int(u, 4);
    uint64_t size = take_int(u, 8);
    if (u->broken || (unlinkat(dir, u->name, 0) < 0 && errno != ENOENT))
        return -1;
    int out =
        openat(dir, u->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (out < 0)
        return -1;
    int rc = unpack_attrs(u, out) < 0 || unpack_bytes(u, out) < 0 ||
                     ftruncate(out, (off_t)size) < 0 || put_on(u, out, &d) < 0
                 ? -1
                 : 0;
    struct timespec times[2] = {t, t};
    int saved = errno;
    if (rc == 0)
        futimens(out, times);
    close(out);
    errno = saved;
    u->c->files++;
    return rc;
}

static int unpack_link(struct unpack *u)
{
    if (take_name(u) < 0)
        return -1;
    int dir = u->dirs[u->depth];
    struct dress d = take_dress(u);
    if (take_text(u, u->target, sizeof u->target) < 0)
        return -1;
    if ((unlinkat(dir, u->name, 0) < 0 && errno != ENOENT) ||
        symlinkat(u->target, dir, u->name) < 0)
        return -1;
    u->c->links++;
    if (u->tree->ids.count == 0 || geteuid() != 0)
        return 0;
    return fchownat(dir, u->name, ab_file_outside(&u->tree->ids, d.uid),
                    ab_file_outside(&u->tree->ids, d.gid), AT_SYMLINK_NOFOLLOW);
}

static int enter_dir(struct unpack *u)
{
    if (take_name(u) < 0)
        return -1;
    if (u->depth > AB_FILE_DEPTH)
        return broken(u);
    int dir = u->dirs[u->depth];
    if (mkdirat(dir, u->name, 0700) < 0 && errno != EEXIST)
        return -1;
    int fd = openat(dir, u->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    u->dirs[++u->depth] = fd;
    return 0;
}

/* The mode last: a directory without write permission must be filled first. */
static int leave_dir(struct unpack *u)
{
    if (u->depth == 0)
        return broken(u);
    int fd = u->dirs[u->depth--];
    int rc = unpack_attrs(u, fd);
    struct dress d = take_dress(u);
    if (rc == 0)
        rc = u->broken ? -1 : put_on(u, fd, &d);
    int saved = errno;
    close(fd);
    errno = saved;
    u->c->dirs++;
    return rc;
}

static int unpack_all(struct unpack *u)
{
    for (;;) {
        int rc;
        switch (take_int(u, 1)) {
        case 'f':
            rc = unpack_file(u);
            break;
        case 'l':
            rc = unpack_link(u);
            break;
        case 'd':
            rc = enter_dir(u);
            break;
        case 'e':
            rc = leave_dir(u);
            break;
        case '.':
            return u->depth == 0 ? 0 : broken(u);
        default:
            return broken(u);
        }
        if (rc < 0)
            return -1;
    }
}

int ab_file_unpack(const struct ab_tree *t, const char *path, int fd,
                   struct ab_file_copy *copy, struct ab_err *err)
{
    if (ab_file_mkdir(t, path, true, 0755, err) < 0)
        return -1;
    int top = ab_file_open(t, path, O_RDONLY | O_DIRECTORY, 0);
    if (top < 0)
        return ab_err_sys(err, errno, "%s", path);
    struct unpack *u = ab_xcalloc(1, sizeof *u);
    u->tree = t;
    u->fd = fd;
    u->c = copy;
    u->dirs[0] = top;
    int rc = unpack_all(u);
    if (rc < 0 && u->broken)
        ab_err_set(err, AB_EPROTOCOL, "the copy to %s was cut off", path);
    else if (rc < 0)
        rc = ab_file_copy_failed(copy, "a stream", u->name, path, err);
    while (u->depth >= 0)
        close(u->dirs[u->depth--]);
    free(u);
    return rc;
}
