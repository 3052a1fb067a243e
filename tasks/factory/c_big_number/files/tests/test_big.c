#include "check.h"
#include "big.h"

static struct big num(const char *text)
{
    struct big x = {0};
    CHECK(big_parse(&x, text));
    return x;
}

static int is(const struct big *x, const char *text)
{
    char *got = big_text(x);
    int same = got && strcmp(got, text) == 0 && (x->count == 0 || x->digits[x->count - 1] != 0);
    if (!same)
        printf("# %s, want %s\n", got, text);
    free(got);
    return same;
}

TEST(sets_and_writes)
{
    struct big x = {0};
    CHECK(is(&x, "0"));
    CHECK(big_set(&x, 0) && x.count == 0 && is(&x, "0"));
    CHECK(big_set(&x, 7) && x.count == 1 && is(&x, "7"));
    CHECK(big_set(&x, 4294967296u) && x.count == 2 && x.digits[0] == 0 && x.digits[1] == 1);
    CHECK(big_set(&x, UINT64_MAX) && is(&x, "18446744073709551615"));
    big_free(&x);
    CHECK(x.count == 0 && is(&x, "0"));
    big_free(&x);
}

TEST(parses)
{
    struct big x = num("340282366920938463463374607431768211456");
    CHECK(x.count == 5 && x.digits[4] == 1 && x.digits[0] == 0 && is(&x, "340282366920938463463374607431768211456"));
    CHECK(big_parse(&x, "000123") && x.count == 1 && is(&x, "123"));
    const char *bad[] = {"", "-1", "+1", " 1", "1 ", "1x", "0x10", "1.0"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(!big_parse(&x, bad[i]) && is(&x, "123"));
    CHECK(big_parse(&x, "00") && x.count == 0);
}

TEST(compares)
{
    const char *rising[] = {"0", "1", "4294967295", "4294967296", "8589934591", "8589934592", "18446744073709551616"};
    for (int i = 0; i < 7; i++) {
        for (int k = 0; k < 7; k++) {
            struct big a = num(rising[i]), b = num(rising[k]);
            CHECK(big_compare(&a, &b) == (i > k) - (i < k));
        }
    }
}

TEST(adds_and_subtracts)
{
    struct big a = num("340282366920938463463374607431768211455"), b = num("1"), c = {0};
    CHECK(big_add(&c, &a, &b) && is(&c, "340282366920938463463374607431768211456"));
    CHECK(big_add(&c, &b, &a) && is(&c, "340282366920938463463374607431768211456"));
    CHECK(big_sub(&a, &c, &b) && is(&a, "340282366920938463463374607431768211455"));
    CHECK(!big_sub(&a, &b, &c) && is(&a, "340282366920938463463374607431768211455"));
    CHECK(big_sub(&a, &a, &a) && a.count == 0);
    CHECK(big_add(&c, &c, &c) && is(&c, "680564733841876926926749214863536422912"));
    CHECK(big_add(&a, &a, &a) && a.count == 0);
    CHECK(big_sub(&c, &c, &a) && is(&c, "680564733841876926926749214863536422912"));
}

TEST(multiplies)
{
    struct big a = num("123456789012345678901234567890"), b = num("987654321098765432109876543210"), zero = {0}, c = {0};
    CHECK(big_mul(&c, &a, &b) && is(&c, "121932631137021795226185032733622923332237463801111263526900"));
    CHECK(big_mul(&a, &a, &a) && is(&a, "15241578753238836750495351562536198787501905199875019052100"));
    CHECK(big_mul(&c, &a, &zero) && c.count == 0);
    struct big m = num("18446744073709551615");
    CHECK(big_mul(&m, &m, &m) && is(&m, "340282366920938463426481119284349108225"));
}

static int divides(const char *a_text, const char *b_text, const char *q_text, const char *r_text)
{
    struct big a = num(a_text), b = num(b_text), q = {0}, r = {0};
    return big_div(&q, &r, &a, &b) && is(&q, q_text) && is(&r, r_text) && is(&a, a_text) && is(&b, b_text);
}

TEST(divides_small)
{
    CHECK(divides("0", "7", "0", "0"));
    CHECK(divides("6", "7", "0", "6"));
    CHECK(divides("7", "7", "1", "0"));
    CHECK(divides("18446744073709551615", "1", "18446744073709551615", "0"));
    CHECK(divides("18446744073709551615", "10", "1844674407370955161", "5"));
    CHECK(divides("5", "340282366920938463463374607431768211456", "0", "5"));
}

TEST(divides_large)
{
    CHECK(divides("121932631137021795226185032733622923332237463801111263526907", "987654321098765432109876543210",
                  "123456789012345678901234567890", "7"));
    CHECK(divides("340282366920938463463374607431768211455", "18446744073709551616", "18446744073709551615", "18446744073709551615"));
    /* Where the first guess of a digit is one or two too large, or what is taken off is too much. */
    CHECK(divides("39614081257132168796771975168", "18446744069414584321", "2147483648", "9223372034707292160"));
    CHECK(divides("170141183420855150493001878992821682176", "39614081266355540842216685573", "4294967293", "39614081266355540837921718287"));
    CHECK(divides("340282366920938463426481119284349108224", "18446744073709551615", "18446744073709551614", "18446744073709551614"));
}

TEST(divides_in_place)
{
    struct big a = num("1000000000000000000000007"), b = num("1000000000000"), zero = {0};
    CHECK(!big_div(&a, &b, &a, &zero) && is(&a, "1000000000000000000000007") && is(&b, "1000000000000"));
    CHECK(big_div(&a, &b, &a, &b) && is(&a, "1000000000000") && is(&b, "7"));
    CHECK(big_div(&b, &a, &a, &b) && is(&b, "142857142857") && is(&a, "1"));
    CHECK(big_div(NULL, NULL, &a, &b));
    CHECK(big_div(&b, NULL, &b, &b) && is(&b, "1"));
}

/* Numbers of random digits; every few of them are all ones or zero, which is where carries go wrong. */
static uint32_t seed;
static uint32_t next(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8 ^ seed << 16;
}

static struct big draw(size_t most)
{
    struct big x = {0}, shift = {0}, d = {0};
    CHECK(big_set(&shift, 4294967296u));
    for (size_t n = next() % (most + 1); n > 0; n--) {
        uint32_t kind = next() % 4;
        CHECK(big_mul(&x, &x, &shift) && big_set(&d, kind == 0 ? 0xffffffffu : kind == 1 ? 0 : kind == 2 ? 0x80000000u : next()));
        CHECK(big_add(&x, &x, &d));
    }
    big_free(&shift);
    big_free(&d);
    return x;
}

TEST(division_undoes_multiplication)
{
    seed = 1;
    for (int i = 0; i < 20000; i++) {
        struct big a = draw(6), b = draw(4), q = {0}, r = {0}, back = {0};
        if (b.count == 0)
            continue;
        CHECK(big_div(&q, &r, &a, &b));
        CHECK(big_compare(&r, &b) < 0);
        CHECK(big_mul(&back, &q, &b) && big_add(&back, &back, &r) && big_compare(&back, &a) == 0);
        big_free(&a);
        big_free(&b);
        big_free(&q);
        big_free(&r);
        big_free(&back);
    }
}

TEST(factorial)
{
    struct big x = {0}, n = {0}, r = {0};
    CHECK(big_set(&x, 1));
    for (unsigned i = 2; i <= 1000; i++)
        CHECK(big_set(&n, i) && big_mul(&x, &x, &n));
    char *text = big_text(&x);
    CHECK(strlen(text) == 2568 && strncmp(text, "40238726007709377354", 20) == 0 && strspn(text + 2568 - 249, "0") == 249);
    struct big again = num(text);
    CHECK(big_compare(&again, &x) == 0);
    for (unsigned i = 1000; i >= 2; i--)
        CHECK(big_set(&n, i) && big_div(&x, &r, &x, &n) && r.count == 0);
    CHECK(is(&x, "1"));
}

TEST(powers)
{
    struct big b = num("3"), e = num("1000"), m = num("1000000007"), r = {0}, one = num("1"), zero = {0};
    CHECK(big_powmod(&r, &b, &e, &m) && is(&r, "56888193"));
    CHECK(big_powmod(&r, &b, &zero, &m) && is(&r, "1"));
    CHECK(big_powmod(&r, &zero, &zero, &m) && is(&r, "1"));
    CHECK(big_powmod(&r, &zero, &e, &m) && is(&r, "0"));
    CHECK(big_powmod(&r, &b, &zero, &one) && is(&r, "0"));
    CHECK(big_powmod(&r, &m, &one, &b) && is(&r, "2"));
    CHECK(!big_powmod(&r, &b, &e, &zero) && is(&r, "2"));
    /* Fermat: a^(p-1) = 1 modulo a prime p, here 2^521 - 1. */
    struct big p = {0}, two = num("2"), pe = {0};
    CHECK(big_set(&p, 1));
    for (int i = 0; i < 521; i++)
        CHECK(big_mul(&p, &p, &two));
    CHECK(big_sub(&p, &p, &one) && big_sub(&pe, &p, &one));
    CHECK(big_powmod(&b, &b, &pe, &p) && is(&b, "1"));
}
