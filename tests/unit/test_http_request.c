/* test_http_request.c - requests, cut at every place, and those that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rt/http_request.h"

#define HEAD_BYTES 2000
#define BODY_BYTES 100

#define GET  "GET /x HTTP/1.1\r\nHost: h\r\n"
#define POST "POST /x HTTP/1.1\r\nHost: h\r\n"

/* All requests of the text as "METHOD target|body|keep;" and, when it is refused,
 * "!status". */
static void print(struct ab_buf *out, const char *text, size_t len, size_t step)
{
    struct ab_web_parser *p = ab_web_parser_new(HEAD_BYTES, BODY_BYTES);
    enum ab_web_step got = AB_WEB_MORE;
    char line[64];
    while (len > 0 && got != AB_WEB_REFUSED) {
        size_t n = step < len ? step : len, used;
        char *piece = ab_xstrndup(text, n); /* memory of its own size */
        got = ab_web_parse(p, piece, n, &used);
        free(piece);
        assert_true(used <= n);
        assert_true(used == n || got != AB_WEB_MORE);
        text += used;
        len -= used;
        if (got == AB_WEB_HEAD)
            assert_int_equal(ab_web_parser_request(p)->body.len, 0);
        if (got != AB_WEB_REQUEST)
            continue;
        struct ab_web_request r;
        ab_web_parser_take(p, &r);
        ab_buf_put(out, r.method, strlen(r.method));
        ab_buf_putc(out, ' ');
        ab_buf_put(out, r.head.data + r.target, r.target_len);
        ab_buf_putc(out, '|');
        ab_buf_put(out, r.body.data, r.body.len);
        ab_buf_put(out, r.keep_alive ? "|1;" : "|0;", 3);
        ab_web_request_fini(&r);
    }
    if (got == AB_WEB_REFUSED) {
        int n = snprintf(line, sizeof line, "!%d", ab_web_parser_status(p));
        ab_buf_put(out, line, (size_t)n);
        assert_non_null(ab_web_parser_why(p));
    }
    ab_web_parser_free(p);
}

static void expect_bytes(const char *text, size_t len, const char *expected)
{
    for (size_t step = 1; step <= len; step = step < 40 ? step + 1 : step * 2) {
        struct ab_buf out;
        ab_buf_init(&out, 0);
        print(&out, text, len, step);
        if (strcmp(out.data ? out.data : "", expected) != 0)
            print_error("%s\n", text);
        assert_string_equal(out.data ? out.data : "", expected);
        ab_buf_fini(&out);
    }
}

static void expect(const char *text, const char *expected)
{
    expect_bytes(text, strlen(text), expected);
}

static void test_requests(void **state)
{
    (void)state;
    expect(GET "\r\n", "GET /x||1;");
    expect(GET "Connection: close\r\n\r\n", "GET /x||0;");
    expect("GET /x HTTP/1.0\r\n\r\n", "GET /x||0;");
    expect("GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "GET /x||1;");
    expect("\r\n" GET "\r\n", "GET /x||1;");
    expect(POST "Content-Length: 5\r\n\r\nhello", "POST /x|hello|1;");
    expect(POST "content-length:\t5 \r\n\r\nhello" GET "\r\n",
           "POST /x|hello|1;GET /x||1;");
    expect(POST
           "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n" GET
           "\r\n",
           "POST /x|abcde|1;GET /x||1;");
    expect(POST "Content-Length: 0\r\n\r\n" GET "\r\n", "POST /x||1;GET /x||1;");
    expect(GET "Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n" GET "\r\n",
           "GET /x||1;GET /x||1;");
    expect("GET http://h:1/y?q HTTP/1.1\r\nHost: h\r\n\r\n", "GET /y?q||1;");
    expect("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "OPTIONS *||1;");
    expect(GET "X: \xff\xfe\r\n\r\n", "GET /x||1;");
}

static void test_what_two_could_read_differently(void **state)
{
    static const char *const forms[] = {
        POST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        POST "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
        POST "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
        POST "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        POST "Content-Length: 3, 3\r\n\r\nabc",
        POST "Content-Length: +3\r\n\r\nabc",
        POST "Content-Length: 0x3\r\n\r\nabc",
        POST "Content-Length: -1\r\n\r\nabc",
        POST "Content-Length:\r\n\r\nabc",
        POST "Content-Length: 3 3\r\n\r\nabc",
        POST "Content-Length: 99999999999999999999999\r\n\r\nabc",
        POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        "POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET /x HTTP/1.1\r\n\r\n",
        GET "Host: g\r\n\r\n",
        "GET /x HTTP/1.1\r\nHost : h\r\n\r\n",
        "GET /x HTTP/1.1\r\n Host: h\r\n\r\n",
        GET "X: a\r\n b\r\n\r\n",
        GET "X: a\r\n\tContent-Length: 5\r\n\r\n",
        GET "X\r\n\r\n",
        GET ": x\r\n\r\n",
        GET "X(y): x\r\n\r\n",
        "GET /x\nHost: h\r\n\r\n",
        "GET /x HTTP/1.1\nHost: h\n\n",
        GET "X: a\nY: b\r\n\r\n",
        GET "X: a\rY: b\r\n\r\n",
        GET "X: a\x01\r\n\r\n",
        "GET /x\r\n\r\n",
        "GET  /x HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /x  HTTP/1.1\r\nHost: h\r\n\r\n",
        " GET /x HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET\t/x HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /x HTTP/1.1 \r\nHost: h\r\n\r\n",
        "GET /\xc3\xa4 HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /x#y HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET x HTTP/1.1\r\nHost: h\r\n\r\n",
        "\r\n\r\n" GET "\r\n",
        "\n" GET "\r\n",
        "\x16\x03\x01\x02\r\n\r\n",
        POST "Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n",
        POST "Transfer-Encoding: chunked\r\n\r\n3\r\nabcXX0\r\n\r\n",
        POST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\n0\r\n\r\n",
        POST "Transfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n0\r\n\r\n",
        POST "Transfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n",
        POST "Transfer-Encoding: chunked\r\n\r\n 3\r\nabc\r\n0\r\n\r\n",
        POST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n",
        POST "Transfer-Encoding: chunked\r\n\r\n11111111111111111\r\nabc",
    };
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        expect(forms[i], "!400");
    expect_bytes(GET "X: a\0b\r\n\r\n", sizeof GET "X: a\0b\r\n\r\n" - 1, "!400");
}

static void test_refusals_that_say_more(void **state)
{
    (void)state;
    expect("GET /x HTTP/2.0\r\nHost: h\r\n\r\n", "!505");
    expect("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "!505");
    expect("BREW /x HTTP/1.1\r\nHost: h\r\n\r\n", "!501");
    expect("CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n", "!501");
    expect(POST "Transfer-Encoding: gzip, chunked\r\n\r\n", "!501");
    expect(POST "Transfer-Encoding: xchunked\r\n\r\n", "!501");
    expect(POST "Expect: a miracle\r\n\r\n", "!417");
    expect(POST "Content-Length: 101\r\n\r\n", "!413");
}

static void test_sizes(void **state)
{
    struct ab_buf text;
    (void)state;
    ab_buf_init(&text, 0);
    ab_buf_put(&text, GET, sizeof GET - 1);
    for (int i = 0; i < 200; i++)
        ab_buf_put(&text, "A: b\r\n", 6);
    ab_buf_put(&text, "\r\n", 2);
    expect(text.data, "!431"); /* fields */
    ab_buf_clear(&text);
    ab_buf_put(&text, GET "X: ", sizeof GET "X: " - 1);
    for (int i = 0; i < HEAD_BYTES; i++)
        ab_buf_putc(&text, 'x');
    expect(text.data, "!431"); /* bytes, whether or not they end */
    ab_buf_clear(&text);
    ab_buf_put(&text, POST "Transfer-Encoding: chunked\r\n\r\n",
               sizeof POST "Transfer-Encoding: chunked\r\n\r\n" - 1);
    for (int i = 0; i < 11; i++)
        ab_buf_put(&text, "a\r\n0123456789\r\n", 15);
    expect(text.data, "!413");
    ab_buf_clear(&text);
    ab_buf_put(&text, POST "Transfer-Encoding: chunked\r\n\r\n1;",
               sizeof POST "Transfer-Encoding: chunked\r\n\r\n1;" - 1);
    for (int i = 0; i < 20000; i++)
        ab_buf_putc(&text, 'x');
    ab_buf_put(&text, "\r\na\r\n0\r\n\r\n", 11);
    expect(text.data, "!400"); /* an extension that never ends */
    ab_buf_fini(&text);
}

static void test_fields(void **state)
{
    static const char text[] = GET "A: 1\r\nb:  two words \r\nB: 3\r\nEmpty:\r\n\r\n";
    struct ab_web_parser *p = ab_web_parser_new(HEAD_BYTES, BODY_BYTES);
    size_t used, len;
    (void)state;
    assert_int_equal(ab_web_parse(p, text, sizeof text - 1, &used), AB_WEB_REQUEST);
    const struct ab_web_request *r = ab_web_parser_request(p);
    assert_int_equal(r->nfields, 5);
    assert_memory_equal(ab_web_request_field(r, "a", &len), "1", 1);
    assert_int_equal(len, 1);
    assert_null(ab_web_request_field(r, "B", &len)); /* twice: it has no one value */
    assert_memory_equal(r->head.data + r->fields[2].value, "two words", 9);
    assert_int_equal(r->fields[2].value_len, 9);
    assert_non_null(ab_web_request_field(r, "empty", &len));
    assert_int_equal(len, 0);
    assert_null(ab_web_request_field(r, "emp", &len));
    ab_web_parser_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_what_two_could_read_differently),
        cmocka_unit_test(test_refusals_that_say_more),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
