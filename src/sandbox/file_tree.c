/* file_tree.c - whole trees: manifests and copies. A directory is entered by one name
 * below a descriptor that is open already and never through a link, so no rename can lead
 * the walk away. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/file.h"
#include "sandbox/file_body.h"

struct walk {
    const struct ab_tree *tree;
    size_t max, seen;
    ab_file_visit visit;
    void *arg;
    struct ab_err *err;
    char path[8192];
};

static bool is_dot(const char *name)
{
    return !strcmp(name, ".") || !strcmp(name, "..");
}

static DIR *enter(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d && fd >= 0)
        close(fd);
    return d;
}

static int walk_dir(struct walk *w, DIR *d, size_t len, int depth);

static int walk_subdir(struct walk *w, int dir, const char *name, size_t len, int depth)
{
    if (depth == AB_FILE_DEPTH)
        return ab_err_set(w->err, AB_ETOOBIG, "more than %d folders deep: %s",
                          AB_FILE_DEPTH, w->path);
    DIR *sub = enter(dir, name);
    if (!sub)
        return ab_file_is_closed(w->tree, dir, name)
                   ? ab_err_sys(w->err, EACCES, "%s", w->path)
                   : 0;
    int rc = walk_dir(w, sub, len, depth + 1);
    closedir(sub);
    return rc;
}

static int walk_dir(struct walk *w, DIR *d, size_t len, int depth)
{
    struct dirent *e;
    int rc = 0;
    while (rc == 0 && (e = readdir(d))) {
        struct stat raw;
        struct ab_file_stat st;
        if (is_dot(e->d_name))
            continue;
        bool gone = fstatat(dirfd(d), e->d_name, &raw, AT_SYMLINK_NOFOLLOW) < 0;
        if (gone && !ab_file_is_closed(w->tree, dirfd(d), e->d_name))
            continue;
        int n = snprintf(w->path + len, sizeof w->path - len, "%s%s", len ? "/" : "",
                         e->d_name);
        if (++w->seen > w->max || len + (size_t)n >= sizeof w->path)
            return ab_err_set(w->err, AB_ETOOBIG,
                              "more than %zu entries, or a path that is too long",
                              w->max);
        if (gone)
            return ab_err_sys(w->err, EACCES, "%s", w->path);
        ab_file_fill_stat(w->tree, &raw, &st);
        rc = w->visit(w->arg, w->path, &st);
        if (rc == 0 && st.type == 'd')
            rc = walk_subdir(w, dirfd(d), e->d_name, len + (size_t)n, depth);
    }
    return rc;
}

static DIR *open_start(const struct ab_tree *t, const char *path, struct ab_err *err)
{
    int fd = ab_file_open(t, path, O_RDONLY | O_DIRECTORY, 0);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        ab_err_sys(err, errno, "%s", path);
        if (fd >= 0)
            close(fd);
    }
    return d;
}

int ab_file_walk(const struct ab_tree *t, const char *path, size_t max,
                 ab_file_visit visit, void *arg, struct ab_err *err)
{
    DIR *d = open_start(t, path, err);
    if (!d)
        return -1;
    struct walk *w = ab_xcalloc(1, sizeof *w);
    *w = (struct walk){.tree = t, .max = max, .visit = visit, .arg = arg, .err = err};
    int rc = walk_dir(w, d, 0, 0);
    free(w);
    closedir(d);
    return rc;
}

struct copying {
    const struct ab_tree *src, *dst;
    struct ab_file_copy *c;
    size_t entries;
    char top[256]; /* the entry of the start that is copied, for errors */
};

/* Owner and mode of a copy are those of the original, as seen inside. */
static int dress(const struct copying *k, int fd, const struct stat *st)
{
    struct ab_file_stat in;
    ab_file_fill_stat(k->src, st, &in);
    if (k->dst->ids.count > 0 && geteuid() == 0 &&
        fchown(fd, ab_file_outside(&k->dst->ids, in.uid),
               ab_file_outside(&k->dst->ids, in.gid)) < 0)
        return -1;
    /* On the host a set-user-id bit of the sandbox would be the host's. */
    return fchmod(fd, st->st_mode & (k->dst->ids.count ? 07777 : 0777));
}

/* Counts bytes against the cap. */
static int spend(const struct copying *k, size_t bytes)
{
    if ((k->c->bytes += bytes) <= k->c->max_bytes)
        return 0;
    errno = E2BIG;
    return -1;
}

static int copy_bytes(const struct copying *k, int in, int out, off_t size)
{
    static _Thread_local char piece[AB_FILE_PIECE];
    struct ab_file_data data = {.fd = in, .size = size};
    off_t at;
    ssize_t n;
    while ((n = ab_file_next_data(&data, piece, &at)) > 0)
        if (spend(k, (size_t)n) < 0 || pwrite(out, piece, (size_t)n, at) != n)
            return -1;
    return n < 0 ? -1 : ftruncate(out, size);
}

struct attr_copy {
    const struct copying *k;
    int out;
};

static int copy_attr(void *arg, const char *name, const void *value, size_t len)
{
    const struct attr_copy *to = arg;
    return spend(to->k, len) < 0 ? -1 : ab_file_set_attr(to->out, name, value, len);
}

static int copy_attrs(const struct copying *k, int in, int out)
{
    struct attr_copy to = {.k = k, .out = out};
    return ab_file_each_attr(in, copy_attr, &to);
}

/* Only what is done to the destination is done as its root: the source may be a folder of
 * the host that only ours may read. */
static int finish_dir(const struct copying *k, int in, int out, const struct stat *st)
{
    bool entered = ab_file_enter(k->dst);
    int rc = copy_attrs(k, in, out) < 0 ? -1 : dress(k, out, st);
    ab_file_leave(entered);
    return rc;
}

static int write_file(struct copying *k, int in, const struct stat *st, int to,
                      const char *name)
{
    if (unlinkat(to, name, 0) < 0 && errno != ENOENT)
        return -1;
    int out =
        openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (out < 0)
        return -1;
    int rc = copy_bytes(k, in, out, st->st_size) < 0 || copy_attrs(k, in, out) < 0 ||
                     dress(k, out, st) < 0
                 ? -1
                 : 0;
    if (rc == 0) {
        struct timespec times[2] = {st->st_mtim, st->st_mtim};
        futimens(out, times);
        k->c->files++;
    }
    int saved = errno;
    close(out);
    errno = saved;
    return rc;
}

/* What could not be opened. */
static int pass_by(const struct copying *k, int from, const char *name)
{
    if (ab_file_is_closed(k->src, from, name))
        return -1;
    k->c->skipped++;
    return 0;
}

static int copy_file(struct copying *k, int from, const char *name, int to)
{
    struct stat st;
    int in =
        openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (in < 0)
        return pass_by(k, from, name);
    if (fstat(in, &st) < 0 || !S_ISREG(st.st_mode)) {
        close(in);
        k->c->skipped++;
        return 0;
    }
    bool entered = ab_file_enter(k->dst);
    int rc = write_file(k, in, &st, to, name);
    int saved = errno;
    ab_file_leave(entered);
    close(in);
    errno = saved;
    return rc;
}

static int make_link(struct copying *k, const char *target, int to, const char *name,
                     const struct stat *st)
{
    if ((unlinkat(to, name, 0) < 0 && errno != ENOENT) || symlinkat(target, to, name) < 0)
        return -1;
    struct ab_file_stat in;
    ab_file_fill_stat(k->src, st, &in);
    if (k->dst->ids.count > 0 && geteuid() == 0 &&
        fchownat(to, name, ab_file_outside(&k->dst->ids, in.uid),
                 ab_file_outside(&k->dst->ids, in.gid), AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    k->c->links++;
    return 0;
}

static int copy_link(struct copying *k, int from, const char *name, int to,
                     const struct stat *st)
{
    char target[4096];
    ssize_t n = readlinkat(from, name, target, sizeof target - 1);
    if (n < 0) {
        k->c->skipped++;
        return 0;
    }
    target[n] = 0;
    bool entered = ab_file_enter(k->dst);
    int rc = make_link(k, target, to, name, st);
    int saved = errno;
    ab_file_leave(entered);
    errno = saved;
    return rc;
}

/* -1 when it is not there and cannot be made. */
static int make_subdir(const struct copying *k, int to, const char *name)
{
    bool entered = ab_file_enter(k->dst);
    int out = -1;
    if (mkdirat(to, name, 0700) == 0 || errno == EEXIST)
        out = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int saved = errno;
    ab_file_leave(entered);
    errno = saved;
    return out;
}

static int copy_dir(struct copying *k, DIR *from, int to, int depth);

static int copy_subdir(struct copying *k, int from, const char *name, int to, int depth)
{
    struct stat st;
    if (depth == AB_FILE_DEPTH) {
        errno = ELOOP;
        return -1;
    }
    DIR *in = enter(from, name);
    if (!in)
        return pass_by(k, from, name);
    int out = make_subdir(k, to, name);
    int rc = out < 0 ? -1 : copy_dir(k, in, out, depth + 1);
    /* The mode last: a directory without write permission must be filled first. */
    if (rc == 0 && (fstat(dirfd(in), &st) < 0 || finish_dir(k, dirfd(in), out, &st) < 0))
        rc = -1;
    if (rc == 0)
        k->c->dirs++;
    int saved = errno;
    closedir(in);
    if (out >= 0)
        close(out);
    errno = saved;
    return rc;
}

static int copy_dir(struct copying *k, DIR *from, int to, int depth)
{
    struct dirent *e;
    int rc = 0;
    while (rc == 0 && (e = readdir(from))) {
        struct stat st;
        if (is_dot(e->d_name))
            continue;
        if (depth == 0)
            snprintf(k->top, sizeof k->top, "%s", e->d_name);
        if (fstatat(dirfd(from), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
            if (ab_file_is_closed(k->src, dirfd(from), e->d_name))
                return -1;
            continue;
        }
        if (++k->entries > k->c->max_entries) {
            errno = E2BIG;
            return -1;
        }
        if (S_ISREG(st.st_mode))
            rc = copy_file(k, dirfd(from), e->d_name, to);
        else if (S_ISDIR(st.st_mode))
            rc = copy_subdir(k, dirfd(from), e->d_name, to, depth);
        else if (S_ISLNK(st.st_mode))
            rc = copy_link(k, dirfd(from), e->d_name, to, &st);
        else
            k->c->skipped++;
    }
    return rc;
}

/* The directory that receives, made when missing. */
static int open_target(const struct ab_tree *dst, const char *to, struct ab_err *err)
{
    bool entered = ab_file_enter(dst);
    int out = -1;
    if (ab_file_mkdir(dst, to, true, 0755, err) == 0) {
        out = ab_file_open(dst, to, O_RDONLY | O_DIRECTORY, 0);
        if (out < 0)
            ab_err_sys(err, errno, "copy to %s", to);
    }
    ab_file_leave(entered);
    return out;
}

int ab_file_copy_failed(const struct ab_file_copy *copy, const char *from,
                        const char *top, const char *to, struct ab_err *err)
{
    if (errno == E2BIG)
        return ab_err_set(err, AB_ETOOBIG,
                          "the tree has more than %zu entries or %llu bytes",
                          copy->max_entries, (unsigned long long)copy->max_bytes);
    if (errno == ELOOP)
        return ab_err_set(err, AB_ETOOBIG, "more than %d folders deep: %s/%s",
                          AB_FILE_DEPTH, from, top);
    return ab_err_sys(err, errno, "copy %s/%s to %s", from, top, to);
}

int ab_file_copy_tree(const struct ab_tree *src, const char *from,
                      const struct ab_tree *dst, const char *to,
                      struct ab_file_copy *copy, struct ab_err *err)
{
    struct copying k = {.src = src, .dst = dst, .c = copy};
    DIR *in = open_start(src, from, err);
    if (!in)
        return -1;
    int out = open_target(dst, to, err);
    int rc = out < 0 ? -1 : 0;
    if (rc == 0 && copy_dir(&k, in, out, 0) < 0)
        rc = ab_file_copy_failed(copy, from, k.top, to, err);
    if (out >= 0)
        close(out);
    closedir(in);
    return rc;
}
