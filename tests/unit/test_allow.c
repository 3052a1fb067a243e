/* Addresses seen through their disguises, rules, questions for names, names in TLS. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/allow.h"
#include "base/dns.h"
#include "base/hello.h"

static const char *special(const char *text)
{
    struct ab_addr a;
    assert_true(ab_addr_parse(&a, text));
    return ab_addr_special(&a);
}

static void test_what_is_public(void **state)
{
    static const char *const inner[] = {
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "100.127.255.255",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "198.18.0.1",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.1.1",
        "fe80::1",
        "fd00::1",
        "ff02::1",
        "64:ff9b::10.0.0.1",
        "2002:a00:1::1",
        "2001:db8::1",
        "2001:0:1::1",
        "fec0::1",
        "4000::1",
    };
    static const char *const outer[] = {
        "8.8.8.8",        "172.32.0.1",      "100.128.0.1",      "192.169.0.1",
        "::ffff:8.8.8.8", "2606:4700::1111", "64:ff9b::8.8.8.8", "2002:808:808::1",
    };
    (void)state;
    for (size_t i = 0; i < sizeof inner / sizeof *inner; i++)
        assert_non_null(special(inner[i]));
    for (size_t i = 0; i < sizeof outer / sizeof *outer; i++)
        assert_null(special(outer[i]));
}

static void test_rules(void **state)
{
    struct ab_err err;
    struct ab_addr in, out, six;
    struct ab_allow *a = ab_allow_new();
    (void)state;
    assert_int_equal(ab_allow_add(a, "Example.org:443", &err), 0);
    assert_int_equal(ab_allow_add(a, "*.example.org:80,443", &err), 0);
    assert_int_equal(ab_allow_add(a, "10.0.0.0/9:5432", &err), 0);
    assert_int_equal(ab_allow_add(a, "[fd00::/8]:443", &err), 0);
    assert_int_equal(ab_allow_add(a, "fd00::1:443", &err), -1);
    assert_int_equal(ab_allow_add(a, "[::ffff:127.0.0.1]:443", &err), -1);
    assert_true(ab_allow_name(a, "example.org", 443));
    assert_false(ab_allow_name(a, "example.org", 80));
    assert_true(ab_allow_name(a, "a.b.example.org", 80));
    assert_false(ab_allow_name(a, "evilexample.org", 443));
    assert_false(ab_allow_name(a, "example.org.evil", 443));
    assert_true(ab_addr_parse(&in, "10.127.1.1") && ab_addr_parse(&out, "10.128.1.1"));
    assert_true(ab_addr_parse(&six, "fd12::1"));
    assert_true(ab_allow_addr(a, &in, 5432));
    assert_false(ab_allow_addr(a, &in, 443));
    assert_false(ab_allow_addr(a, &out, 5432));
    assert_true(ab_allow_addr(a, &six, 443));
    uint16_t ports[AB_ALLOW_PORTS];
    assert_int_equal(ab_allow_ports(a, ports), 3);
    ab_allow_free(a);
}

/* Cut anywhere, with any byte changed: never beyond its end. */
static void test_questions_and_hellos_are_read_within_their_bounds(void **state)
{
    static const uint8_t question[] = "\0\7\1\0\0\1\0\0\0\0\0\0\3wWw\4test\0\0\1\0\1";
    static const uint8_t hello[] =
        "\x16\3\1\0\x3e\1\0\0\x3a\3\3rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr\0\0\2\x13\1\1\0"
        "\0\x0f\0\0\0\x0b\0\x09\0\0\6a.test";
    struct ab_dns_question q;
    char name[256];
    (void)state;
    assert_true(ab_dns_parse(question, sizeof question - 1, &q));
    assert_string_equal(q.name, "www.test");
    assert_int_equal(ab_hello_read(hello, sizeof hello - 1, name), AB_HELLO_NAMED);
    assert_string_equal(name, "a.test");
    for (size_t len = 0; len < sizeof hello - 1; len++) {
        uint8_t *cut = malloc(len + 1);
        memcpy(cut, hello, len);
        assert_int_equal(ab_hello_read(cut, len, name), AB_HELLO_MORE);
        memcpy(cut, question, len < sizeof question ? len : sizeof question - 1);
        if (len < sizeof question - 1)
            assert_false(ab_dns_parse(cut, len, &q));
        free(cut);
    }
    for (size_t at = 0; at < sizeof hello - 1; at++)
        for (unsigned byte = 0; byte < 256; byte++) {
            uint8_t copy[sizeof hello - 1], ask[sizeof question - 1];
            memcpy(copy, hello, sizeof copy);
            copy[at] = (uint8_t)byte;
            ab_hello_read(copy, sizeof copy, name);
            memcpy(ask, question, sizeof ask);
            ask[at % sizeof ask] = (uint8_t)byte;
            ab_dns_parse(ask, sizeof ask, &q);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_public),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_questions_and_hellos_are_read_within_their_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
