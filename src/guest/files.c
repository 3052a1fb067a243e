/* files.c - file requests. The container's whole tree is the root: no path leads out of
 * it, and src/sandbox/file.c keeps from devices, FIFOs and what never ends. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guest/guest.h"
#include "sandbox/file_pack.h"

#define CHUNK    65536
#define OUT_HIGH (1u << 20)

void ab_files_reply(struct guest *g, uint32_t channel, int rc, const struct ab_err *err,
                    const void *data, size_t len)
{
    struct ab_buf b;
    const char *code = rc < 0 ? ab_err_name(err->code) : "";
    ab_buf_init(&b, 0);
    ab_buf_put(&b, code, strlen(code) + 1);
    if (rc < 0) {
        ab_put_int(&b, (uint32_t)err->sys, 4);
        ab_buf_put(&b, err->msg, strlen(err->msg) + 1);
    }
    ab_frames_put(&g->frames, AB_FRAME_REPLY, channel, b.data, b.len, data, len);
    ab_buf_fini(&b);
}

static void send_data(struct guest *g, uint32_t channel, const void *data, size_t len)
{
    ab_frames_put(&g->frames, AB_FRAME_DATA, channel, data, len, NULL, 0);
    if (!ab_frames_settle(&g->frames, OUT_HIGH))
        _exit(0);
}

/* In pieces: the container's memory is the commands'. */
static int send_file(struct guest *g, uint32_t channel, int fd, const char *path,
                     uint64_t max, bool head, struct ab_err *err)
{
    static char chunk[CHUNK];
    uint64_t sent = 0;
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ab_err_sys(err, errno, "read %s", path);
        if (n == 0)
            return 0;
        if ((uint64_t)n > max - sent && !head)
            return ab_err_set(err, AB_ETOOBIG, "%s is longer than %llu bytes", path,
                              (unsigned long long)max);
        size_t take = (uint64_t)n < max - sent ? (size_t)n : (size_t)(max - sent);
        send_data(g, channel, chunk, take);
        sent += take;
        if (take < (size_t)n)
            return 0;
    }
}

static int serve_read(struct guest *g, uint32_t channel, struct ab_cursor *c,
                      struct ab_err *err)
{
    bool head = ab_take_int(c, 1) != 0;
    uint64_t max = ab_take_int(c, 8);
    const char *path = ab_take_text(c);
    struct stat st;
    int fd = ab_file_open(&g->root, path, O_RDONLY, 0);
    if (fd < 0)
        return ab_err_sys(err, errno, "%s", path);
    int rc = ab_file_check_regular(fd, path, &st, err);
    if (rc == 0 && !head && (uint64_t)st.st_size > max)
        rc = ab_err_set(err, AB_ETOOBIG, "%s is %llu bytes long, more than %llu", path,
                        (unsigned long long)st.st_size, (unsigned long long)max);
    if (rc == 0)
        rc = send_file(g, channel, fd, path, max, head, err);
    close(fd);
    return rc;
}

static int serve_write(struct guest *g, struct ab_cursor *c, struct ab_err *err)
{
    struct ab_file_write how = {.append = ab_take_int(c, 1) != 0};
    how.exclusive = ab_take_int(c, 1) != 0;
    how.mode = (int)(int32_t)ab_take_int(c, 4);
    how.uid = (int64_t)ab_take_int(c, 8);
    how.gid = (int64_t)ab_take_int(c, 8);
    const char *path = ab_take_text(c);
    return ab_file_write(&g->root, path, c->p, c->left, &how, err);
}

static void put_stat(struct ab_buf *b, const struct ab_file_stat *st)
{
    ab_put_int(b, (uint8_t)st->type, 1);
    ab_put_int(b, st->mode, 4);
    ab_put_int(b, st->uid, 4);
    ab_put_int(b, st->gid, 4);
    ab_put_int(b, st->size, 8);
    ab_put_int(b, st->ino, 8);
    ab_put_int(b, (uint64_t)st->mtime_ns, 8);
}

static int serve_stat(struct guest *g, struct ab_cursor *c, struct ab_buf *out,
                      struct ab_err *err)
{
    struct ab_file_stat st;
    char target[4096] = "";
    bool follow = ab_take_int(c, 1) != 0;
    const char *path = ab_take_text(c);
    if (ab_file_stat(&g->root, path, follow, &st, err) < 0)
        return -1;
    if (st.type == 'l' &&
        ab_file_readlink(&g->root, path, target, sizeof target, err) < 0)
        return -1;
    put_stat(out, &st);
    ab_buf_put(out, target, strlen(target) + 1);
    return 0;
}

struct listing {
    struct guest *g;
    uint32_t channel;
    struct ab_buf buf;
};

static void send_listing(struct listing *l)
{
    send_data(l->g, l->channel, l->buf.data, l->buf.len);
    ab_buf_clear(&l->buf);
}

static int list_entry(void *arg, const char *name, const struct ab_file_stat *st)
{
    struct listing *l = arg;
    put_stat(&l->buf, st);
    ab_buf_put(&l->buf, name, strlen(name) + 1);
    if (l->buf.len > CHUNK)
        send_listing(l);
    return 0;
}

static int serve_list(struct guest *g, uint32_t channel, struct ab_cursor *c,
                      struct ab_err *err)
{
    struct listing l = {.g = g, .channel = channel};
    bool recursive = ab_take_int(c, 1) != 0;
    size_t max = (size_t)ab_take_int(c, 8);
    const char *path = ab_take_text(c);
    ab_buf_init(&l.buf, 0);
    int rc = (recursive ? ab_file_walk : ab_file_list)(&g->root, path, max, list_entry,
                                                       &l, err);
    if (rc == 0 && l.buf.len)
        send_listing(&l);
    ab_buf_fini(&l.buf);
    return rc;
}

static int run_pack(struct ab_copy_job *job)
{
    return ab_file_pack(&job->root, job->path, job->fd, &job->copy, &job->err);
}

static int run_unpack(struct ab_copy_job *job)
{
    return ab_file_unpack(&job->root, job->path, job->fd, &job->copy, &job->err);
}

static void start_copy(struct guest *g, const struct ab_frame *f, struct ab_cursor *c)
{
    bool pack = f->type == AB_FRAME_PACK;
    struct ab_copy_job *job = ab_xcalloc(1, sizeof *job);
    job->work = pack ? run_pack : run_unpack;
    job->root = g->root;
    job->copy.max_bytes = ab_take_int(c, 8);
    job->copy.max_entries = (size_t)ab_take_int(c, 8);
    const char *path = ab_take_text(c);
    job->path = ab_xstrndup(path, strlen(path));
    ab_commands_copy(g, f->channel, job, pack);
}

static int serve(struct guest *g, const struct ab_frame *f, struct ab_cursor *c,
                 struct ab_buf *out, struct ab_err *err)
{
    switch (f->type) {
    case AB_FRAME_PING:
        return 0;
    case AB_FRAME_READ:
        return serve_read(g, f->channel, c, err);
    case AB_FRAME_WRITE:
        return serve_write(g, c, err);
    case AB_FRAME_STAT:
        return serve_stat(g, c, out, err);
    case AB_FRAME_LIST:
        return serve_list(g, f->channel, c, err);
    case AB_FRAME_MKDIR: {
        bool parents = ab_take_int(c, 1) != 0;
        int mode = (int)ab_take_int(c, 4);
        return ab_file_mkdir(&g->root, ab_take_text(c), parents, mode, err);
    }
    case AB_FRAME_REMOVE: {
        bool recursive = ab_take_int(c, 1) != 0;
        return ab_file_remove(&g->root, ab_take_text(c), recursive, err);
    }
    case AB_FRAME_RENAME: {
        const char *from = ab_take_text(c);
        return ab_file_rename(&g->root, from, ab_take_text(c), err);
    }
    default:
        _exit(1);
    }
}

void ab_files_serve(struct guest *g, const struct ab_frame *f)
{
    struct ab_cursor c = {.p = f->data, .left = f->len};
    struct ab_buf out;
    struct ab_err err;
    if (f->type == AB_FRAME_PACK || f->type == AB_FRAME_UNPACK) {
        start_copy(g, f, &c);
        return;
    }
    ab_buf_init(&out, 0);
    int rc = serve(g, f, &c, &out, &err);
    if (c.bad)
        _exit(1);
    ab_files_reply(g, f->channel, rc, &err, out.data, out.len);
    ab_buf_fini(&out);
}
