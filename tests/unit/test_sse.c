/* test_sse.c - event streams, cut at every place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/sse.h"

static const char stream[] = "\xef\xbb\xbf: hello\r\n"
                             "data: a\r\ndata:b\r\n\r\n"
                             "event: x\ndata\n\n"
                             "id: 7\rdata:  two\r\r"
                             "retry: 12\nretry: x\ndata:[DONE]\n\n"
                             "id\n\n"
                             "event:y\n\n"
                             "unknown: z\ndata: z\n\n"
                             "data: last\nda";

static const char expected[] =
    "message|a\nb||-1;x|||-1;message| two|7|-1;message|[DONE]|7|12;"
    "message|z||12;message|last||12;cut";

static void print(struct ab_buf *out, const struct ab_sse_event *ev)
{
    char line[200];
    int n =
        snprintf(line, sizeof line, "%.*s|%.*s|%.*s|%d;", (int)ev->name_len, ev->name,
                 (int)ev->data_len, ev->data, (int)ev->id_len, ev->id, (int)ev->retry_ms);
    ab_buf_put(out, line, (size_t)n);
}

static void feed(struct ab_sse *sse, struct ab_buf *out, const char *data, size_t len)
{
    struct ab_sse_event ev;
    struct ab_err err;
    int rc;
    while ((rc = ab_sse_next(sse, &data, &len, &ev, &err)) > 0)
        print(out, &ev);
    assert_int_equal(rc, 0);
    assert_int_equal(len, 0);
}

static void finish(struct ab_sse *sse, struct ab_buf *out)
{
    struct ab_sse_event ev;
    bool cut;
    if (ab_sse_finish(sse, &ev, &cut) > 0)
        print(out, &ev);
    if (cut)
        ab_buf_put(out, "cut", 3);
    assert_string_equal(out->data, expected);
    ab_sse_fini(sse);
    ab_buf_fini(out);
}

static void test_any_two_cuts(void **state)
{
    size_t len = sizeof stream - 1;
    (void)state;
    for (size_t i = 0; i <= len; i++) {
        for (size_t j = i; j <= len; j++) {
            struct ab_sse sse;
            struct ab_buf out;
            ab_sse_init(&sse, 1 << 20);
            ab_buf_init(&out, 0);
            feed(&sse, &out, stream, i);
            feed(&sse, &out, stream + i, j - i);
            feed(&sse, &out, stream + j, len - j);
            finish(&sse, &out);
        }
    }
}

static void test_byte_by_byte(void **state)
{
    struct ab_sse sse;
    struct ab_buf out;
    (void)state;
    ab_sse_init(&sse, 1 << 20);
    ab_buf_init(&out, 0);
    for (size_t i = 0; i < sizeof stream - 1; i++)
        feed(&sse, &out, stream + i, 1);
    finish(&sse, &out);
}

static void test_caps(void **state)
{
    static const char *const cases[] = {"data: 12345678901234567890",
                                        "data:123456789\ndata:123456789\n\n"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct ab_sse sse;
        struct ab_sse_event ev;
        struct ab_err err;
        const char *data = cases[i];
        size_t len = strlen(data);
        ab_sse_init(&sse, 16);
        assert_int_equal(ab_sse_next(&sse, &data, &len, &ev, &err), -1);
        assert_int_equal(err.code, AB_ETOOBIG);
        ab_sse_fini(&sse);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_two_cuts),
        cmocka_unit_test(test_byte_by_byte),
        cmocka_unit_test(test_caps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
