/* Runs of words: what is copied is found, however it is formatted; what is new is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/runs.h"

static const char corpus[] = "One two, three FOUR five six seven eight nine ten";

static struct ab_runs_found look(const char *text)
{
    struct ab_sieve s;
    ab_sieve_init(&s, 16);
    assert_int_equal(ab_runs_add(&s, corpus, strlen(corpus), 4), 7);
    struct ab_runs_found found = ab_runs_look(&s, text, strlen(text), 4);
    ab_sieve_fini(&s);
    return found;
}

static void finds_a_copy_in_other_dress(void **state)
{
    (void)state;
    const char *text = "before: three\n  four(five) SIX; after words that are new";
    struct ab_runs_found found = look(text);
    assert_int_equal(found.hits, 1);
    assert_int_equal(found.words, 4);
    assert_memory_equal(text + found.from, "three\n  four(five) SIX",
                        found.to - found.from);
}

static void finds_the_longest_passage(void **state)
{
    (void)state;
    struct ab_runs_found found =
        look("one two three four x five six seven eight nine ten");
    assert_int_equal(found.all, 8);
    assert_int_equal(found.hits, 4);
    assert_int_equal(found.words, 6);
}

static void words_in_another_order_are_new(void **state)
{
    (void)state;
    assert_int_equal(look("four three two one ten nine eight seven").hits, 0);
    assert_int_equal(look("one two three").all, 0);
    assert_int_equal(look("").all, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_a_copy_in_other_dress),
        cmocka_unit_test(finds_the_longest_passage),
        cmocka_unit_test(words_in_another_order_are_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
