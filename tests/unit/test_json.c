/* test_json.c - parsing to nodes, raw slices, repair, and the writer. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"

static struct ab_json doc;
static struct ab_err err;

static int parse(const char *text)
{
    return ab_json_parse(&doc, text, strlen(text), NULL, &err);
}

static int setup(void **state)
{
    (void)state;
    ab_json_init(&doc);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ab_json_fini(&doc);
    return 0;
}

static void assert_text(size_t node, const char *text, size_t len)
{
    assert_int_equal(doc.nodes[node].len, len);
    assert_memory_equal(ab_json_text(&doc, &doc.nodes[node]), text, len);
}

static void test_nodes_lie_in_document_order(void **state)
{
    static const uint8_t kinds[] = {
        AB_JSON_OBJECT, AB_JSON_STRING, AB_JSON_ARRAY,  AB_JSON_INT,  AB_JSON_NULL,
        AB_JSON_STRING, AB_JSON_OBJECT, AB_JSON_STRING, AB_JSON_TRUE,
    };
    (void)state;
    assert_int_equal(parse(" { \"a\" : [ 1 , null ], \"b\":{}, \"\\u0000c\" :true}\n"),
                     0);
    assert_int_equal(doc.count, sizeof kinds);
    for (size_t i = 0; i < sizeof kinds; i++)
        assert_int_equal(doc.nodes[i].kind, kinds[i]);
    assert_int_equal(doc.nodes[0].len, 3);
    assert_int_equal(doc.nodes[2].len, 2);
    assert_int_equal(doc.nodes[6].len, 0);
    assert_text(7, "\0c", 2);
}

static void test_numbers(void **state)
{
    (void)state;
    assert_int_equal(
        parse("[-9223372036854775808,9223372036854775807,-0,1.0,0.1,1e-400]"), 0);
    assert_true(doc.nodes[1].integer == INT64_MIN);
    assert_true(doc.nodes[2].integer == INT64_MAX);
    assert_int_equal(doc.nodes[3].kind, AB_JSON_FLOAT);
    assert_true(signbit(doc.nodes[3].number));
    assert_int_equal(doc.nodes[4].kind, AB_JSON_FLOAT);
    assert_true(doc.nodes[5].number == 0.1);
    assert_true(doc.nodes[6].number == 0);
    assert_int_equal(
        parse("[9223372036854775808,-9223372036854775809,1e400,100000000000000000000]"),
        0);
    for (size_t i = 1; i < doc.count; i++)
        assert_int_equal(doc.nodes[i].kind, AB_JSON_NUMBER);
    assert_text(1, "9223372036854775808", 19);
    assert_text(3, "1e400", 5);
}

static void test_refused(void **state)
{
    static const char *const cases[] = {
        "",
        " ",
        "[",
        "{",
        "]",
        "[1,]",
        "[,1]",
        "{\"a\"}",
        "{a:1}",
        "{\"a\":1,}",
        "[1 2]",
        "01",
        "1.",
        "-",
        ".5",
        "+1",
        "1e",
        "0x1",
        "NaN",
        "tru",
        "truee",
        "nul",
        "\"",
        "\"a",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\ud800\"",
        "\"\\ud800\\u0041\"",
        "\"\\udc00\"",
        "1 2",
        "[1]]",
        "\"a\"b",
        "1\"a\"",
        "\"\t\"",
        "\"\xff\"",
        "\"\xed\xa0\x80\"",
        "[1}",
        "{]",
        "{\"a\":}",
        "{1:2}",
        "\"a\"\"b\"",
        "'a'",
        "[1\v]",
        "\\",
        "[\\\"]",
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (parse(cases[i]) == 0)
            fail_msg("accepted: %s", cases[i]);
        assert_int_equal(err.code, AB_EPARSE);
    }
}

static void test_errors_name_the_place(void **state)
{
    (void)state;
    assert_int_equal(parse("{\n  \"a\": tru\n}"), -1);
    assert_string_equal(err.msg, "unknown word at line 2 column 8 (byte 9)");
    assert_int_equal(parse("[\"a\", \"b\x01\"]"), -1);
    assert_string_equal(err.msg,
                        "control character inside a string at line 1 column 9 (byte 8)");
    assert_int_equal(parse("[\"\xc3(\"]"), -1);
    assert_string_equal(err.msg, "bytes that are not UTF-8 at line 1 column 3 (byte 2)");
}

static void test_depth(void **state)
{
    char text[2 * AB_JSON_MAX_DEPTH + 3];
    size_t n = AB_JSON_MAX_DEPTH;
    (void)state;
    memset(text, '[', n);
    memset(text + n, ']', n);
    assert_int_equal(ab_json_parse(&doc, text, 2 * n, NULL, &err), 0);
    assert_int_equal(doc.count, n);
    memset(text, '[', n + 1);
    memset(text + n + 1, ']', n + 1);
    assert_int_equal(ab_json_parse(&doc, text, 2 * n + 2, NULL, &err), -1);
    assert_int_equal(err.code, AB_EPARSE);
}

static void test_raw(void **state)
{
    const struct ab_json_name names[] = {{"lp", 2}};
    const struct ab_json_opts opts = {.raw = names, .raw_count = 1};
    const char *text = "{\"lp\": {\"lp\":[1, 2.50]} ,\"x\":[{\"lp\":[]},{\"lp\":7}]}";
    (void)state;
    assert_int_equal(ab_json_parse(&doc, text, strlen(text), &opts, &err), 0);
    assert_int_equal(doc.nodes[2].kind, AB_JSON_RAW);
    assert_text(2, "{\"lp\":[1, 2.50]}", 16);
    assert_int_equal(doc.nodes[7].kind, AB_JSON_RAW);
    assert_text(7, "[]", 2);
    assert_int_equal(doc.nodes[10].integer, 7);
    const char *bad[] = {"{\"lp\":[1,}",   "{\"lp\":[01]}",  "{\"lp\":[\"\\q\"]}",
                         "{\"lp\":{1:2}}", "{\"lp\":[tru]}", "{\"lp\":[\"\\ud800\"]}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(ab_json_parse(&doc, bad[i], strlen(bad[i]), &opts, &err), -1);
    const struct ab_json_opts root = {.raw_root = true};
    assert_int_equal(ab_json_parse(&doc, " 12 ", 4, &root, &err), 0);
    assert_text(0, "12", 2);
}

static void test_repair(void **state)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"{\"a\":\"x\\ud83d\\ude00\\\\ud800\"}", "{\"a\":\"x\\ud83d\\ude00\\\\ud800\"}"},
        {"\"\\ud800\"", "\"\\ufffd\""},
        {"\"\\udc00\\ud800\\ud83d\\ude00\"", "\"\\ufffd\\ufffd\\ud83d\\ude00\""},
        {"\"a\nb\t\"", "\"a\\u000ab\\u0009\""},
        {"\"\xff\\\xff\"", "\"\xef\xbf\xbd\\\xef\xbf\xbd\""},
        {"[1,\n2]", "[1,\n2]"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ab_buf b;
        ab_buf_init(&b, 0);
        size_t fixes = ab_json_repair(&b, cases[i].in, strlen(cases[i].in));
        assert_string_equal(b.data, cases[i].out);
        assert_int_equal(fixes == 0, strcmp(cases[i].in, cases[i].out) == 0);
        ab_buf_fini(&b);
    }
}

static void assert_double(double v, const char *text)
{
    struct ab_buf b;
    ab_buf_init(&b, 0);
    ab_json_put_double(&b, v);
    assert_string_equal(b.data, text);
    assert_true(strtod(b.data, NULL) == v);
    ab_buf_fini(&b);
}

static void test_doubles_look_like_python(void **state)
{
    (void)state;
    assert_double(1, "1.0");
    assert_double(-0.0, "-0.0");
    assert_double(0.1, "0.1");
    assert_double(100000, "100000.0");
    assert_double(1e15, "1000000000000000.0");
    assert_double(1e16, "1e+16");
    assert_double(1e22, "1e+22");
    assert_double(0.0001, "0.0001");
    assert_double(0.00001, "1e-05");
    assert_double(1.5e-7, "1.5e-07");
    assert_double(123456.789, "123456.789");
    assert_double(5e-324, "5e-324");
    assert_double(1.7976931348623157e308, "1.7976931348623157e+308");
}

static void test_strings(void **state)
{
    static const struct {
        const char *in;
        unsigned style;
        const char *out;
    } cases[] = {
        {"plain text of some length", 0, "\"plain text of some length\""},
        {"\"\\/\b\f\n\r\t\x01\x7f", 0, "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\x7f\""},
        {"\xc3\xa9\xff", 0, "\"\xc3\xa9\xef\xbf\xbd\""},
        {"\xc3\xa9\xf0\x9f\x98\x80\x7f\xff", AB_JSON_ASCII,
         "\"\\u00e9\\ud83d\\ude00\\u007f\\ufffd\""},
    };
    struct ab_buf b;
    (void)state;
    ab_buf_init(&b, 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ab_buf_clear(&b);
        assert_int_equal(
            ab_json_put_string(&b, cases[i].in, strlen(cases[i].in), cases[i].style), 0);
        assert_string_equal(b.data, cases[i].out);
    }
    assert_int_equal(ab_json_put_string(&b, "\xff", 1, AB_JSON_STRICT), -1);
    ab_buf_clear(&b);
    ab_json_put_raw(&b, "[1,\r\n \"\xc3\xa9\"]", 11, AB_JSON_ASCII);
    assert_string_equal(b.data, "[1,   \"\\u00e9\"]");
    ab_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes_lie_in_document_order),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_errors_name_the_place),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_raw),
        cmocka_unit_test(test_repair),
        cmocka_unit_test(test_doubles_look_like_python),
        cmocka_unit_test(test_strings),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
