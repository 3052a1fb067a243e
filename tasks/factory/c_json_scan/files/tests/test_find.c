#include "check.h"
#include "json.h"

static const char doc[] = " { \"a\" : [ 10 , {\"b\": \"x\\ty\"} , [] ] , \"n\" : -1.5e3,\"t\":true , \"f\" : false,\"z\":null,"
                          "\"a\\u00e9\\\"\": 1, \"dup\": 1, \"dup\": {\"x\": 2}, \"\": 3, \"[0]\": 4, \"a\\u0000b\": 5 } ";

static int find(enum json_kind kind, const char *expected, const char *const path[])
{
    struct json_value v;
    return json_find(doc, sizeof doc - 1, path, &v) && v.kind == kind && v.length == strlen(expected) &&
           memcmp(v.text, expected, v.length) == 0;
}
#define PATH(...) ((const char *const[]){__VA_ARGS__, NULL})
#define MISSING(...) CHECK(!find(JSON_NULL, "", PATH(__VA_ARGS__)) && !json_find(doc, sizeof doc - 1, PATH(__VA_ARGS__), &none))

static struct json_value none;

TEST(finds_all_kinds)
{
    CHECK(find(JSON_ARRAY, "[ 10 , {\"b\": \"x\\ty\"} , [] ]", PATH("a")));
    CHECK(find(JSON_NUMBER, "10", PATH("a", "[0]")));
    CHECK(find(JSON_OBJECT, "{\"b\": \"x\\ty\"}", PATH("a", "[1]")));
    CHECK(find(JSON_STRING, "\"x\\ty\"", PATH("a", "[1]", "b")));
    CHECK(find(JSON_ARRAY, "[]", PATH("a", "[2]")));
    CHECK(find(JSON_NUMBER, "-1.5e3", PATH("n")));
    CHECK(find(JSON_TRUE, "true", PATH("t")));
    CHECK(find(JSON_FALSE, "false", PATH("f")));
    CHECK(find(JSON_NULL, "null", PATH("z")));
}

TEST(the_whole)
{
    struct json_value v;
    const char *const empty[] = {NULL};
    CHECK(json_find(doc, sizeof doc - 1, empty, &v) && v.kind == JSON_OBJECT && v.text == doc + 1 && v.length == sizeof doc - 3);
    CHECK(json_find(" \"s\" ", 5, empty, &v) && v.kind == JSON_STRING && v.length == 3);
    CHECK(json_find("7", 1, empty, &v) && v.kind == JSON_NUMBER && v.length == 1);
}

TEST(names)
{
    CHECK(find(JSON_NUMBER, "1", PATH("a\xc3\xa9\"")));
    CHECK(find(JSON_NUMBER, "3", PATH("")));
    CHECK(find(JSON_OBJECT, "{\"x\": 2}", PATH("dup")));
    CHECK(find(JSON_NUMBER, "2", PATH("dup", "x")));
    CHECK(find(JSON_NUMBER, "4", PATH("[0]")));
}

TEST(what_is_not_there)
{
    MISSING("b");
    MISSING("a", "b");
    MISSING("a", "[3]");
    MISSING("a", "[01]");
    MISSING("a", "[-1]");
    MISSING("a", "[]");
    MISSING("a", "[0");
    MISSING("a", "0");
    MISSING("a", "[0]x");
    MISSING("a", "[18446744073709551616]");
    MISSING("a", "[0]", "[0]");
    MISSING("a", "[2]", "[0]");
    MISSING("n", "");
    MISSING("a\\u00e9\\\"");
    MISSING("a\xc3\xa9");
    MISSING("du");
    MISSING("dupl");
    MISSING("[1]");
}

TEST(strings)
{
    const char text[] = "\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20AC\\ud83d\\ude00\xc3\xa9\\u0000z\"";
    const char expected[] = "a\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xc3\xa9\0z";
    struct json_value v = {JSON_STRING, text, sizeof text - 1};
    char got[64];
    size_t n = sizeof expected - 1;
    CHECK(json_string(&v, got, sizeof got) == n && memcmp(got, expected, n + 1) == 0);
    for (size_t room = 0; room <= n + 1; room++) {
        memset(got, 'X', sizeof got);
        CHECK(json_string(&v, got, room) == n);
        CHECK(got[room] == 'X');
        CHECK(room == 0 || (memcmp(got, expected, room - 1) == 0 && got[room - 1] == '\0'));
    }
    v = (struct json_value){JSON_STRING, "\"\"", 2};
    CHECK(json_string(&v, got, sizeof got) == 0 && got[0] == '\0');
}
