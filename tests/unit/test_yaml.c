/* test_yaml.c - scalars of the core schema, structure, and what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/yaml.h"
#include "base/yaml_scalar.h"

static void test_scalars(void **state)
{
    static const struct {
        const char *text;
        enum ab_json_kind kind;
        double value;
    } cases[] = {
        {"", AB_JSON_NULL, 0},
        {"~", AB_JSON_NULL, 0},
        {"Null", AB_JSON_NULL, 0},
        {"nUll", AB_JSON_STRING, 0},
        {"true", AB_JSON_TRUE, 0},
        {"False", AB_JSON_FALSE, 0},
        {"yes", AB_JSON_STRING, 0},
        {"on", AB_JSON_STRING, 0},
        {"22:22", AB_JSON_STRING, 0},
        {"1_000", AB_JSON_STRING, 0},
        {"010", AB_JSON_INT, 10},
        {"+12", AB_JSON_INT, 12},
        {"-7", AB_JSON_INT, -7},
        {"0x1F", AB_JSON_INT, 31},
        {"0o17", AB_JSON_INT, 15},
        {"0o18", AB_JSON_STRING, 0},
        {"0x", AB_JSON_STRING, 0},
        {"0xg", AB_JSON_STRING, 0},
        {"1.10", AB_JSON_FLOAT, 1.1},
        {".5", AB_JSON_FLOAT, 0.5},
        {"5.", AB_JSON_FLOAT, 5},
        {"+1e3", AB_JSON_FLOAT, 1000},
        {"1e", AB_JSON_STRING, 0},
        {".", AB_JSON_STRING, 0},
        {"-.inf", AB_JSON_FLOAT, -HUGE_VAL},
        {".inf", AB_JSON_FLOAT, HUGE_VAL},
        {"9223372036854775807", AB_JSON_INT, 9223372036854775807.0},
        {"9223372036854775808", AB_JSON_NUMBER, 0},
        {"2026-01-02", AB_JSON_STRING, 0},
        {"-", AB_JSON_STRING, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ab_json_node node = ab_yaml_resolve(cases[i].text, strlen(cases[i].text));
        if (node.kind != cases[i].kind)
            fail_msg("%s: kind %d", cases[i].text, node.kind);
        if (node.kind == AB_JSON_INT)
            assert_true((double)node.integer == cases[i].value);
        if (node.kind == AB_JSON_FLOAT)
            assert_true(node.number == cases[i].value);
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *text, *msg;
        size_t line, column;
    } cases[] = {
        {"a: 1\nb:\n  c: 1\n  c: 2\n", "repeated key 'c' at line 4 column 3", 4, 3},
        {"? [a]\n: 1\n", "a key must be a scalar at line 1 column 3", 1, 3},
        {"a: 1\n? *x\n: 1\n", "a key must be a scalar at line 2 column 3", 2, 3},
        {"a: !python/object 1\n", "unknown tag '!python/object' at line 1 column 4", 1,
         4},
        {"a: 1\n--- \nb: 2\n", "a second document at line 2 column 1", 2, 1},
        {"a: *b\n", "unknown alias 'b' at line 1 column 4", 1, 4},
        {"a: &a [*a]\n", "an alias inside its own anchor 'a' at line 1 column 8", 1, 8},
        {"<<: 1\n", "'<<' needs a mapping at line 1 column 5", 1, 5},
        {"<<: [{a: 1}, 2]\n", "'<<' needs mappings at line 1 column 14", 1, 14},
        {"a: b: c\n", "mapping values are not allowed in this context at line 1 column 5",
         1, 5},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ab_json doc;
        struct ab_yaml_mark mark;
        struct ab_err err;
        ab_json_init(&doc);
        assert_int_equal(
            ab_yaml_parse(&doc, cases[i].text, strlen(cases[i].text), &mark, &err), -1);
        assert_string_equal(err.msg, cases[i].msg);
        assert_int_equal(err.code, AB_EPARSE);
        assert_int_equal(mark.line, cases[i].line);
        assert_int_equal(mark.column, cases[i].column);
        ab_json_fini(&doc);
    }
}

static void assert_too_big(const char *text, size_t len)
{
    struct ab_json doc;
    struct ab_yaml_mark mark;
    struct ab_err err;
    ab_json_init(&doc);
    assert_int_equal(ab_yaml_parse(&doc, text, len, &mark, &err), -1);
    assert_int_equal(err.code, AB_ETOOBIG);
    ab_json_fini(&doc);
}

static void test_bounded(void **state)
{
    struct ab_buf b;
    (void)state;
    ab_buf_init(&b, 0);
    for (int i = 0; i < 64000; i++)
        ab_buf_putc(&b, '[');
    assert_too_big(b.data, b.len);
    ab_buf_clear(&b);
    ab_buf_put(&b, "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n", 30);
    for (char c = '1'; c < '8'; c++) {
        char line[] = "a1: &a1 [*a0,*a0,*a0,*a0,*a0,*a0,*a0,*a0,*a0,*a0]\n";
        for (char *p = line; *p; p++)
            *p = *p == '1' ? c : *p == '0' ? (char)(c - 1) : *p;
        ab_buf_put(&b, line, sizeof line - 1);
    }
    assert_too_big(b.data, b.len);
    ab_buf_clear(&b);
    for (int i = 0; i < 2000; i++)
        ab_buf_put(&b, "- &x y\n", 7);
    assert_too_big(b.data, b.len);
    ab_buf_clear(&b);
    for (int i = 0; i < 60000; i++) { /* took 8 s */
        char line[24];
        ab_buf_put(
            &b, line,
            (size_t)snprintf(line, sizeof line, "%%TAG !a%d! b%c", i, i % 2 ? 10 : 13));
    }
    assert_too_big(b.data, b.len);
    ab_buf_clear(&b);
    memset(ab_buf_reserve(&b, AB_YAML_MAX_BYTES + 1), 'x', AB_YAML_MAX_BYTES + 1);
    ab_buf_advance(&b, AB_YAML_MAX_BYTES + 1);
    assert_too_big(b.data, b.len);
    ab_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scalars),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
