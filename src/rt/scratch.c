#include "rt/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"

enum { EXTENT_BYTES = 8192, VIEW_BYTES = 256 * 1024 };

struct ab_scratch {
    int fd;         /* owns */
    int users;      /* logs, and who opened it */
    uint32_t made;  /* extents so far */
    uint32_t *free; /* owns */
    size_t count, cap;
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

struct ab_scratch *ab_scratch_open(const char *dir, struct ab_err *err)
{
    int fd = open_nameless(dir);
    if (fd < 0) {
        ab_err_sys(err, errno, "a scratch file in %s", dir);
        return NULL;
    }
    struct ab_scratch *s = ab_xcalloc(1, sizeof *s);
    s->fd = fd;
    s->users = 1;
    return s;
}

void ab_scratch_close(struct ab_scratch *s)
{
    if (!s || --s->users > 0)
        return;
    close(s->fd);
    free(s->free);
    free(s->view);
    free(s);
}

uint64_t ab_scratch_size(const struct ab_scratch *s)
{
    return (uint64_t)s->made * EXTENT_BYTES;
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

static void give_back(struct ab_scratch_log *log, size_t keep)
{
    struct ab_scratch *s = log->scratch;
    while (log->count > keep) {
        s->free = room_for_one(s->free, s->count, &s->cap);
        s->free[s->count++] = log->extents[--log->count];
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
    log->extents = room_for_one(log->extents, log->count, &log->cap);
    log->extents[log->count++] = s->count ? s->free[--s->count] : s->made++;
}

/* How much of a log's bytes from `at` on lie together in the file, and where. */
static size_t piece_at(const struct ab_scratch_log *log, uint64_t at, size_t len,
                       off_t *where)
{
    size_t nth = (size_t)(at / EXTENT_BYTES), inside = (size_t)(at % EXTENT_BYTES);
    size_t most = EXTENT_BYTES - inside;
    *where = (off_t)log->extents[nth] * EXTENT_BYTES + (off_t)inside;
    while (most < len && nth + 1 < log->count &&
           log->extents[nth + 1] == log->extents[nth] + 1) {
        most += EXTENT_BYTES;
        nth++;
    }
    return most < len ? most : len;
}

static ssize_t write_some(int fd, const char *data, size_t len, off_t where)
{
    int errnum = AB_FAULT("scratch.write");
    if (errnum) {
        errno = errnum;
        return -1;
    }
    ssize_t n;
    do {
        n = pwrite(fd, data, len, where);
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
        off_t where;
        size_t piece = piece_at(log, at, (size_t)(end - at), &where);
        ssize_t n = write_some(log->scratch->fd, data, piece, where);
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

static int read_all(const struct ab_scratch_log *log, uint64_t at, char *buf, size_t len,
                    struct ab_err *err)
{
    while (len > 0) {
        off_t where;
        size_t piece = piece_at(log, at, len, &where);
        ssize_t n = pread(log->scratch->fd, buf, piece, where);
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
