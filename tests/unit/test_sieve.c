/* What was added is always found; of what was not, next to nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/sieve.h"

static void test_members_and_strangers(void **state)
{
    (void)state;
    struct ab_sieve s;
    char text[64];
    int taken = 0, repeated = 0;
    ab_sieve_init(&s, 20); /* a million bits, ten thousand texts */
    for (int i = 0; i < 10000; i++) {
        int n = snprintf(text, sizeof text, "chatcmpl-%d", i);
        repeated += ab_sieve_add(&s, text, (size_t)n);
    }
    for (int i = 0; i < 10000; i++) {
        int n = snprintf(text, sizeof text, "chatcmpl-%d", i);
        assert_true(ab_sieve_has(&s, text, (size_t)n));
        n = snprintf(text, sizeof text, "chatcmpl-%d", i + 10000);
        taken += ab_sieve_has(&s, text, (size_t)n);
    }
    assert_true(repeated < 10);
    assert_true(taken < 10);
    ab_sieve_fini(&s);
}

static void test_every_byte_counts(void **state)
{
    (void)state;
    struct ab_sieve s;
    char text[20] = {0};
    ab_sieve_init(&s, 16);
    assert_false(ab_sieve_add(&s, text, 0));
    for (size_t len = 1; len <= sizeof text; len++)
        assert_false(ab_sieve_add(&s, text, len));
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = 1;
        assert_false(ab_sieve_add(&s, text, sizeof text));
        text[i] = 0;
    }
    assert_true(ab_sieve_add(&s, text, sizeof text));
    ab_sieve_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members_and_strangers),
        cmocka_unit_test(test_every_byte_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
