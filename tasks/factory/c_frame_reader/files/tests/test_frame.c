#include "check.h"
#include "frame.h"

static uint8_t memory[FRAME_MAX_PAYLOAD + FRAME_OVERHEAD];
static struct ring r;
static struct frame_stats stats;
static struct frame out;

static void fresh(void)
{
    ring_init(&r, memory, sizeof memory);
    stats = (struct frame_stats){0, 0, 0};
    out = (struct frame){.type = 99};
}

static size_t make(uint8_t *to, uint8_t type, const char *payload)
{
    struct frame f = {.type = type, .length = (uint16_t)strlen(payload)};
    memcpy(f.payload, payload, f.length);
    return frame_write(&f, to, FRAME_MAX_PAYLOAD + FRAME_OVERHEAD);
}

static int gives(uint8_t type, const char *payload)
{
    return frame_next(&r, &out, &stats) == FRAME_GOOD && out.type == type && out.length == strlen(payload) &&
           memcmp(out.payload, payload, out.length) == 0;
}

static int counts(unsigned long good, unsigned long bad, unsigned long skipped)
{
    return stats.good == good && stats.bad == bad && stats.skipped == skipped;
}

TEST(check_value)
{
    CHECK(frame_crc(0xffff, (const uint8_t *)"123456789", 9) == 0x29b1);
    CHECK(frame_crc(frame_crc(0xffff, (const uint8_t *)"1234", 4), (const uint8_t *)"56789", 5) == 0x29b1);
    CHECK(frame_crc(0xffff, NULL, 0) == 0xffff);
}

TEST(layout)
{
    uint8_t bytes[16];
    CHECK(make(bytes, 7, "abc") == 9);
    CHECK(memcmp(bytes, "\x7e\x07\x00\x03" "abc", 7) == 0);
    CHECK((bytes[7] << 8 | bytes[8]) == frame_crc(0xffff, bytes + 1, 6));
}

TEST(write_refuses)
{
    static struct frame f;
    static uint8_t bytes[600];
    f.length = 3;
    memset(bytes, 0xee, sizeof bytes);
    CHECK(frame_write(&f, bytes, 8) == 0 && bytes[0] == 0xee);
    f.length = FRAME_MAX_PAYLOAD + 1;
    CHECK(frame_write(&f, bytes, sizeof bytes) == 0 && bytes[0] == 0xee);
    f.length = FRAME_MAX_PAYLOAD;
    CHECK(frame_write(&f, bytes, FRAME_MAX_PAYLOAD + FRAME_OVERHEAD) == 518 && bytes[518] == 0xee);
}

TEST(byte_by_byte)
{
    uint8_t bytes[32];
    fresh();
    for (int round = 0; round < 100; round++) {
        size_t n = make(bytes, (uint8_t)round, round % 2 ? "~~~" : "");
        for (size_t i = 0; i < n; i++) {
            CHECK(frame_next(&r, &out, &stats) == FRAME_NONE);
            CHECK(ring_write(&r, bytes + i, 1) == 1);
        }
        CHECK(gives((uint8_t)round, round % 2 ? "~~~" : ""));
    }
    CHECK(counts(100, 0, 0) && r.count == 0);
}

TEST(several_at_once_with_noise)
{
    uint8_t bytes[32];
    fresh();
    ring_write(&r, (const uint8_t *)"noise", 5);
    ring_write(&r, bytes, make(bytes, 1, "one"));
    ring_write(&r, bytes, make(bytes, 2, "two"));
    ring_write(&r, (const uint8_t *)"xx", 2);
    ring_write(&r, bytes, make(bytes, 3, ""));
    ring_write(&r, (const uint8_t *)"end", 3);
    CHECK(gives(1, "one") && gives(2, "two") && gives(3, ""));
    CHECK(frame_next(&r, &out, &stats) == FRAME_NONE && out.type == 3);
    CHECK(counts(3, 0, 10) && r.count == 0);
}

TEST(a_damaged_frame)
{
    uint8_t bytes[32], good[32];
    size_t n = make(bytes, 1, "one"), m = make(good, 2, "two");
    for (size_t at = 1; at < n; at++) {
        if (at == 2)
            continue; /* makes a long frame, see below */
        fresh();
        bytes[at] ^= 0x01;
        ring_write(&r, bytes, n);
        bytes[at] ^= 0x01;
        ring_write(&r, good, m);
        CHECK(gives(2, "two"));
        CHECK(counts(1, 1, n));
    }
}

TEST(a_good_frame_inside_of_a_long_one)
{
    uint8_t good[32];
    fresh();
    ring_write(&r, (const uint8_t *)"\x7e\x01\x02\x00", 4); /* announces 512 bytes */
    size_t n = make(good, 2, "two");
    ring_write(&r, good, n);
    CHECK(frame_next(&r, &out, &stats) == FRAME_NONE && out.type == 99 && r.count == 4 + n);
    uint8_t zeros[600] = {0};
    ring_write(&r, zeros, sizeof zeros);
    CHECK(gives(2, "two"));
    CHECK(counts(1, 1, 4));
    CHECK(frame_next(&r, &out, &stats) == FRAME_NONE && r.count == 0);
}

TEST(a_length_over_the_limit)
{
    uint8_t good[32];
    fresh();
    ring_write(&r, (const uint8_t *)"\x7e\x01\x02\x01", 4);
    ring_write(&r, good, make(good, 2, "two"));
    CHECK(gives(2, "two") && counts(1, 1, 4));
    fresh();
    ring_write(&r, (const uint8_t *)"\x7e\x7e\xff\xff", 4);
    CHECK(frame_next(&r, &out, &stats) == FRAME_NONE);
    CHECK(r.count == 3 && counts(0, 1, 1));
}

TEST(the_longest_frame)
{
    static struct frame f;
    static uint8_t bytes[FRAME_MAX_PAYLOAD + FRAME_OVERHEAD];
    fresh();
    f.type = 5;
    f.length = FRAME_MAX_PAYLOAD;
    for (int i = 0; i < FRAME_MAX_PAYLOAD; i++)
        f.payload[i] = (uint8_t)i;
    size_t n = frame_write(&f, bytes, sizeof bytes);
    for (int round = 0; round < 3; round++) {
        CHECK(ring_write(&r, (const uint8_t *)"abc", 3) == 3 && frame_next(&r, &out, &stats) == FRAME_NONE);
        CHECK(ring_write(&r, bytes, n) == n && frame_next(&r, &out, &stats) == FRAME_GOOD);
        CHECK(out.length == FRAME_MAX_PAYLOAD && memcmp(out.payload, f.payload, FRAME_MAX_PAYLOAD) == 0);
    }
}

TEST(only_marks)
{
    fresh();
    uint8_t marks[518];
    memset(marks, FRAME_MARK, sizeof marks);
    ring_write(&r, marks, sizeof marks);
    CHECK(frame_next(&r, &out, &stats) == FRAME_NONE);
    CHECK(r.count == 3 && counts(0, 515, 515));
}
