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

/* p is at an opening quote; returns what is behind the closing one. A quote behind an odd
 * number of backslashes is part of the string. */
static const char *skip_string(const char *p, const char *end)
{
    const char *from = p + 1, *quote = from;
    while (quote < end && (quote = memchr(quote, '"', (size_t)(end - quote)))) {
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
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    while (end - p >= 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        w = le64toh(w) | (ones * 0x20);
        uint64_t quote = w ^ (ones * '"'), open = w ^ (ones * '{'),
                 close = w ^ (ones * '}');
        uint64_t found = (((quote - ones) & ~quote) | ((open - ones) & ~open) |
                          ((close - ones) & ~close)) &
                         high;
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

static const char *skip_value(const char *p, const char *end)
{
    if (*p == '"')
        return skip_string(p, end);
    if (*p == '{' || *p == '[')
        return skip_container(p, end);
    while (p < end && *p != ',' && *p != '}' && *p != ']' && !ab_json_is_space(*p))
        p++;
    return p;
}

static bool begin(struct ab_json_walk *walk, const char *text, size_t len, char bracket)
{
    const char *end = text + len, *p = skip_space(text, end);
    if (p == end || *p != bracket)
        return false;
    *walk = (struct ab_json_walk){p + 1, end};
    return true;
}

bool ab_json_walk_object(struct ab_json_walk *walk, const char *text, size_t len)
{
    return begin(walk, text, len, '{');
}

bool ab_json_walk_array(struct ab_json_walk *walk, const char *text, size_t len)
{
    return begin(walk, text, len, '[');
}

/* Moves to what comes next in the container; false at its end. */
static bool go_on(struct ab_json_walk *walk)
{
    const char *p = skip_space(walk->p, walk->end);
    if (p < walk->end && *p == ',')
        p = skip_space(p + 1, walk->end);
    walk->p = p;
    return p < walk->end && *p != '}' && *p != ']';
}

bool ab_json_next_element(struct ab_json_walk *walk, struct ab_json_slice *value)
{
    if (!go_on(walk))
        return false;
    const char *p = skip_value(walk->p, walk->end);
    *value = (struct ab_json_slice){walk->p, (size_t)(p - walk->p)};
    walk->p = p;
    return p > value->s;
}

bool ab_json_next_member(struct ab_json_walk *walk, struct ab_json_slice *key,
                         struct ab_json_slice *value)
{
    if (!go_on(walk) || *walk->p != '"')
        return false;
    const char *p = skip_string(walk->p, walk->end);
    if (p - walk->p < 2)
        return false;
    *key = (struct ab_json_slice){walk->p + 1, (size_t)(p - walk->p) - 2};
    p = skip_space(p, walk->end);
    if (p == walk->end || *p != ':')
        return false;
    walk->p = p + 1;
    return ab_json_next_element(walk, value);
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
