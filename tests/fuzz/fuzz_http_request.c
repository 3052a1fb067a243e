/* fuzz_http_request.c - the first byte says where the rest is cut; what is read must not
 * depend on it, and what was taken must be what it says it is. */
#include <stdlib.h>
#include <string.h>

#include "rt/http_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void print(struct ab_buf *out, const struct ab_web_request *r)
{
    if (r->target + r->target_len > r->head.len || r->target_len == 0 ||
        memchr(r->head.data + r->target, ' ', r->target_len))
        AB_BUG("a target that is none");
    if (!r->chunked && r->length != r->body.len)
        AB_BUG("the body is not as long as was said");
    ab_buf_put(out, r->method, strlen(r->method) + 1);
    ab_buf_put(out, r->head.data + r->target, r->target_len);
    for (unsigned i = 0; i < r->nfields; i++) {
        const struct ab_web_field *f = &r->fields[i];
        if (memchr(r->head.data + f->value, '\n', f->value_len) ||
            memchr(r->head.data + f->value, '\r', f->value_len))
            AB_BUG("a field of two lines");
        ab_buf_put(out, r->head.data + f->name, f->name_len);
        ab_buf_put(out, r->head.data + f->value, f->value_len);
    }
    ab_buf_put(out, r->body.data, r->body.len);
    ab_buf_put(out, r->keep_alive ? "1" : "0", 1);
}

static void run(struct ab_buf *out, const char *text, size_t size, size_t cut)
{
    struct ab_web_parser *p = ab_web_parser_new(4096, 4096);
    enum ab_web_step step = AB_WEB_MORE;
    while (size > 0 && step != AB_WEB_REFUSED) {
        size_t n = cut < size ? cut : size, used;
        char *piece = ab_xstrndup(text, n);
        step = ab_web_parse(p, piece, n, &used);
        free(piece);
        if (used > n || (used < n && step == AB_WEB_MORE))
            AB_BUG("bytes were left");
        text += used;
        size -= used;
        if (step == AB_WEB_REQUEST) {
            struct ab_web_request r;
            ab_web_parser_take(p, &r);
            print(out, &r);
            ab_web_request_fini(&r);
        }
    }
    if (step == AB_WEB_REFUSED)
        ab_buf_put(out, "refused", 7);
    ab_web_parser_free(p);
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
        AB_BUG("what is read depends on the cut");
    ab_buf_fini(&whole);
    ab_buf_fini(&pieces);
    return 0;
}
