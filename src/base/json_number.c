/* json_number.c - what is a number, and which. */
#include <string.h>

#include "base/json_index.h"
#include "base/json_scan.h"

/* The first byte that is no digit, looking at eight at once while there are so many: each
 * byte less '0' is below 10 exactly when neither it nor it plus 118 has the high bit. */
static const char *digits(const char *s, const char *end)
{
    const uint64_t ones = 0x0101010101010101u;
    while (end - s >= 8) {
        uint64_t w;
        memcpy(&w, s, 8);
        w ^= ones * '0';
        if ((w | (w + ones * 118)) & (ones * 0x80))
            break;
        s += 8;
    }
    while (s < end && (unsigned char)(*s - '0') <= 9)
        s++;
    return s;
}

bool ab_json_is_number(const char *s, const char *end, bool *integral)
{
    if (s < end && *s == '-')
        s++;
    const char *d = digits(s, end);
    if (d == s || (*s == '0' && d - s > 1))
        return false;
    *integral = d == end;
    s = d;
    if (s < end && *s == '.') {
        d = digits(s + 1, end);
        if (d == s + 1)
            return false;
        s = d;
    }
    if (s < end && (*s == 'e' || *s == 'E')) {
        s++;
        if (s < end && (*s == '+' || *s == '-'))
            s++;
        d = digits(s, end);
        if (d == s)
            return false;
        s = d;
    }
    return s == end;
}

/* False when the value does not fit. -0 does not fit either: it is a float. */
static bool read_int64(const char *s, const char *end, int64_t *v)
{
    bool negative = *s == '-';
    s += negative;
    if (end - s > 19 || (negative && *s == '0'))
        return false;
    uint64_t u = 0;
    for (; s < end; s++)
        u = u * 10 + (unsigned)(*s - '0');
    if (u > (uint64_t)INT64_MAX + negative)
        return false;
    *v = negative ? (int64_t)(0 - u) : (int64_t)u;
    return true;
}

/* A number a double cannot hold is nearly zero, or too large. */
static bool is_tiny(const char *s, const char *end)
{
    const char *e = s;
    while (e < end && *e != 'e' && *e != 'E')
        e++;
    long long exp = 0, scale = 0;
    bool negative = e + 1 < end && e[1] == '-';
    for (const char *d = e + 1; d < end; d++) {
        if (*d >= '0' && *d <= '9' && exp < (1LL << 40))
            exp = exp * 10 + (*d - '0');
    }
    const char *point = memchr(s, '.', (size_t)(e - s));
    const char *first = s;
    while (first < e && (*first < '1' || *first > '9'))
        first++;
    scale = (point ? point : e) - first;
    return scale + (negative ? -exp : exp) < 0;
}

void ab_json_read_number(const char *s, const char *end, bool integral,
                         struct ab_json_node *node)
{
    node->kind = AB_JSON_INT;
    if (integral && read_int64(s, end, &node->integer))
        return;
    bool minus_zero = integral && end - s == 2 && s[1] == '0';
    node->kind = AB_JSON_FLOAT;
    if ((!integral || minus_zero) &&
        ab_json_read_double(s, (size_t)(end - s), &node->number))
        return;
    if (!integral && is_tiny(s, end))
        node->number = *s == '-' ? -0.0 : 0.0;
    else
        node->kind = AB_JSON_NUMBER;
}
