#include "check.h"
#include "map.h"

/* An allocator that counts what is out and fails on demand; the size of a block stands before it. */
struct bank {
    long blocks;
    long fail_at; /* the n-th allocation from now fails; 0: none */
};

static void *bank_alloc(void *user, void *old, size_t bytes)
{
    struct bank *bank = user;
    if (bytes == 0) {
        if (old) {
            bank->blocks--;
            free(old);
        }
        return NULL;
    }
    if (bank->fail_at && --bank->fail_at == 0)
        return NULL;
    void *p = realloc(old, bytes);
    if (p && !old) {
        bank->blocks++;
        memset(p, 0xa5, bytes);
    }
    return p;
}

static const char *name_of(long n)
{
    static char name[32];
    snprintf(name, sizeof name, "key-%ld", n);
    return name;
}

static bool has(struct map *m, long n)
{
    long value = -1;
    return map_get(m, name_of(n), &value) && value == n;
}

TEST(puts_and_gets)
{
    struct map *m = map_new(NULL, NULL);
    long value = 5;
    CHECK(map_count(m) == 0 && map_slots(m) == 8);
    CHECK(!map_get(m, "a", &value) && value == 5);
    CHECK(map_put(m, "a", 1) && map_put(m, "", 2) && map_put(m, "a", -3));
    CHECK(map_get(m, "a", &value) && value == -3);
    CHECK(map_get(m, "", &value) && value == 2);
    CHECK(map_get(m, "a", NULL) && !map_get(m, "b", NULL));
    CHECK(map_count(m) == 2);
    map_free(m);
    map_free(NULL);
}

TEST(copies_keys)
{
    struct map *m = map_new(NULL, NULL);
    for (long n = 0; n < 100; n++)
        CHECK(map_put(m, name_of(n), n));
    CHECK(map_count(m) == 100);
    for (long n = 0; n < 100; n++)
        CHECK(has(m, n));
    CHECK(!has(m, 100));
    map_free(m);
}

TEST(grows_in_step)
{
    struct map *m = map_new(NULL, NULL);
    for (long n = 0; n < 5000; n++) {
        CHECK(map_put(m, name_of(n), n));
        size_t slots = map_slots(m);
        CHECK((slots & (slots - 1)) == 0 && slots > map_count(m));
        CHECK(slots == 8 || slots <= 4 * map_count(m));
    }
    for (long n = 0; n < 5000; n++)
        CHECK(has(m, n));
    map_free(m);
}

TEST(removals_hide_nothing)
{
    struct map *m = map_new(NULL, NULL);
    for (long n = 0; n < 2000; n++)
        CHECK(map_put(m, name_of(n), n));
    for (long n = 0; n < 2000; n += 3)
        CHECK(map_remove(m, name_of(n)) && !map_remove(m, name_of(n)));
    for (long n = 0; n < 2000; n++)
        CHECK(has(m, n) == (n % 3 != 0));
    CHECK(map_count(m) == 1333);
    for (long n = 0; n < 2000; n += 6)
        CHECK(map_put(m, name_of(n), n));
    for (long n = 0; n < 2000; n++)
        CHECK(has(m, n) == (n % 3 != 0 || n % 6 == 0));
    map_free(m);
}

TEST(does_not_grow_with_what_is_gone)
{
    struct map *m = map_new(NULL, NULL);
    for (long n = 0; n < 20000; n++) {
        CHECK(map_put(m, name_of(n), n));
        if (n >= 4)
            CHECK(map_remove(m, name_of(n - 4)));
    }
    CHECK(map_count(m) == 4);
    CHECK(map_slots(m) <= 20);
    CHECK(!has(m, 1) && has(m, 19999));
    map_free(m);
}

TEST(a_full_map_of_removed_ends_searches)
{
    struct map *m = map_new(NULL, NULL);
    for (long n = 0; n < 1000; n++) {
        CHECK(map_put(m, name_of(n), n) && map_remove(m, name_of(n)));
        CHECK(!map_get(m, "missing", NULL));
    }
    CHECK(map_slots(m) == 8);
    map_free(m);
}

TEST(iterates_and_removes)
{
    struct map *m = map_new(NULL, NULL);
    for (long n = 0; n < 500; n++)
        CHECK(map_put(m, name_of(n), n));
    bool seen[500] = {false};
    long value, count = 0;
    for (size_t at = 0; map_next(m, &at, &value); count++) {
        CHECK(value >= 0 && value < 500 && !seen[value]);
        seen[value] = true;
        if (value % 2)
            CHECK(map_remove(m, name_of(value)));
    }
    CHECK(count == 500 && map_count(m) == 250);
    count = 0;
    const char *key;
    for (size_t at = 0; (key = map_next(m, &at, NULL)); count++)
        CHECK(map_get(m, key, &value) && value % 2 == 0);
    CHECK(count == 250);
    map_free(m);
}

TEST(frees_everything)
{
    struct bank bank = {0, 0};
    struct map *m = map_new(bank_alloc, &bank);
    for (long n = 0; n < 300; n++)
        CHECK(map_put(m, name_of(n), n) && map_put(m, name_of(n), n));
    for (long n = 0; n < 300; n += 2)
        CHECK(map_remove(m, name_of(n)));
    CHECK(bank.blocks == 2 + 150);
    map_free(m);
    CHECK(bank.blocks == 0);
}

TEST(no_memory_at_the_beginning)
{
    for (long n = 1; n <= 2; n++) {
        struct bank bank = {0, n};
        CHECK(map_new(bank_alloc, &bank) == NULL);
        CHECK(bank.blocks == 0);
    }
}

TEST(no_memory_loses_nothing)
{
    struct bank bank = {0, 0};
    struct map *m = map_new(bank_alloc, &bank);
    long failed = 0;
    for (long n = 0; n < 200; n++) {
        for (long nth = 1; nth <= 3; nth++) {
            long blocks = bank.blocks, count = (long)map_count(m);
            bank.fail_at = nth;
            bool done = map_put(m, name_of(n), n);
            bank.fail_at = 0;
            if (done) {
                CHECK(map_remove(m, name_of(n)));
            } else {
                failed++;
                CHECK(bank.blocks == blocks);
            }
            CHECK((long)map_count(m) == count && !has(m, n));
        }
        CHECK(map_put(m, name_of(n), n));
        bank.fail_at = 1;
        CHECK(map_put(m, name_of(n), n));
        bank.fail_at = 0;
        for (long i = 0; i <= n; i += 7)
            CHECK(has(m, i));
    }
    CHECK(failed >= 200);
    map_free(m);
    CHECK(bank.blocks == 0);
}
