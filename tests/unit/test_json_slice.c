/* test_json_slice.c - members and elements of JSON text as slices of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/json_slice.h"

static char *exact_copy(const char *text, size_t len)
{
    char *copy = malloc(len ? len : 1);
    memcpy(copy, text, len);
    return copy;
}

static void check_members(const char *text, const char *expected)
{
    struct ab_json_slice key, value;
    struct ab_buf out;
    ab_buf_init(&out, 0);
    /* An exact copy, so that a sanitizer sees every byte read beyond the text. */
    size_t len = strlen(text);
    char *copy = exact_copy(text, len);
    struct ab_json_walk walk = {copy, copy + len};
    if (ab_json_open(&walk, '{')) {
        ab_buf_putc(&out, '!');
        while (ab_json_next_key(&walk, &key)) {
            value = ab_json_value(&walk);
            ab_buf_put(&out, key.s, key.len);
            ab_buf_putc(&out, '=');
            ab_buf_put(&out, value.s, value.len);
            ab_buf_putc(&out, ';');
        }
    }
    assert_string_equal(out.data ? out.data : "", expected);
    ab_buf_fini(&out);
    free(copy);
}

static void check_elements(const char *text, const char *expected)
{
    struct ab_json_slice value;
    struct ab_buf out;
    ab_buf_init(&out, 0);
    size_t len = strlen(text);
    char *copy = exact_copy(text, len);
    struct ab_json_walk walk = {copy, copy + len};
    if (ab_json_open(&walk, '[')) {
        ab_buf_putc(&out, '!');
        while (ab_json_next(&walk)) {
            value = ab_json_value(&walk);
            ab_buf_put(&out, value.s, value.len);
            ab_buf_putc(&out, ';');
        }
    }
    assert_string_equal(out.data ? out.data : "", expected);
    ab_buf_fini(&out);
    free(copy);
}

static void test_members(void **state)
{
    (void)state;
    check_members("{}", "!");
    check_members("{\"a\":1,\"b\":\"x\"}", "!a=1;b=\"x\";");
    check_members(" { \"a\" : [ 1 , {\"]\":\"}\"} ] , \"b\" : { } , \"c\" : null } ",
                  "!a=[ 1 , {\"]\":\"}\"} ];b={ };c=null;");
    check_members("{\"a\":\"q\\\"\\\\\",\"b\\\"\":\"\\\\\\\"]\"}",
                  "!a=\"q\\\"\\\\\";b\\\"=\"\\\\\\\"]\";");
    check_members("[1]", "");
    check_members("7", "");
}

static void test_elements(void **state)
{
    (void)state;
    check_elements("[]", "!");
    check_elements(" [ ] ", "!");
    check_elements("[1,\"a]\",[],{\"x\":[2]},true]", "!1;\"a]\";[];{\"x\":[2]};true;");
    check_elements(
        "[[[[1,2,3,4,5,6,7,8,9,10]]],\"a long string, longer than a word\",3]",
        "![[[1,2,3,4,5,6,7,8,9,10]]];\"a long string, longer than a word\";3;");
    check_elements("{}", "");
}

/* What is no JSON gives slices inside of it, whatever they are. */
static void test_text_cut_anywhere(void **state)
{
    (void)state;
    const char *text = "{\"a\\\"b\":[1,{\"c\":\"d\\\\\"}],\"e\":{\"f\":[]},\"g\":-1.5e3}";
    for (size_t len = 0; len <= strlen(text); len++) {
        struct ab_json_slice key, value;
        char *copy = exact_copy(text, len);
        struct ab_json_walk walk = {copy, copy + len};
        if (ab_json_open(&walk, '{')) {
            while (ab_json_next_key(&walk, &key)) {
                value = ab_json_value(&walk);
                assert_true(key.s >= copy && key.s + key.len <= copy + len);
                assert_true(value.s >= copy && value.s + value.len <= copy + len);
            }
        }
        free(copy);
    }
}

static void test_keys(void **state)
{
    (void)state;
    struct ab_json_slice plain = {"role", 4}, escaped = {"r\\u006fle", 9},
                         longer = {"roles", 5}, other = {"r\\u006fl\\u", 9};
    assert_true(ab_json_is_key(plain, "role", 4));
    assert_true(ab_json_is_key(escaped, "role", 4));
    assert_false(ab_json_is_key(longer, "role", 4));
    assert_false(ab_json_is_key(plain, "roles", 5));
    assert_false(ab_json_is_key(other, "role", 4));
}

/* Containers longer than a block of the fast way, with strings across its ends. */
static void test_long_containers(void **state)
{
    (void)state;
    for (size_t shift = 0; shift < 130; shift++) {
        struct ab_buf text;
        ab_buf_init(&text, 0);
        ab_buf_put(&text, "{\"v\":[", 6);
        size_t start = text.len - 1;
        for (size_t i = 0; i < shift; i++)
            ab_buf_putc(&text, ' ');
        for (int i = 0; i < 9; i++) {
            const char *item = i == 5
                                   ? "{\"a\":\"q\\\"]}\\\\\",\"b\":[[]]},"
                                   : "{\"token\":\"a]b\",\"top\":[],\"x\":{\"y\":-1.5}},";
            ab_buf_put(&text, item, strlen(item));
        }
        ab_buf_put(&text, "\"]\"]", 4);
        size_t stop = text.len;
        ab_buf_put(&text, ",\"w\":1}", 7);
        char *copy = exact_copy(text.data, text.len);
        struct ab_json_walk walk = {copy, copy + text.len};
        struct ab_json_slice key, value;
        assert_true(ab_json_open(&walk, '{') && ab_json_next_key(&walk, &key));
        value = ab_json_value(&walk);
        assert_ptr_equal(value.s, copy + start);
        assert_int_equal(value.len, stop - start);
        assert_true(ab_json_next_key(&walk, &key) && *key.s == 'w');
        free(copy);
        ab_buf_fini(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members),           cmocka_unit_test(test_elements),
        cmocka_unit_test(test_text_cut_anywhere), cmocka_unit_test(test_keys),
        cmocka_unit_test(test_long_containers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
