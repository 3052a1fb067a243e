#include "guest/frames.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define CHUNK (256u << 10)

void ab_frames_init(struct ab_frames *f, int in, int out)
{
    *f = (struct ab_frames){.in = in, .out = out};
    ab_buf_init(&f->inq, 0);
    ab_buf_init(&f->outq, 0);
}

bool ab_frames_fill(struct ab_frames *f)
{
    ab_buf_consume(&f->inq, f->used);
    f->used = 0;
    for (;;) {
        char *at = ab_buf_reserve(&f->inq, CHUNK);
        ssize_t n = read(f->in, at, CHUNK);
        if (n > 0) {
            ab_buf_advance(&f->inq, (size_t)n);
            return true;
        }
        if (n == 0 || (errno != EINTR && errno != EAGAIN))
            return false;
        if (errno == EAGAIN)
            return true;
    }
}

static uint32_t get32(const char *p)
{
    const uint8_t *b = (const uint8_t *)p;
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

int ab_frames_take(struct ab_frames *f, struct ab_frame *out)
{
    size_t left = f->inq.len - f->used;
    if (left < AB_FRAME_HEAD)
        return 0;
    const char *p = f->inq.data + f->used;
    uint32_t len = get32(p);
    if (len > AB_FRAME_MAX)
        return -1;
    if (left < AB_FRAME_HEAD + (size_t)len)
        return 0;
    *out = (struct ab_frame){.type = (uint8_t)p[8],
                             .channel = get32(p + 4),
                             .data = (const uint8_t *)p + AB_FRAME_HEAD,
                             .len = len};
    f->used += AB_FRAME_HEAD + (size_t)len;
    return 1;
}

void ab_frames_put(struct ab_frames *f, enum ab_frame_type type, uint32_t channel,
                   const void *head, size_t head_len, const void *tail, size_t tail_len)
{
    ab_put_int(&f->outq, head_len + tail_len, 4);
    ab_put_int(&f->outq, channel, 4);
    ab_put_int(&f->outq, type, 1);
    if (head_len)
        ab_buf_put(&f->outq, head, head_len);
    if (tail_len)
        ab_buf_put(&f->outq, tail, tail_len);
}

bool ab_frames_flush(struct ab_frames *f)
{
    size_t done = 0;
    bool alive = true;
    while (done < f->outq.len) {
        ssize_t n = write(f->out, f->outq.data + done, f->outq.len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            alive = errno == EAGAIN;
            break;
        }
        done += (size_t)n;
    }
    ab_buf_consume(&f->outq, done);
    return alive;
}

bool ab_frames_settle(struct ab_frames *f, size_t left)
{
    while (ab_frames_flush(f)) {
        if (f->outq.len <= left)
            return true;
        struct pollfd p = {.fd = f->out, .events = POLLOUT};
        poll(&p, 1, -1);
    }
    return false;
}

uint64_t ab_take_int(struct ab_cursor *c, size_t bytes)
{
    uint64_t v = 0;
    if (c->left < bytes) {
        c->bad = true;
        c->left = 0;
        return 0;
    }
    for (size_t i = 0; i < bytes; i++)
        v |= (uint64_t)c->p[i] << (8 * i);
    c->p += bytes;
    c->left -= bytes;
    return v;
}

const char *ab_take_text(struct ab_cursor *c)
{
    const uint8_t *end = c->left ? memchr(c->p, 0, c->left) : NULL;
    if (!end) {
        c->bad = true;
        c->left = 0;
        return "";
    }
    const char *text = (const char *)c->p;
    c->left -= (size_t)(end + 1 - c->p);
    c->p = end + 1;
    return text;
}

void ab_put_int(struct ab_buf *b, uint64_t v, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ab_buf_putc(b, (char)(v >> (8 * i)));
}
