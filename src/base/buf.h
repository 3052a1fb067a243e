/* buf.h - growable bytes with a cap, always NUL-terminated.
 *
 *     struct ab_buf b;
 *     ab_buf_init(&b, 16 << 20);
 *     if (ab_buf_append(&b, data, n, &err) < 0)   // AB_ETOOBIG: nothing was appended
 *         ...
 *     ab_buf_fini(&b);
 *
 * Whatever a server, a sandbox or a model can size goes through ab_buf_append with a cap.
 * Text that we make ourselves goes through ab_buf_put, into a buffer without one.
 */
#ifndef AB_BASE_BUF_H
#define AB_BASE_BUF_H

#include "base/err.h"

#define AB_BUF_NOMAX SIZE_MAX

struct ab_buf {
    char *data; /* owns; NULL until the first byte arrives */
    size_t len;
    size_t cap; /* bytes allocated, the final NUL included */
    size_t max; /* len never exceeds it */
};

/* max_bytes 0 means no cap. Allocates nothing. */
void ab_buf_init(struct ab_buf *b, size_t max_bytes);

/* Releases the bytes; the buffer is as after ab_buf_init, with the same cap. */
void ab_buf_fini(struct ab_buf *b);

/* Forgets the bytes and keeps the memory. */
void ab_buf_clear(struct ab_buf *b);

/* All or nothing: -1 with AB_ETOOBIG when the cap would be exceeded. */
int ab_buf_append(struct ab_buf *b, const void *data, size_t len, struct ab_err *err)
    AB_MUST_CHECK;

/* Cannot fail: going over the cap is a bug. */
void ab_buf_put(struct ab_buf *b, const void *data, size_t len);
void ab_buf_putc(struct ab_buf *b, char c);

/* Room for len more bytes at the end, to be written by the caller, who then
 * calls ab_buf_advance. Borrowed until the next call. */
char *ab_buf_reserve(struct ab_buf *b, size_t len);
void ab_buf_advance(struct ab_buf *b, size_t len);

/* Drops the first len bytes. */
void ab_buf_consume(struct ab_buf *b, size_t len);

/* Gives the bytes (free() them; never NULL) and leaves the buffer empty. */
char *ab_buf_steal(struct ab_buf *b, size_t *len);

#endif
