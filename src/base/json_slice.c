#include "base/json_slice.h"

#include <endian.h>
#include <string.h>
#ifdef __SSE2__
#    include <emmintrin.h>
#endif

#include "base/json_scan.h"

/* The longest name that a key with escapes is compared with. */
enum { MAX_NAME = 64 };

static const char *skip_space(const char *p, const char *end)
{
    while (p < end && ab_json_is_space(*p))
        p++;
    return p;
}

#define ONES 0x0101010101010101u
#define HIGH 0x8080808080808080u

/* The next quote: most strings are short, and a call costs more than two words. */
static const char *next_quote(const char *p, const char *end)
{
    for (int i = 0; i < 2 && end - p >= 8; i++, p += 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        w = le64toh(w) ^ (ONES * '"');
        uint64_t found = (w - ONES) & ~w & HIGH; /* the lowest bit is exact */
        if (found)
            return p + __builtin_ctzll(found) / 8;
    }
    return p < end ? memchr(p, '"', (size_t)(end - p)) : NULL;
}

/* p is at an opening quote; returns what is behind the closing one. A quote behind an odd
 * number of backslashes is part of the string. */
static const char *skip_string(const char *p, const char *end)
{
    const char *from = p + 1, *quote = from;
    while ((quote = next_quote(quote, end))) {
        const char *slash = quote;
        while (slash > from && slash[-1] == '\\')
            slash--;
        quote++;
        if ((quote - 1 - slash) % 2 == 0)
            return quote;
    }
    return end;
}

/* The first quote or bracket, eight bytes at a time: `|0x20` makes [ and { one, and ] and
 * }. Of the classic zero-byte test the lowest bit is exact. */
static const char *next_mark(const char *p, const char *end)
{
    while (end - p >= 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        w = le64toh(w) | (ONES * 0x20);
        uint64_t quote = w ^ (ONES * '"'), open = w ^ (ONES * '{'),
                 close = w ^ (ONES * '}');
        uint64_t found = (((quote - ONES) & ~quote) | ((open - ONES) & ~open) |
                          ((close - ONES) & ~close)) &
                         HIGH;
        if (found)
            return p + __builtin_ctzll(found) / 8;
        p += 8;
    }
    while (p < end && *p != '"' && (*p | 0x20) != '{' && (*p | 0x20) != '}')
        p++;
    return p;
}

#ifdef __SSE2__

enum { BLOCK = 64 };

/* Where in a block something stands, a bit a byte. */
struct marks {
    uint64_t quotes, opens, closes, slashes;
};

static inline uint64_t where(__m128i v, char c)
{
    return (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8(c)));
}

static inline struct marks marks_of(const char *p)
{
    struct marks m = {0};
    for (int i = 0; i < BLOCK; i += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
        __m128i w = _mm_or_si128(v, _mm_set1_epi8(0x20));
        m.quotes |= where(v, '"') << i;
        m.slashes |= where(v, '\\') << i;
        m.opens |= where(w, '{') << i;
        m.closes |= where(w, '}') << i;
    }
    return m;
}

/* A bit for each byte from an odd quote to the next one. */
static inline uint64_t inside_of(uint64_t quotes)
{
    for (int shift = 1; shift < BLOCK; shift *= 2)
        quotes ^= quotes << shift;
    return quotes;
}

/* Goes through blocks without a backslash, from outside of any string, up to where that
 * ends or the depth becomes 0. */
static const char *skip_blocks(const char *p, const char *end, size_t *depth)
{
    while (end - p >= BLOCK) {
        struct marks m = marks_of(p);
        if (m.slashes)
            break;
        uint64_t outside = ~inside_of(m.quotes);
        const char *next = p + BLOCK;
        if (!(outside >> (BLOCK - 1))) { /* the last string goes on */
            unsigned last = BLOCK - 1 - (unsigned)__builtin_clzll(m.quotes);
            outside &= ((uint64_t)1 << last) - 1;
            next = p + last;
        }
        uint64_t opens = m.opens & outside, closes = m.closes & outside;
        size_t closed = (size_t)__builtin_popcountll(closes);
        if (closed < *depth) {
            *depth += (size_t)__builtin_popcountll(opens) - closed;
        } else {
            for (uint64_t both = opens | closes; both; both &= both - 1) {
                *depth = opens & both & -both ? *depth + 1 : *depth - 1;
                if (*depth == 0)
                    return p + __builtin_ctzll(both) + 1;
            }
        }
        p = next < p + BLOCK ? skip_string(next, end) : next;
    }
    return p;
}

#else

static const char *skip_blocks(const char *p, const char *end, size_t *depth)
{
    (void)end;
    (void)depth;
    return p;
}

#endif

/* p is at the opening bracket; returns what is behind the closing one. */
static const char *skip_container(const char *p, const char *end)
{
    size_t depth = 1;
    for (p++;;) {
        p = skip_blocks(p, end, &depth);
        if (depth == 0)
            return p;
        p = next_mark(p, end);
        if (p == end)
            return end;
        if (*p == '"') {
            p = skip_string(p, end);
            continue;
        }
        depth = (*p | 0x20) == '{' ? depth + 1 : depth - 1;
        p++;
        if (depth == 0)
            return p;
    }
}

bool ab_json_open(struct ab_json_walk *walk, char bracket)
{
    walk->p = skip_space(walk->p, walk->end);
    if (walk->p == walk->end || *walk->p != bracket)
        return false;
    walk->p++;
    return true;
}

bool ab_json_next(struct ab_json_walk *walk)
{
    const char *p = skip_space(walk->p, walk->end);
    if (p < walk->end && *p == ',')
        p = skip_space(p + 1, walk->end);
    bool more = p < walk->end && *p != '}' && *p != ']';
    walk->p = more || p == walk->end ? p : p + 1;
    return more;
}

bool ab_json_next_key(struct ab_json_walk *walk, struct ab_json_slice *key)
{
    if (!ab_json_next(walk) || *walk->p != '"')
        return false;
    const char *p = skip_string(walk->p, walk->end);
    if (p - walk->p < 2)
        return false;
    *key = (struct ab_json_slice){walk->p + 1, (size_t)(p - walk->p) - 2};
    p = skip_space(p, walk->end);
    if (p == walk->end || *p != ':')
        return false;
    walk->p = skip_space(p + 1, walk->end);
    return true;
}

struct ab_json_slice ab_json_value(struct ab_json_walk *walk)
{
    const char *from = skip_space(walk->p, walk->end), *p = from;
    if (p < walk->end && *p == '"') {
        p = skip_string(p, walk->end);
    } else if (p < walk->end && (*p == '{' || *p == '[')) {
        p = skip_container(p, walk->end);
    } else {
        while (p < walk->end && *p != ',' && *p != '}' && *p != ']' &&
               !ab_json_is_space(*p))
            p++;
    }
    walk->p = p;
    return (struct ab_json_slice){from, (size_t)(p - from)};
}

bool ab_json_is_key(struct ab_json_slice key, const char *name, size_t len)
{
    char plain[MAX_NAME * 6];
    size_t written = 0;
    struct ab_err err;
    if (key.len <= len)
        return key.len == len && memcmp(key.s, name, len) == 0;
    if (key.len > sizeof plain || !memchr(key.s, '\\', key.len))
        return false;
    return ab_json_unescape(key.s, key.s, key.s + key.len, plain, &written, &err) == 0 &&
           written == len && memcmp(plain, name, len) == 0;
}
