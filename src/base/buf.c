#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

void ab_buf_init(struct ab_buf *b, size_t max_bytes)
{
    *b = (struct ab_buf){.max = max_bytes ? max_bytes : AB_BUF_NOMAX};
}

void ab_buf_fini(struct ab_buf *b)
{
    free(b->data);
    *b = (struct ab_buf){.max = b->max};
}

void ab_buf_clear(struct ab_buf *b)
{
    b->len = 0;
    if (b->data)
        b->data[0] = '\0';
}

char *ab_buf_reserve(struct ab_buf *b, size_t len)
{
    if (len >= SIZE_MAX / 2 - b->len)
        AB_BUG("buffer of %zu bytes asked to grow by %zu", b->len, len);
    size_t need = b->len + len + 1;
    if (need > b->cap) {
        size_t cap = b->cap ? b->cap + b->cap / 2 : 64;
        b->cap = cap > need ? cap : need;
        b->data = ab_xrealloc(b->data, b->cap);
    }
    return b->data + b->len;
}

void ab_buf_advance(struct ab_buf *b, size_t len)
{
    if (b->len + len >= b->cap)
        AB_BUG("advanced over the reserved room");
    b->len += len;
    b->data[b->len] = '\0';
}

int ab_buf_append(struct ab_buf *b, const void *data, size_t len, struct ab_err *err)
{
    if (len > b->max - b->len)
        return ab_err_set(err, AB_ETOOBIG, "more than %zu bytes", b->max);
    if (len)
        memcpy(ab_buf_reserve(b, len), data, len);
    else
        ab_buf_reserve(b, 0);
    ab_buf_advance(b, len);
    return 0;
}

void ab_buf_put(struct ab_buf *b, const void *data, size_t len)
{
    struct ab_err err;
    if (len && len < b->cap - b->len && len <= b->max - b->len) { /* nearly always */
        memcpy(b->data + b->len, data, len);
        b->len += len;
        b->data[b->len] = '\0';
        return;
    }
    if (ab_buf_append(b, data, len, &err) < 0)
        AB_BUG("%s", err.msg);
}

void ab_buf_putc(struct ab_buf *b, char c)
{
    if (b->len + 1 < b->cap && b->len < b->max) {
        b->data[b->len++] = c;
        b->data[b->len] = '\0';
        return;
    }
    ab_buf_put(b, &c, 1);
}

void ab_buf_consume(struct ab_buf *b, size_t len)
{
    if (len > b->len)
        AB_BUG("consumed %zu of %zu bytes", len, b->len);
    if (len == 0)
        return;
    memmove(b->data, b->data + len, b->len - len + 1);
    b->len -= len;
}

char *ab_buf_steal(struct ab_buf *b, size_t *len)
{
    ab_buf_reserve(b, 0)[0] = '\0';
    char *data = b->data;
    if (len)
        *len = b->len;
    *b = (struct ab_buf){.max = b->max};
    return data;
}
