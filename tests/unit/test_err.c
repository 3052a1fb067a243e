/* test_err.c - error values. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"

static void test_set_sys_wrap(void **state)
{
    struct ab_err err;
    (void)state;
    assert_int_equal(ab_err_set(&err, AB_EPARSE, "line %d", 3), -1);
    assert_int_equal(err.code, AB_EPARSE);
    assert_int_equal(err.sys, 0);
    assert_string_equal(err.msg, "line 3");
    assert_int_equal(ab_err_sys(&err, ENOENT, "open %s", "x"), -1);
    assert_int_equal(err.code, AB_ENOTFOUND);
    assert_int_equal(err.sys, ENOENT);
    assert_string_equal(err.msg, "open x: No such file or directory");
    assert_int_equal(ab_err_wrap(&err, "task %s", "t"), -1);
    assert_string_equal(err.msg, "task t: open x: No such file or directory");
    assert_int_equal(err.code, AB_ENOTFOUND);
}

static void test_codes_of_errno(void **state)
{
    static const struct {
        int errnum;
        enum ab_errcode code;
    } cases[] = {
        {ENOSPC, AB_EFULL},         {EDQUOT, AB_EFULL}, {EACCES, AB_EDENIED},
        {EISDIR, AB_EINVALID},      {EIO, AB_EIO},      {-ETIMEDOUT, AB_ETIMEOUT},
        {ENAMETOOLONG, AB_ETOOBIG}, {EBADF, AB_ESYS},
    };
    struct ab_err err;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ab_err_sys(&err, cases[i].errnum, "x");
        assert_int_equal(err.code, cases[i].code);
        assert_true(err.sys > 0);
    }
}

static void test_long_messages_are_cut(void **state)
{
    struct ab_err err;
    char longest[1000];
    (void)state;
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    ab_err_set(&err, AB_EIO, "%s", longest);
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
    ab_err_sys(&err, EIO, "%s", longest);
    ab_err_wrap(&err, "%s", "context");
    assert_memory_equal(err.msg, "context: aaa", 12);
    ab_err_wrap(&err, "%s", longest);
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
}

static void test_names_are_distinct_words(void **state)
{
    (void)state;
    for (int i = 0; i < AB_ERRCODE_COUNT; i++) {
        const char *name = ab_err_name((enum ab_errcode)i);
        assert_non_null(name);
        assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz"), strlen(name));
        for (int j = 0; j < i; j++)
            assert_string_not_equal(name, ab_err_name((enum ab_errcode)j));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_sys_wrap),
        cmocka_unit_test(test_codes_of_errno),
        cmocka_unit_test(test_long_messages_are_cut),
        cmocka_unit_test(test_names_are_distinct_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
