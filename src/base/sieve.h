/* sieve.h - which texts may have come before, in memory that does not grow with them (a
 * Bloom filter).
 *
 * A text that was added is always found. One that was not may be taken for one that was:
 * with BITS = 2^27 about once in 10^7 after half a million texts, once in 200 after ten
 * million. Whoever needs certainty looks at those texts again.
 */
#ifndef AB_BASE_SIEVE_H
#define AB_BASE_SIEVE_H

#include "base/ab.h"

enum { AB_SIEVE_MIN_BITS = 10, AB_SIEVE_MAX_BITS = 32 };

struct ab_sieve {
    uint64_t *words; /* owns */
    unsigned bits;   /* there are 2^bits */
};

void ab_sieve_init(struct ab_sieve *s, unsigned bits);
void ab_sieve_fini(struct ab_sieve *s);

/* Adds a text; true when it may have been there. */
bool ab_sieve_add(struct ab_sieve *s, const char *text, size_t len);
bool ab_sieve_has(const struct ab_sieve *s, const char *text, size_t len);

#endif
