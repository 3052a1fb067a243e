#include "sandbox/file_diff.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#define CHUNK    65536
#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct walk {
    const struct ab_diff *d;
    struct ab_err *err;
    size_t seen;
    char path[8192];
};

/* The same directory in each of the trees; -1 where it is none. */
struct place {
    int now, base, count;
    int up[AB_DIFF_UPPERS];
    bool opaque; /* names of the base may be gone without a trace of their own */
};

struct names {
    char **list; /* own */
    size_t count, room;
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_names(struct names *n, int dir)
{
    int fd = dir < 0 ? -1 : openat(dir, ".", OPEN_DIR);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;
    while (d && (e = readdir(d))) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        if (n->count == n->room) {
            n->room = n->room ? n->room * 2 : 64;
            n->list = ab_xrealloc(n->list, n->room * sizeof *n->list);
        }
        n->list[n->count++] = ab_xstrndup(e->d_name, strlen(e->d_name));
    }
    if (d)
        closedir(d);
    else if (fd >= 0)
        close(fd);
}

static void free_names(struct names *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->list[i]);
    free(n->list);
}

static void close_place(struct place *p)
{
    for (int i = 0; i < p->count; i++)
        if (p->up[i] >= 0)
            close(p->up[i]);
    if (p->now >= 0)
        close(p->now);
    if (p->base >= 0)
        close(p->base);
}

static bool is_opaque(int dir)
{
    char value;
    return (fgetxattr(dir, "trusted.overlay.opaque", &value, 1) == 1 ||
            fgetxattr(dir, "user.overlay.opaque", &value, 1) == 1) &&
           value == 'y';
}

static int open_below(int dir, const char *name)
{
    return dir < 0 ? -1 : openat(dir, name, OPEN_DIR);
}

static void enter(const struct place *from, const char *name, struct place *to)
{
    *to = (struct place){.now = open_below(from->now, name),
                         .base = open_below(from->base, name),
                         .count = from->count};
    for (int i = 0; i < from->count; i++) {
        to->up[i] = open_below(from->up[i], name);
        to->opaque = to->opaque || (to->up[i] >= 0 && is_opaque(to->up[i]));
    }
}

static int open_file(int dir, const char *name)
{
    struct stat st;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool same_bytes(int a_dir, int b_dir, const char *name)
{
    static _Thread_local char a[CHUNK], b[CHUNK];
    int fa = open_file(a_dir, name), fb = open_file(b_dir, name);
    bool same = fa >= 0 && fb >= 0;
    for (ssize_t n = 1; same && n > 0;) {
        n = read(fa, a, sizeof a);
        same = n >= 0 && read(fb, b, sizeof b) == n && memcmp(a, b, (size_t)n) == 0;
    }
    if (fa >= 0)
        close(fa);
    if (fb >= 0)
        close(fb);
    return same;
}

static bool same_target(int a_dir, int b_dir, const char *name)
{
    char a[4096], b[4096];
    ssize_t n = readlinkat(a_dir, name, a, sizeof a);
    return n >= 0 && readlinkat(b_dir, name, b, sizeof b) == n &&
           memcmp(a, b, (size_t)n) == 0;
}

static bool same(const struct place *p, const char *name, const struct stat *a,
                 const struct stat *b)
{
    if (a->st_mode != b->st_mode || a->st_uid != b->st_uid || a->st_gid != b->st_gid)
        return false;
    if (S_ISREG(a->st_mode))
        return a->st_size == b->st_size && same_bytes(p->now, p->base, name);
    if (S_ISLNK(a->st_mode))
        return same_target(p->now, p->base, name);
    return S_ISDIR(a->st_mode) || a->st_rdev == b->st_rdev;
}

static int tell(struct walk *w, enum ab_diff_kind kind, const struct stat *st)
{
    struct ab_file_stat seen;
    if (++w->seen > w->d->max)
        return ab_err_set(w->err, AB_ETOOBIG, "more than %zu differences", w->d->max);
    ab_file_fill_stat(kind == AB_DIFF_REMOVED ? &w->d->base : &w->d->now, st, &seen);
    return w->d->visit(w->d->arg, w->path, kind, &seen);
}

static int walk_place(struct walk *w, const struct place *p, size_t len, int depth);

static int look_at(struct walk *w, const struct place *p, const char *name, size_t len,
                   int depth)
{
    struct stat now, was;
    bool is = fstatat(p->now, name, &now, AT_SYMLINK_NOFOLLOW) == 0;
    bool had = p->base >= 0 && fstatat(p->base, name, &was, AT_SYMLINK_NOFOLLOW) == 0;
    int rc = 0;
    if (is && !had)
        rc = tell(w, AB_DIFF_ADDED, &now);
    else if (!is && had)
        rc = tell(w, AB_DIFF_REMOVED, &was);
    else if (is && !same(p, name, &now, &was))
        rc = tell(w, AB_DIFF_CHANGED, &now);
    if (rc < 0 || !is || !S_ISDIR(now.st_mode))
        return rc;
    if (depth == AB_FILE_DEPTH)
        return ab_err_set(w->err, AB_ETOOBIG, "more than %d folders deep: %s",
                          AB_FILE_DEPTH, w->path);
    struct place below;
    enter(p, name, &below);
    if (below.now >= 0)
        rc = walk_place(w, &below, len, depth + 1);
    else if (faccessat(p->now, name, R_OK | X_OK, AT_EACCESS) < 0 &&
             ab_file_is_closed(&w->d->now, p->now, name))
        rc = ab_err_sys(w->err, EACCES, "%s", w->path);
    close_place(&below);
    return rc;
}

static int walk_place(struct walk *w, const struct place *p, size_t len, int depth)
{
    struct names n = {0};
    for (int i = 0; i < p->count; i++)
        add_names(&n, p->up[i]);
    if (p->opaque)
        add_names(&n, p->base);
    if (n.count)
        qsort(n.list, n.count, sizeof *n.list, compare_names);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n.count; i++) {
        if (i > 0 && !strcmp(n.list[i], n.list[i - 1]))
            continue;
        int more = snprintf(w->path + len, sizeof w->path - len, "/%s", n.list[i]);
        rc = len + (size_t)more >= sizeof w->path
                 ? ab_err_set(w->err, AB_ETOOBIG, "a path that is too long")
                 : look_at(w, p, n.list[i], len + (size_t)more, depth);
    }
    free_names(&n);
    return rc;
}

/* One pair of overlays: the root's, or /usr's. */
static int diff_part(struct walk *w, const char *up, const char *at)
{
    struct place p = {.count = w->d->count};
    p.now = openat(w->d->now.root, at, OPEN_DIR);
    p.base = openat(w->d->base.root, at, OPEN_DIR);
    for (int i = 0; i < p.count; i++)
        p.up[i] = openat(w->d->uppers[i], up, OPEN_DIR);
    bool opened = p.now >= 0 && p.base >= 0 && (p.count == 0 || p.up[0] >= 0);
    size_t len = 0;
    if (strcmp(at, ".") != 0)
        len = (size_t)snprintf(w->path, sizeof w->path, "/%s", at);
    int rc = opened ? walk_place(w, &p, len, 0)
                    : ab_err_sys(w->err, errno, "open the sandbox's files");
    close_place(&p);
    return rc;
}

int ab_file_diff(const struct ab_diff *d, struct ab_err *err)
{
    struct walk *w = ab_xcalloc(1, sizeof *w);
    *w = (struct walk){.d = d, .err = err};
    int rc = diff_part(w, "u", ".");
    if (rc == 0 && d->host_image)
        rc = diff_part(w, "v", "usr");
    free(w);
    return rc;
}
