#include "check.h"
#include "ring.h"

static uint8_t memory[16];
static struct ring r;

static void fresh(size_t size)
{
    memset(memory, 0xee, sizeof memory);
    ring_init(&r, memory, size);
}

static int holds(const char *text)
{
    uint8_t got[16];
    size_t n = ring_peek(&r, 0, got, sizeof got);
    return r.count == strlen(text) && n == r.count && memcmp(got, text, n) == 0;
}

static size_t put(const char *text)
{
    return ring_write(&r, (const uint8_t *)text, strlen(text));
}

TEST(writes_what_fits)
{
    fresh(5);
    CHECK(put("abc") == 3 && holds("abc"));
    CHECK(put("def") == 2 && holds("abcde"));
    CHECK(put("x") == 0 && put("") == 0 && holds("abcde"));
    CHECK(memory[5] == 0xee);
}

TEST(goes_round)
{
    fresh(5);
    put("abcd");
    CHECK(ring_drop(&r, 3) == 3 && holds("d"));
    CHECK(put("efghi") == 4 && holds("defgh"));
    CHECK(ring_drop(&r, 9) == 5 && holds(""));
    CHECK(ring_drop(&r, 1) == 0);
    for (int i = 0; i < 50; i++) {
        CHECK(put("xyz") == 3 && holds("xyz"));
        CHECK(ring_drop(&r, 3) == 3);
    }
    CHECK(memory[5] == 0xee);
}

TEST(a_ring_of_one)
{
    fresh(1);
    CHECK(put("ab") == 1 && holds("a") && put("c") == 0);
    CHECK(ring_drop(&r, 1) == 1 && put("c") == 1 && holds("c"));
}

TEST(peeks_at_offsets)
{
    uint8_t got[8] = {0};
    fresh(5);
    put("abcd");
    ring_drop(&r, 3);
    put("efgh");
    CHECK(ring_peek(&r, 1, got, 3) == 3 && memcmp(got, "efg", 4) == 0);
    CHECK(ring_peek(&r, 4, got, 3) == 1 && memcmp(got, "hfg", 3) == 0);
    CHECK(ring_peek(&r, 5, got, 3) == 0 && ring_peek(&r, 99, got, 3) == 0 && ring_peek(&r, 0, got, 0) == 0);
}

TEST(finds)
{
    fresh(5);
    put("abcd");
    ring_drop(&r, 3);
    put("aeaf");
    CHECK(ring_find(&r, 0, 'a') == 1 && ring_find(&r, 1, 'a') == 1 && ring_find(&r, 2, 'a') == 3);
    CHECK(ring_find(&r, 4, 'a') == 5 && ring_find(&r, 0, 'z') == 5 && ring_find(&r, 9, 'a') == 5 && ring_find(&r, 0, 'b') == 5);
}
