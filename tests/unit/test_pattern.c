/* test_pattern.c - the matcher alone; tests/lua/pattern_test.lua compares it with stock
 * Lua. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/pattern.h"

static struct ab_err err;

/* "start-end" and the captures, or "none", or the message. Pauses every so many steps,
 * and is moved to other memory then; counts in *pauses. */
static const char *search_slices(const char *subject, const char *pattern, int64_t budget,
                                 int64_t slice, int *pauses)
{
    static char out[256];
    struct ab_match m = {.subject = subject,
                         .len = strlen(subject),
                         .budget = budget,
                         .pause_at = slice ? budget - slice : 0};
    size_t plen = strlen(pattern);
    void *mem = malloc(ab_pattern_size(plen));
    struct ab_pattern *p = ab_pattern_compile(mem, pattern, plen);
    size_t start = 0, end;
    int rc;
    while ((rc = ab_pattern_search(p, &m, &start, &end, &err)) == AB_PATTERN_PAUSED) {
        void *other = malloc(ab_pattern_size(plen));
        p = ab_pattern_move(other, p, plen);
        memset(mem, 0xff, ab_pattern_size(plen));
        free(mem);
        mem = other;
        m.pause_at = m.budget > slice ? m.budget - slice : 0;
        ++*pauses;
    }
    free(mem);
    if (rc <= 0)
        return rc == 0 ? "none" : err.msg;
    int n = snprintf(out, sizeof out, "%zu-%zu", start, end);
    for (int i = 0; i < m.level; i++) {
        const struct ab_capture *c = &m.captures[i];
        n += snprintf(out + n, sizeof out - (size_t)n, " %zu:%td", c->start, c->len);
    }
    return out;
}

static const char *search(const char *subject, const char *pattern, int64_t budget)
{
    return search_slices(subject, pattern, budget, 0, NULL);
}

static void test_matches(void **state)
{
    static const struct {
        const char *subject, *pattern, *result;
    } cases[] = {
        {"hello", "l+", "2-4"},
        {"hello", "", "0-0"},
        {"hello", "z", "none"},
        {"key = value ", "(%w+)%s*=%s*(.-)%s*$", "0-12 0:3 6:5"},
        {"f(a(b)c)d", "%b()", "1-8"},
        {"THE (quick) fox", "%f[%a]%a+%f[%A]", "0-3"},
        {"xabab", "(ab)%1", "1-5 1:2"},
        {"ab", "()b()", "1-2 1:-2 2:-2"},
        {"a-z", "[a%-z]+$", "0-3"},
        {"]", "[]]", "0-1"},
        {"abc", "(a*(.)%w(%s*))", "0-3 0:3 1:1 3:0"},
        {"aaab", ".-b", "0-4"},
        {"a", "(", "0-0 0:-1"},
        {"a", ")", "invalid pattern capture"},
        {"a", "%", "malformed pattern (ends with '%')"},
        {"a", "[a", "malformed pattern (missing ']')"},
        {"a", "b[a", "none"},
        {"a", "%1", "invalid capture index %1"},
        {"a", "%f", "missing '[' after '%f' in pattern"},
        {"a", "%ba", "malformed pattern (missing arguments to '%b')"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int pauses = 0;
        assert_string_equal(search(cases[i].subject, cases[i].pattern, 1000),
                            cases[i].result);
        assert_string_equal(
            search_slices(cases[i].subject, cases[i].pattern, 1000, 1, &pauses),
            cases[i].result);
    }
}

static void test_a_costly_one_pauses(void **state)
{
    char subject[2001];
    int pauses = 0;
    (void)state;
    memset(subject, 'x', 2000);
    subject[2000] = '\0';
    search_slices(subject, ".-.-.-y", 1000000, 1000, &pauses);
    assert_int_equal(err.code, AB_ELIMIT);
    assert_int_equal(pauses, 999);
    pauses = 0;
    assert_string_equal(search_slices(subject, "(.-)(.-)x$", 100000000, 500, &pauses),
                        "0-2000 0:0 0:1999");
    assert_true(pauses > 5);
}

static void test_budget(void **state)
{
    char subject[2001];
    (void)state;
    memset(subject, ' ', 2000);
    subject[0] = subject[1999] = 'x';
    subject[2000] = '\0';
    assert_string_equal(search(subject, "%s*(.-)%s*$", 10000000), "0-2000 0:2000");
    search(subject, "%s*(.-)%s*$", 100000);
    assert_int_equal(err.code, AB_ELIMIT);
    /* Twenty ways to be lazy are an exponential number of paths. */
    search(subject, ".-.-.-.-.-.-.-.-.-.-y", 1000000);
    assert_int_equal(err.code, AB_ELIMIT);
}

static void test_captures_are_bounded(void **state)
{
    char pattern[200] = "";
    (void)state;
    for (int i = 0; i < 32; i++)
        strcat(pattern, "(a?)");
    assert_memory_equal(search("b", pattern, 1000), "0-0 0:0", 7);
    strcat(pattern, "()");
    assert_string_equal(search("b", pattern, 1000), "too many captures");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matches),
        cmocka_unit_test(test_a_costly_one_pauses),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_captures_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
