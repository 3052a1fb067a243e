#include "base/json_slice.h"

#include <endian.h>
#include <string.h>

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

static const char *skip_container(const char *p, const char *end)
{
    size_t depth = 0;
    while ((p = next_mark(p, end)) < end) {
        if (*p == '"') {
            p = skip_string(p, end);
            continue;
        }
        depth = (*p | 0x20) == '{' ? depth + 1 : depth - 1;
        p++;
        if (depth == 0)
            return p;
    }
    return end;
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
    struct ab_json_scan scan = {.src = key.s, .err = &err};
    return ab_json_unescape(scan, key.s, key.s + key.len, plain, &written) == 0 &&
           written == len && memcmp(plain, name, len) == 0;
}
