/* test_utf8.c - validity, replacement, cutting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"

#define MARK "\xef\xbf\xbd"

static void test_scrub(void **state)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"", ""},
        {"plain ascii, longer than eight", "plain ascii, longer than eight"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\xff\xfe", MARK MARK},
        {"\xc0\xaf", MARK MARK},
        {"\xed\xa0\x80", MARK MARK MARK},
        {"\xe2\x82", MARK},
        {"a\xe2\x82z", "a" MARK "z"},
        {"\xf0\x9f\x98", MARK},
        {"\xf4\x90\x80\x80", MARK MARK MARK MARK},
        {"\xf0\x80\x80\x80", MARK MARK MARK MARK},
        {"\xe0\x9f\xbf", MARK MARK MARK},
        {"12345678\x80", "12345678" MARK},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ab_buf b;
        size_t len = strlen(cases[i].in);
        ab_buf_init(&b, 0);
        ab_utf8_scrub(&b, cases[i].in, len);
        assert_string_equal(b.data ? b.data : "", cases[i].out);
        bool same = strcmp(cases[i].in, cases[i].out) == 0;
        assert_int_equal(ab_utf8_valid_prefix(cases[i].in, len) == len, same);
        assert_int_equal(ab_utf8_count(cases[i].in, len), ab_utf8_count(b.data, b.len));
        ab_buf_fini(&b);
    }
}

static void test_every_code_point_comes_back(void **state)
{
    (void)state;
    for (uint32_t cp = 0; cp <= 0x10ffff; cp++) {
        char s[4];
        uint32_t back;
        if (cp >= 0xd800 && cp <= 0xdfff)
            continue;
        int n = ab_utf8_encode(cp, s);
        assert_int_equal(ab_utf8_decode(s, (size_t)n, &back), n);
        assert_int_equal(back, cp);
        if (n > 1)
            assert_int_equal(ab_utf8_decode(s, (size_t)n - 1, &back), 1 - n);
    }
}

static void test_cutting(void **state)
{
    const char *s =
        "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z"; /* 1 + 2 + 3 + 4 + 1 bytes */
    static const size_t cut[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};
    static const size_t prefix[] = {0, 1, 3, 6, 10, 11, 11};
    (void)state;
    for (size_t i = 0; i < sizeof cut / sizeof cut[0]; i++)
        assert_int_equal(ab_utf8_cut(s, 11, i), cut[i]);
    for (size_t i = 0; i < sizeof prefix / sizeof prefix[0]; i++)
        assert_int_equal(ab_utf8_prefix(s, 11, i), prefix[i]);
    assert_int_equal(ab_utf8_cut("\x80\x80\x80\x80\x80", 5, 4), 4);
    assert_int_equal(ab_utf8_cut("\xf0\x9f\x98", 3, 2), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scrub),
        cmocka_unit_test(test_every_code_point_comes_back),
        cmocka_unit_test(test_cutting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
