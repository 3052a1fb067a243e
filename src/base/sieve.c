#include "base/sieve.h"

#include <stdlib.h>
#include <string.h>

enum { PROBES = 4 };

/* Two numbers that every probe of a text follows from. */
struct probe {
    uint64_t at, step;
};

static uint64_t mix(uint64_t h)
{
    h = (h ^ (h >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ (h >> 27)) * UINT64_C(0x94d049bb133111eb);
    return h ^ (h >> 31);
}

static struct probe probe_of(const char *text, size_t len)
{
    uint64_t h = UINT64_C(0x9e3779b97f4a7c15) ^ len;
    for (; len >= 8; text += 8, len -= 8) {
        uint64_t word;
        memcpy(&word, text, 8);
        h = mix(h ^ word);
    }
    uint64_t rest = 0;
    memcpy(&rest, text, len);
    h = mix(h ^ rest);
    return (struct probe){.at = h, .step = mix(h) | 1};
}

void ab_sieve_init(struct ab_sieve *s, unsigned bits)
{
    s->bits = bits;
    s->words = ab_xcalloc((size_t)1 << (bits - 6), sizeof *s->words);
}

void ab_sieve_fini(struct ab_sieve *s)
{
    free(s->words);
    s->words = NULL;
}

bool ab_sieve_has(const struct ab_sieve *s, const char *text, size_t len)
{
    struct probe p = probe_of(text, len);
    for (int i = 0; i < PROBES; i++, p.at += p.step) {
        uint64_t bit = p.at >> (64 - s->bits);
        if (!(s->words[bit >> 6] >> (bit & 63) & 1))
            return false;
    }
    return true;
}

bool ab_sieve_add(struct ab_sieve *s, const char *text, size_t len)
{
    struct probe p = probe_of(text, len);
    bool found = true;
    for (int i = 0; i < PROBES; i++, p.at += p.step) {
        uint64_t bit = p.at >> (64 - s->bits), mask = (uint64_t)1 << (bit & 63);
        found = found && (s->words[bit >> 6] & mask);
        s->words[bit >> 6] |= mask;
    }
    return found;
}
