/* big.h - whole numbers of any size, not negative. */
#ifndef BIG_H
#define BIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The number is the sum of digits[i] * 2^(32 * i). The highest digit is not 0; the number 0 has count 0. */
struct big {
    uint32_t *digits; /* from malloc(), or NULL */
    size_t count;
};

/* All numbers given to functions have been initialised, `struct big x = {0};` is enough (and is 0). Functions that compute return false
 * when there is no memory, and then leave their results as they were. Results may be the same objects as arguments. */

void big_free(struct big *x); /* x is 0 afterwards and may be used again */
bool big_set(struct big *x, uint64_t value);

/* Reads decimal digits, at least one; leading zeros are fine. false for anything else, also a sign or blanks; x stays as it was. */
bool big_parse(struct big *x, const char *text);

/* The number in decimal digits, from malloc(); NULL when there is no memory. */
char *big_text(const struct big *x);

int big_compare(const struct big *a, const struct big *b); /* -1, 0 or 1 */
bool big_add(struct big *out, const struct big *a, const struct big *b);
bool big_sub(struct big *out, const struct big *a, const struct big *b); /* false also when a < b */
bool big_mul(struct big *out, const struct big *a, const struct big *b);

/* a = b * quotient + rest, rest < b. false also when b is 0. quotient and rest may each be NULL, but are not the same object. */
bool big_div(struct big *quotient, struct big *rest, const struct big *a, const struct big *b);

/* out = base to the power of exponent, modulo m (0 when m is 1). false also when m is 0. Takes time in proportion to the exponent's
 * number of bits. */
bool big_powmod(struct big *out, const struct big *base, const struct big *exponent, const struct big *m);

#endif
