/* json_check.c - the grammar of a subtree that stays text: nothing is kept, nothing
 * converted. */
#include <string.h>

#include "base/json.h"
#include "base/json_scan.h"

/* One call whose argument is the scan's address would keep it in memory: 15 % slower. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

#define ONES      0x0101010101010101u
#define MAX_SHORT 16

/* Which of the open containers are objects, one bit a level. */
struct kinds {
    uint64_t bits[AB_JSON_MAX_DEPTH / 64 + 1];
};

static bool is_object(const struct kinds *k, unsigned depth)
{
    return k->bits[depth >> 6] >> (depth & 63) & 1;
}

static void set_object(struct kinds *k, unsigned depth, bool object)
{
    uint64_t bit = (uint64_t)1 << (depth & 63);
    k->bits[depth >> 6] = object ? k->bits[depth >> 6] | bit : k->bits[depth >> 6] & ~bit;
}

/* The first n of the 8 bytes at s; the others become `fill`. */
static inline uint64_t load(const char *s, size_t n, unsigned char fill)
{
    uint64_t w;
    memcpy(&w, s, 8);
    if (n >= 8)
        return w;
    uint64_t keep = ((uint64_t)1 << (8 * n)) - 1;
    return (w & keep) | (ONES * fill & ~keep);
}

/* A byte is zero. May be true without, too, never the other way round. */
static inline bool may_have_zero(uint64_t w)
{
    return (w - ONES) & ~w & (ONES * 0x80);
}

/* `limit` is the end of the text: words are only read before it. Lengths vary from token
 * to token and are not predictable, so short tokens are looked at without a loop. */
static inline bool has_backslash(const char *s, const char *end, const char *limit)
{
    size_t n = (size_t)(end - s);
    if (n > MAX_SHORT || limit - s < MAX_SHORT)
        return memchr(s, '\\', n) != NULL;
    uint64_t first = load(s, n, 0) ^ (ONES * '\\');
    uint64_t second = n > 8 ? load(s + 8, n - 8, 0) ^ (ONES * '\\') : ONES;
    return may_have_zero(first) || may_have_zero(second);
}

/* [s, end) is not empty and all digits. */
static inline bool are_digits(const char *s, const char *end, const char *limit)
{
    if (s == end || limit - end < 8)
        return false;
    for (;;) {
        size_t n = (size_t)(end - s);
        uint64_t w = load(s, n, '0') ^ (ONES * '0'); /* digits become 0 to 9 */
        if ((w | (w + ONES * 118)) & (ONES * 0x80))
            return false;
        if (n <= 8)
            return true;
        s += 8;
    }
}

/* The usual forms, 123 and -1.25, quickly; false does not mean that it is none. */
static inline bool is_usual_number(const char *s, const char *end, const char *limit)
{
    s += *s == '-';
    if (end - s > 2 && s[1] == '.')
        return are_digits(s, s + 1, limit) && are_digits(s + 2, end, limit);
    return are_digits(s, end, limit) && (*s != '0' || end - s == 1);
}

static ALWAYS_INLINE int check_string(struct ab_json_scan s, size_t at)
{
    size_t end = ab_json_token_end(s, at);
    if (end < at + 2 || s.src[end - 1] != '"')
        return ab_json_fail(s.src, at, "malformed string", s.err);
    const char *from = s.src + at + 1, *to = s.src + end - 1;
    return has_backslash(from, to, s.src + *s.end)
               ? ab_json_unescape(s.src, from, to, NULL, NULL, s.err)
               : 0;
}

static ALWAYS_INLINE int check_scalar(struct ab_json_scan s, size_t at)
{
    const char *from = s.src + at, *end = s.src + ab_json_token_end(s, at);
    bool integral;
    if (*from == '"')
        return check_string(s, at);
    if (is_usual_number(from, end, s.src + *s.end))
        return 0;
    if (ab_json_is_number(from, end, &integral) || ab_json_is_word(from, end))
        return 0;
    return ab_json_fail(s.src, at, "malformed value", s.err);
}

/* A key and its colon. */
static ALWAYS_INLINE int check_key(struct ab_json_scan *s)
{
    size_t at = *s->next;
    if (s->next == s->end || s->src[at] != '"')
        return ab_json_fail(s->src, at, "expected a string as key", s->err);
    s->next++;
    if (check_string(*s, at) < 0)
        return -1;
    at = *s->next;
    if (s->next == s->end || s->src[at] != ':')
        return ab_json_fail(s->src, at, "expected ':'", s->err);
    s->next++;
    return 0;
}

/* After a value: goes up to the next one. *depth is `base` once the container has ended,
 * and then *end is where. */
static ALWAYS_INLINE int advance(struct ab_json_scan *s, const struct kinds *k,
                                 unsigned *depth, unsigned base, size_t *end)
{
    while (*depth > base) {
        bool object = is_object(k, *depth);
        size_t at = *s->next;
        char c = s->next == s->end ? '\0' : s->src[at];
        if (c == ',') {
            s->next++;
            return object ? check_key(s) : 0;
        }
        if (c != (object ? '}' : ']'))
            return ab_json_fail(s->src, at,
                                object ? "expected ',' or '}'" : "expected ',' or ']'",
                                s->err);
        s->next++;
        --*depth;
        *end = at + 1;
    }
    return 0;
}

int ab_json_check(struct ab_json_scan *scan, size_t at, unsigned depth, size_t *end)
{
    struct ab_json_scan s = *scan;
    struct kinds k = {{0}};
    unsigned base = depth - 1;
    depth = base;
    for (;;) {
        char c = s.src[at];
        bool ended = true; /* the value; a container that has members goes on */
        if (c != '{' && c != '[') {
            if (check_scalar(s, at) < 0)
                return -1;
        } else {
            if (depth == AB_JSON_MAX_DEPTH)
                return ab_json_fail(s.src, at, "nested too deeply", s.err);
            set_object(&k, ++depth, c == '{');
            ended = s.next < s.end && s.src[*s.next] == c + 2;
            if (!ended && c == '{' && check_key(&s) < 0)
                return -1;
            if (ended) {
                *end = *s.next++ + (size_t)1;
                depth--;
            }
        }
        if (ended && advance(&s, &k, &depth, base, end) < 0)
            return -1;
        if (depth == base)
            break;
        if (s.next == s.end)
            return ab_json_fail(s.src, *s.next, "expected a value", s.err);
        at = *s.next++;
    }
    scan->next = s.next;
    return 0;
}
