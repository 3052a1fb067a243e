#include "rt/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"

enum { EXTENT_BYTES = 8192, VIEW_BYTES = 256 * 1024 };

/* Extents from `first` on, in memory or in the file. */
struct region {
    uint32_t first, made, most; /* made: so far */
    uint32_t *free;             /* owns */
    size_t count, cap;
};

struct ab_scratch {
    int fd;     /* owns */
    int users;  /* logs, and who opened it */
    char *near; /* owns; the bytes of the extents that are in memory, or NULL */
    struct region in_memory, in_file;
    char *view; /* owns */
    size_t room;
};

/* File systems without nameless files get one with a name, for a moment. */
static int open_nameless(const char *dir)
{
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    char *path;
    if (asprintf(&path, "%s/.scratch-XXXXXX", dir) < 0)
        abort();
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    free(path);
    return fd;
}

struct ab_scratch *ab_scratch_open(const char *dir, size_t near_bytes, struct ab_err *err)
{
    int fd = open_nameless(dir);
    if (fd < 0) {
        ab_err_sys(err, errno, "a scratch file in %s", dir);
        return NULL;
    }
    struct ab_scratch *s = ab_xcalloc(1, sizeof *s);
    uint32_t near = (uint32_t)(near_bytes / EXTENT_BYTES);
    s->fd = fd;
    s->users = 1;
    s->in_memory.most = s->in_file.first = near;
    s->in_file.most = UINT32_MAX - near;
    if (near) /* what is not written to takes no memory */
        s->near = ab_xrealloc(NULL, (size_t)near * EXTENT_BYTES);
    return s;
}

void ab_scratch_close(struct ab_scratch *s)
{
    if (!s || --s->users > 0)
        return;
    close(s->fd);
    free(s->in_memory.free);
    free(s->in_file.free);
    free(s->near);
    free(s->view);
    free(s);
}

uint64_t ab_scratch_size(const struct ab_scratch *s)
{
    return ((uint64_t)s->in_memory.made + s->in_file.made) * EXTENT_BYTES;
}

void ab_scratch_log_init(struct ab_scratch_log *log, struct ab_scratch *scratch)
{
    *log = (struct ab_scratch_log){.scratch = scratch};
    scratch->users++;
}

static uint32_t *room_for_one(uint32_t *list, size_t count, size_t *cap)
{
    if (count < *cap)
        return list;
    *cap = *cap ? *cap * 2 : 4;
    return ab_xrealloc(list, *cap * sizeof *list);
}

static bool is_near(const struct ab_scratch *s, uint32_t extent)
{
    return extent < s->in_memory.most;
}

static void give_back(struct ab_scratch_log *log, size_t keep)
{
    struct ab_scratch *s = log->scratch;
    while (log->count > keep) {
        uint32_t extent = log->extents[--log->count];
        struct region *r = is_near(s, extent) ? &s->in_memory : &s->in_file;
        r->free = room_for_one(r->free, r->count, &r->cap);
        r->free[r->count++] = extent;
    }
}

void ab_scratch_log_fini(struct ab_scratch_log *log)
{
    if (!log->scratch)
        return;
    give_back(log, 0);
    free(log->extents);
    ab_scratch_close(log->scratch);
    *log = (struct ab_scratch_log){0};
}

static void add_extent(struct ab_scratch_log *log)
{
    struct ab_scratch *s = log->scratch;
    struct region *r = s->in_memory.count || s->in_memory.made < s->in_memory.most
                           ? &s->in_memory
                           : &s->in_file;
    log->extents = room_for_one(log->extents, log->count, &log->cap);
    log->extents[log->count++] = r->count ? r->free[--r->count] : r->first + r->made++;
}

struct piece {
    size_t len;
    char *near; /* where it is in memory, borrowed; NULL: in the file */
    off_t where;
};

/* How much of a log's bytes from `at` on lie together, and where. */
static struct piece piece_at(const struct ab_scratch_log *log, uint64_t at, size_t len)
{
    const struct ab_scratch *s = log->scratch;
    size_t nth = (size_t)(at / EXTENT_BYTES), inside = (size_t)(at % EXTENT_BYTES);
    size_t most = EXTENT_BYTES - inside;
    struct piece p = {.where = (off_t)log->extents[nth] * EXTENT_BYTES + (off_t)inside};
    bool near = is_near(s, log->extents[nth]);
    while (most < len && nth + 1 < log->count &&
           log->extents[nth + 1] == log->extents[nth] + 1 &&
           is_near(s, log->extents[nth + 1]) == near) {
        most += EXTENT_BYTES;
        nth++;
    }
    p.near = near ? s->near + p.where : NULL;
    p.len = most < len ? most : len;
    return p;
}

/* Nothing of the file is before the extents that are in memory, so that it begins with a
 * hole of their size. */
static ssize_t write_some(int fd, const char *data, const struct piece *to)
{
    if (to->near) {
        memcpy(to->near, data, to->len);
        return (ssize_t)to->len;
    }
    int errnum = AB_FAULT("scratch.write");
    if (errnum) {
        errno = errnum;
        return -1;
    }
    ssize_t n;
    do {
        n = pwrite(fd, data, to->len, to->where);
    } while (n < 0 && errno == EINTR);
    if (n == 0)
        errno = ENOSPC;
    return n;
}

static int append(struct ab_scratch_log *log, const char *data, size_t len,
                  struct ab_err *err)
{
    size_t before = log->count;
    uint64_t at = log->size, end = log->size + len;
    while ((uint64_t)log->count * EXTENT_BYTES < end)
        add_extent(log);
    while (at < end) {
        struct piece to = piece_at(log, at, (size_t)(end - at));
        ssize_t n = write_some(log->scratch->fd, data, &to);
        if (n <= 0) {
            ab_err_sys(err, errno, "write the scratch file");
            give_back(log, before);
            return -1;
        }
        data += n;
        at += (uint64_t)n;
    }
    log->size = end;
    return 0;
}

static ssize_t read_some(int fd, char *buf, const struct piece *from)
{
    if (!from->near)
        return pread(fd, buf, from->len, from->where);
    memcpy(buf, from->near, from->len);
    return (ssize_t)from->len;
}

static int read_all(const struct ab_scratch_log *log, uint64_t at, char *buf, size_t len,
                    struct ab_err *err)
{
    while (len > 0) {
        struct piece from = piece_at(log, at, len);
        ssize_t n = read_some(log->scratch->fd, buf, &from);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return ab_err_sys(err, n < 0 ? errno : EIO, "read the scratch file");
        buf += n;
        at += (uint64_t)n;
        len -= (size_t)n;
    }
    return 0;
}

/* A larger one was for once. */
static char *view_of(struct ab_scratch *s, size_t bytes)
{
    if (bytes > s->room || s->room > VIEW_BYTES) {
        free(s->view);
        s->room = bytes < VIEW_BYTES / 16 ? VIEW_BYTES / 16 : bytes;
        s->view = ab_xrealloc(NULL, s->room);
    }
    return s->view;
}

/* In one write: it costs more than the copy. */
int ab_scratch_append(struct ab_scratch_log *log, const char *between, const char *data,
                      size_t len, struct ab_err *err)
{
    size_t head = log->size > 0 ? strlen(between) : 0;
    if (head == 0)
        return append(log, data, len, err);
    char *both = view_of(log->scratch, head + len);
    memcpy(both, between, head);
    memcpy(both + head, data, len);
    return append(log, both, head + len, err);
}

const char *ab_scratch_view(const struct ab_scratch_log *log, uint64_t at, size_t len,
                            const char *before, const char *behind, size_t *total,
                            struct ab_err *err)
{
    size_t head = strlen(before), tail = strlen(behind);
    *total = head + len + tail;
    char *view = view_of(log->scratch, *total);
    memcpy(view, before, head);
    if (read_all(log, at, view + head, len, err) < 0)
        return NULL;
    memcpy(view + head + len, behind, tail);
    return view;
}
