/* fuzz_sse.c - the first byte says where the rest is cut; the events must not depend on
 * it. */
#include <stdlib.h>
#include <string.h>

#include "base/sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void print(struct ab_buf *out, const struct ab_sse_event *ev)
{
    ab_buf_put(out, ev->name, ev->name_len + 1);
    ab_buf_put(out, ev->data, ev->data_len + 1);
    ab_buf_put(out, ev->id, ev->id_len + 1);
    ab_buf_put(out, &ev->retry_ms, sizeof ev->retry_ms);
}

/* Feeds `step` bytes at a time, each piece in memory of its own size. */
static void run(struct ab_buf *out, const char *text, size_t size, size_t step)
{
    struct ab_sse sse;
    struct ab_sse_event ev;
    struct ab_err err;
    bool cut;
    int rc = 0;
    ab_sse_init(&sse, 1000);
    while (size > 0 && rc >= 0) {
        size_t n = step < size ? step : size, len = n;
        char *piece = ab_xstrndup(text, n);
        const char *p = piece;
        while ((rc = ab_sse_next(&sse, &p, &len, &ev, &err)) > 0)
            print(out, &ev);
        if (rc == 0 && len > 0)
            AB_BUG("bytes were left");
        free(piece);
        text += n;
        size -= n;
    }
    if (rc < 0)
        ab_buf_put(out, "too big", 7);
    else if (ab_sse_finish(&sse, &ev, &cut) > 0)
        print(out, &ev);
    ab_sse_fini(&sse);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const char *text = (const char *)data + 1;
    struct ab_buf whole, pieces;
    ab_buf_init(&whole, 0);
    ab_buf_init(&pieces, 0);
    run(&whole, text, size - 1, size);
    run(&pieces, text, size - 1, (size_t)data[0] % 17 + 1);
    if (whole.len != pieces.len ||
        (whole.len && memcmp(whole.data, pieces.data, whole.len) != 0))
        AB_BUG("the events depend on the cut");
    ab_buf_fini(&whole);
    ab_buf_fini(&pieces);
    return 0;
}
