/* What is alike is found among thousands that are not, and the estimate is near the
 * truth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/minhash.h"

static void test_jaccard(void **state)
{
    (void)state;
    assert_true(ab_jaccard("", 0, "", 0) == 1.0);
    assert_true(ab_jaccard("", 0, "abc", 3) == 0.0);
    assert_true(ab_jaccard("ab", 2, "ab", 2) == 1.0);
    assert_true(ab_jaccard("ab", 2, "a", 1) == 0.0);
    assert_true(ab_jaccard("abcd", 4, "bcde", 4) == 1.0 / 3);
    assert_true(ab_jaccard("aaaaaaa", 7, "aaa", 3) == 1.0);
}

/* A text that is like no other of another number. */
static size_t make(char *out, size_t size, unsigned number, unsigned changed)
{
    size_t len = 0;
    unsigned x = number * 2654435761U + 1;
    for (unsigned i = 0; i < 80; i++) {
        x = x * 1103515245U + 12345;
        unsigned word = i < changed ? ~x : x;
        len += (size_t)snprintf(out + len, size - len, "%08x ", word);
    }
    return len;
}

static void test_found_among_many(void **state)
{
    (void)state;
    enum { MANY = 2000, SIZE = 1024 };
    struct ab_minhash m;
    struct ab_sketch s;
    struct ab_near near[4];
    char text[SIZE], other[SIZE];
    ab_minhash_init(&m, 8);
    for (unsigned i = 0; i < MANY; i++) {
        ab_sketch_of(&s, text, make(text, sizeof text, i, 0));
        assert_int_equal(ab_minhash_add(&m, &s), i);
    }
    for (unsigned i = 0; i < MANY; i += 100) {
        size_t len = make(text, sizeof text, i, 4),
               other_len = make(other, sizeof other, i, 0);
        double likeness = ab_jaccard(text, len, other, other_len);
        assert_true(likeness > 0.85);
        ab_sketch_of(&s, text, len);
        assert_int_equal(ab_minhash_near(&m, &s, 0.75, near, 4), 1);
        assert_int_equal(near[0].number, i);
        assert_true(near[0].likeness > likeness - 0.12 &&
                    near[0].likeness < likeness + 0.12);
    }
    ab_sketch_of(&s, text, make(text, sizeof text, MANY + 1, 0));
    assert_int_equal(ab_minhash_near(&m, &s, 0.75, near, 4), 0);
    ab_minhash_fini(&m);
}

static void test_the_nearest_come_first(void **state)
{
    (void)state;
    struct ab_minhash m;
    struct ab_sketch s;
    struct ab_near near[3];
    char text[1024];
    ab_minhash_init(&m, 4);
    for (unsigned changed = 8; changed > 0; changed--) {
        ab_sketch_of(&s, text, make(text, sizeof text, 7, changed));
        ab_minhash_add(&m, &s);
    }
    ab_sketch_of(&s, text, make(text, sizeof text, 7, 1));
    assert_int_equal(ab_minhash_near(&m, &s, 0.5, near, 3), 3);
    assert_int_equal(near[0].number, 7);
    assert_true(near[0].likeness == 1.0);
    assert_true(near[1].likeness >= near[2].likeness);
    ab_minhash_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jaccard),
        cmocka_unit_test(test_found_among_many),
        cmocka_unit_test(test_the_nearest_come_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
