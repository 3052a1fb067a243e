#include "big.h"

#include <stdlib.h>
#include <string.h>

void big_free(struct big *x)
{
    free(x->digits);
    *x = (struct big){0};
}

/* Room for n digits, all 0; count is n for now. */
static bool make(struct big *x, size_t n)
{
    x->digits = calloc(n ? n : 1, sizeof *x->digits);
    x->count = n;
    return x->digits != NULL;
}

/* Takes leading zeros off and puts `from` in the place of `to`. */
static bool give(struct big *to, struct big *from)
{
    while (from->count && from->digits[from->count - 1] == 0)
        from->count--;
    free(to->digits);
    *to = *from;
    return true;
}

bool big_set(struct big *x, uint64_t value)
{
    struct big r;
    if (!make(&r, 2))
        return false;
    r.digits[0] = (uint32_t)value;
    r.digits[1] = (uint32_t)(value >> 32);
    return give(x, &r);
}

bool big_parse(struct big *x, const char *text)
{
    size_t length = strlen(text);
    if (length == 0 || strspn(text, "0123456789") != length)
        return false;
    struct big r;
    if (!make(&r, length / 9 + 1))
        return false;
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        uint64_t carry = (uint64_t)(text[i] - '0');
        for (size_t k = 0; k < used; k++) {
            carry += (uint64_t)r.digits[k] * 10;
            r.digits[k] = (uint32_t)carry;
            carry >>= 32;
        }
        if (carry)
            r.digits[used++] = (uint32_t)carry;
    }
    return give(x, &r);
}

char *big_text(const struct big *x)
{
    size_t room = x->count * 10 + 2;
    char *text = malloc(room);
    struct big r;
    if (!text || !make(&r, x->count)) {
        free(text);
        return NULL;
    }
    if (x->count)
        memcpy(r.digits, x->digits, x->count * sizeof *r.digits);
    size_t at = room;
    text[--at] = '\0';
    do {
        uint64_t rest = 0;
        for (size_t i = r.count; i-- > 0;) {
            rest = rest << 32 | r.digits[i];
            r.digits[i] = (uint32_t)(rest / 10);
            rest %= 10;
        }
        text[--at] = (char)('0' + rest);
        while (r.count && r.digits[r.count - 1] == 0)
            r.count--;
    } while (r.count);
    memmove(text, text + at, room - at);
    free(r.digits);
    return text;
}

int big_compare(const struct big *a, const struct big *b)
{
    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    for (size_t i = a->count; i-- > 0;) {
        if (a->digits[i] != b->digits[i])
            return a->digits[i] < b->digits[i] ? -1 : 1;
    }
    return 0;
}

static uint32_t digit(const struct big *x, size_t i)
{
    return i < x->count ? x->digits[i] : 0;
}

bool big_add(struct big *out, const struct big *a, const struct big *b)
{
    struct big r;
    if (!make(&r, (a->count > b->count ? a->count : b->count) + 1))
        return false;
    uint64_t carry = 0;
    for (size_t i = 0; i < r.count; i++) {
        carry += (uint64_t)digit(a, i) + digit(b, i);
        r.digits[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return give(out, &r);
}

bool big_sub(struct big *out, const struct big *a, const struct big *b)
{
    struct big r;
    if (big_compare(a, b) < 0 || !make(&r, a->count))
        return false;
    uint64_t borrow = 0;
    for (size_t i = 0; i < r.count; i++) {
        uint64_t d = (uint64_t)digit(a, i) - digit(b, i) - borrow;
        r.digits[i] = (uint32_t)d;
        borrow = d >> 63;
    }
    return give(out, &r);
}

bool big_mul(struct big *out, const struct big *a, const struct big *b)
{
    struct big r;
    if (!make(&r, a->count + b->count))
        return false;
    for (size_t i = 0; i < a->count; i++) {
        uint64_t carry = 0;
        for (size_t k = 0; k < b->count; k++) {
            carry += (uint64_t)a->digits[i] * b->digits[k] + r.digits[i + k];
            r.digits[i + k] = (uint32_t)carry;
            carry >>= 32;
        }
        r.digits[i + b->count] = (uint32_t)carry;
    }
    return give(out, &r);
}

/* dst = src << bits, bits < 32; dst has one digit more than src. */
static void shift_up(uint32_t *dst, const struct big *src, unsigned bits)
{
    uint64_t carry = 0;
    for (size_t i = 0; i < src->count; i++) {
        carry |= (uint64_t)src->digits[i] << bits;
        dst[i] = (uint32_t)carry;
        carry >>= 32;
    }
    dst[src->count] = (uint32_t)carry;
}

/* Takes q times v off u (n + 1 digits); one v is put back when that was too much. Returns the right digit. */
static uint32_t take(uint32_t *u, const uint32_t *v, size_t n, uint64_t q)
{
    uint64_t carry = 0, borrow = 0;
    for (size_t i = 0; i <= n; i++) {
        carry += i < n ? q * v[i] : 0;
        uint64_t d = (uint64_t)u[i] - (uint32_t)carry - borrow;
        u[i] = (uint32_t)d;
        borrow = d >> 63;
        carry >>= 32;
    }
    if (!borrow)
        return (uint32_t)q;
    carry = 0;
    for (size_t i = 0; i <= n; i++) {
        carry += (uint64_t)u[i] + (i < n ? v[i] : 0);
        u[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return (uint32_t)(q - 1);
}

/* Long division; v's highest bit is set, u has m + n + 1 digits, q gets m + 1, u keeps the rest. */
static void long_division(uint32_t *q, uint32_t *u, const uint32_t *v, size_t m, size_t n)
{
    const uint64_t base = (uint64_t)1 << 32;
    for (size_t j = m + 1; j-- > 0;) {
        uint64_t top = (uint64_t)u[j + n] << 32 | u[j + n - 1];
        uint64_t guess = top / v[n - 1], rest = top % v[n - 1];
        while (guess >= base || (n > 1 && rest < base && guess * v[n - 2] > (rest << 32 | u[j + n - 2]))) {
            guess--;
            rest += v[n - 1];
            if (rest >= base && guess < base)
                break;
        }
        q[j] = take(u + j, v, n, guess);
    }
}

bool big_div(struct big *quotient, struct big *rest, const struct big *a, const struct big *b)
{
    if (b->count == 0)
        return false;
    struct big q = {0}, u = {0}, v = {0};
    size_t n = b->count, m = a->count >= n ? a->count - n : 0;
    if (!make(&q, m + 1) || !make(&u, (a->count > n ? a->count : n) + 1) || !make(&v, n + 1)) {
        big_free(&q);
        big_free(&u);
        big_free(&v);
        return false;
    }
    unsigned bits = 0;
    while (!(b->digits[n - 1] << bits & 0x80000000u))
        bits++;
    shift_up(u.digits, a, bits);
    shift_up(v.digits, b, bits);
    if (a->count >= n)
        long_division(q.digits, u.digits, v.digits, m, n);
    for (size_t i = 0; i + 1 < u.count; i++)
        u.digits[i] = (uint32_t)(((uint64_t)u.digits[i + 1] << 32 | u.digits[i]) >> bits);
    u.digits[u.count - 1] >>= bits;
    big_free(&v);
    if (quotient)
        give(quotient, &q);
    else
        big_free(&q);
    if (rest)
        give(rest, &u);
    else
        big_free(&u);
    return true;
}

bool big_powmod(struct big *out, const struct big *base, const struct big *exponent, const struct big *m)
{
    struct big r = {0}, b = {0};
    bool ok = big_set(&r, 1) && big_div(NULL, &r, &r, m) && big_div(NULL, &b, base, m);
    for (size_t i = exponent->count * 32; ok && i-- > 0;) {
        ok = big_mul(&r, &r, &r) && big_div(NULL, &r, &r, m);
        if (ok && exponent->digits[i / 32] >> i % 32 & 1)
            ok = big_mul(&r, &r, &b) && big_div(NULL, &r, &r, m);
    }
    big_free(&b);
    if (ok)
        return give(out, &r);
    big_free(&r);
    return false;
}
