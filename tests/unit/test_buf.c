/* test_buf.c - growable bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"

static void test_grows_and_stays_terminated(void **state)
{
    struct ab_buf b;
    (void)state;
    ab_buf_init(&b, 0);
    assert_null(b.data);
    for (int i = 0; i < 10000; i++)
        ab_buf_put(&b, "abc", 3);
    assert_int_equal(b.len, 30000);
    assert_int_equal(strlen(b.data), 30000);
    ab_buf_putc(&b, '!');
    assert_string_equal(b.data + 29997, "abc!");
    ab_buf_clear(&b);
    assert_string_equal(b.data, "");
    ab_buf_fini(&b);
    assert_null(b.data);
}

static void test_cap_is_all_or_nothing(void **state)
{
    struct ab_buf b;
    struct ab_err err;
    (void)state;
    ab_buf_init(&b, 5);
    assert_int_equal(ab_buf_append(&b, "abc", 3, &err), 0);
    assert_int_equal(ab_buf_append(&b, "def", 3, &err), -1);
    assert_int_equal(err.code, AB_ETOOBIG);
    assert_string_equal(b.data, "abc");
    assert_int_equal(ab_buf_append(&b, "de", 2, &err), 0);
    assert_int_equal(ab_buf_append(&b, "", 0, &err), 0);
    assert_int_equal(b.len, 5);
    ab_buf_fini(&b);
    assert_int_equal(b.max, 5);
}

static void test_reserve_consume_steal(void **state)
{
    struct ab_buf b;
    size_t len;
    (void)state;
    ab_buf_init(&b, 0);
    memcpy(ab_buf_reserve(&b, 6), "012345", 6);
    ab_buf_advance(&b, 6);
    ab_buf_consume(&b, 0);
    ab_buf_consume(&b, 4);
    assert_string_equal(b.data, "45");
    char *s = ab_buf_steal(&b, &len);
    assert_string_equal(s, "45");
    assert_int_equal(len, 2);
    assert_int_equal(b.len, 0);
    free(s);
    s = ab_buf_steal(&b, NULL);
    assert_string_equal(s, "");
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grows_and_stays_terminated),
        cmocka_unit_test(test_cap_is_all_or_nothing),
        cmocka_unit_test(test_reserve_consume_steal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
