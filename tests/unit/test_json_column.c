/* test_json_column.c - one member of every object of a list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json_column.h"

static void check(const char *text, long count, const char *expected)
{
    struct ab_buf out;
    ab_buf_init(&out, 0);
    /* An exact copy, so that a sanitizer sees every byte read beyond the text. */
    size_t len = strlen(text);
    char *copy = malloc(len);
    memcpy(copy, text, len);
    assert_int_equal(ab_json_column(&out, copy, len, "content", "lp"), count);
    if (count >= 0)
        assert_string_equal(out.data, expected);
    ab_buf_fini(&out);
    free(copy);
}

static void test_columns(void **state)
{
    (void)state;
    check("[]", 0, "[]");
    check("[{\"lp\":-1.5},{\"a\":1,\"lp\":2}]", 2, "[-1.5,2]");
    check(" [ { \"lp\" : -1.5 , \"b\" : [ {\"lp\":9} ] } , { "
          "\"x\":{\"lp\":9},\"lp\":null } ] ",
          2, "[-1.5,null]");
    check(
        "{\"content\":[{\"t\":\"\\\"lp\\\":3\",\"lp\":1e-05}],\"refusal\":[{\"lp\":7}]}",
        1, "[1e-05]");
    check("[{\"l\\u0070\":1,\"lp\":2}]", 1, "[1]");
    check("{\"refusal\":null,\"content\":[{\"lp\":\"a,\\\"}]\"}]}", 1, "[\"a,\\\"}]\"]");
}

static void test_what_is_no_column(void **state)
{
    (void)state;
    check("{}", -1, NULL);
    check("{\"content\":null}", -1, NULL);
    check("[{\"x\":1}]", -1, NULL);
    check("[{\"lp\":1},{}]", -1, NULL);
    check("[{\"lp\":[1]}]", -1, NULL);
    check("[1,2]", -1, NULL);
    check("7", -1, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_what_is_no_column),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
