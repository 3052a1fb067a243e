#define _GNU_SOURCE
#include <sys/mman.h>

#include "check.h"
#include "json.h"

/* A copy of the text whose end is the end of what may be read. */
static const char *at_the_edge(const char *text, size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (n / page + 1) * page;
    char *p = mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED && mprotect(p + size, page, PROT_NONE) == 0);
    return memcpy(p + size - n, text, n);
}

static int valid(const char *text)
{
    size_t n = strlen(text), bad = 999999;
    int ok = json_check(at_the_edge(text, n), n, &bad) && json_check(at_the_edge(text, n), n, NULL);
    if (!ok)
        printf("# refused at %zu: %s\n", bad, text);
    return ok;
}

static int bad_at(const char *text, size_t n, size_t where)
{
    size_t bad = 999999;
    int ok = json_check(at_the_edge(text, n), n, &bad);
    if (ok || bad != where)
        printf("# %s %zu, want %zu: %s\n", ok ? "taken" : "refused at", bad, where, text);
    return !ok && bad == where;
}
#define BAD(text, where) CHECK(bad_at("" text, sizeof(text) - 1, where))

TEST(valid_values)
{
    const char *all[] = {"null", " true ", "\t\r\nfalse\n", "0", "-0", "10", "-1.5e+10", "0.0E-0", "1e5", "123456789012345678901234567890",
                         "\"\"", "\"a\"", "[]", "[ ]", "{}", "{ }", "[1]", "[ 1 , 2 ]", "{\"a\":1}", "{ \"a\" : [ ] , \"\" : { } }",
                         "[[],[[]],{}]", "{\"a\":1,\"a\":2}"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        CHECK(valid(all[i]));
}

TEST(valid_strings)
{
    const char *all[] = {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\u0000\\uABCD\\uabcd\"", "\"\\ud83d\\ude00\"", "\"\\uD800\\uDC00\\udbff\\udfff\"",
                         "\"\x7f\"", "\"\xc2\x80\xdf\xbf\"", "\"\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\"",
                         "\"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\"", "\"\\ud7ff\\ue000\""};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        CHECK(valid(all[i]));
}

TEST(cut_off_anywhere)
{
    const char text[] = "{\"a\\u00e9\\ud83d\\ude00\xc3\xa9\":[true,false,null,-1.5e+7,{}]}";
    for (size_t n = 0; n < sizeof text - 1; n++)
        CHECK(bad_at(text, n, n));
    CHECK(valid(text));
}

TEST(bad_words_and_structure)
{
    BAD("", 0);
    BAD("  ", 2);
    BAD("nul", 3);
    BAD("nulL", 3);
    BAD("True", 0);
    BAD("1 2", 2);
    BAD("[1 2]", 3);
    BAD("[1,]", 3);
    BAD("[,1]", 1);
    BAD("[1", 2);
    BAD("]", 0);
    BAD("[}", 1);
    BAD("{\"a\":1,}", 7);
    BAD("{,}", 1);
    BAD("{a:1}", 1);
    BAD("{1:1}", 1);
    BAD("{\"a\" 1}", 5);
    BAD("{\"a\":}", 5);
    BAD("{\"a\":1]", 6);
    BAD("[1]x", 3);
    BAD("\xef\xbb\xbf[]", 0);
    BAD("[1]\0", 3);
    BAD("\f1", 0);
    BAD("'a'", 0);
    BAD("// x\n1", 0);
}

TEST(bad_numbers)
{
    BAD("01", 1);
    BAD("-", 1);
    BAD("+1", 0);
    BAD("-a", 1);
    BAD(".5", 0);
    BAD("1.", 2);
    BAD("1.e5", 2);
    BAD("1e", 2);
    BAD("1e+", 3);
    BAD("1e+-1", 3);
    BAD("-01", 2);
    BAD("0x10", 1);
    BAD("1.5.5", 3);
    BAD("NaN", 0);
    BAD("[-Infinity]", 2);
}

TEST(bad_strings)
{
    BAD("\"a", 2);
    BAD("\"\n\"", 1);
    BAD("\"\x1f\"", 1);
    BAD("\"\0\"", 1);
    BAD("\"\\x\"", 2);
    BAD("\"\\\0\"", 2);
    BAD("\"\\u12\"", 5);
    BAD("\"\\u12g4\"", 5);
    BAD("\"\\U0041\"", 2);
    BAD("\"\\", 2);
}

TEST(bad_utf8)
{
    BAD("\"\x80\"", 1);
    BAD("\"\xc0\x80\"", 1);
    BAD("\"\xc1\xbf\"", 1);
    BAD("\"\xc3\"", 2);
    BAD("\"\xc3\xc3\"", 2);
    BAD("\"\xe0\x9f\xbf\"", 2);
    BAD("\"\xed\xa0\x80\"", 2);
    BAD("\"\xe2\x82\"", 3);
    BAD("\"\xf0\x8f\xbf\xbf\"", 2);
    BAD("\"\xf4\x90\x80\x80\"", 2);
    BAD("\"\xf5\x80\x80\x80\"", 1);
    BAD("\"\xff\"", 1);
    BAD("{\"\xff\":1}", 2);
}

TEST(bad_surrogates)
{
    BAD("\"\\udc00\"", 1);
    BAD("\"a\\uDFFF\"", 2);
    BAD("\"\\ud800\"", 7);
    BAD("\"\\ud800x\"", 7);
    BAD("\"\\ud800\\n\"", 8);
    BAD("\"\\ud800\\u0041\"", 9);
    BAD("\"\\ud800\\ud800\"", 10);
    BAD("\"\\ud800\\udb00\"", 10);
    BAD("\"\\udbff\\ue000\"", 9);
}

TEST(depth)
{
    static char text[200001];
    memset(text, '[', 100000);
    CHECK(bad_at(text, 100000, 64));
    memset(text + 64, ']', 64);
    CHECK(json_check(text, 128, NULL));
    size_t n = 0;
    for (int i = 0; i < 70; i++)
        n += (size_t)sprintf(text + n, "{\"a\":");
    CHECK(bad_at(text, n, 64 * 5));
    n = (size_t)sprintf(text, "[");
    for (int i = 0; i < 1000; i++)
        n += (size_t)sprintf(text + n, "[[]],");
    n += (size_t)sprintf(text + n, "0]");
    CHECK(json_check(text, n, NULL));
}
