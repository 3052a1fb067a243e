#include "base/utf8.h"

#include <string.h>

#define HIGH_BITS 0x8080808080808080u

/* The number of ASCII bytes at the start, eight at a time. */
static size_t ascii_run(const char *s, size_t len)
{
    size_t i = 0;
    for (; i + 8 <= len; i += 8) {
        uint64_t w;
        memcpy(&w, s + i, 8);
        if (w & HIGH_BITS)
            break;
    }
    while (i < len && !(s[i] & 0x80))
        i++;
    return i;
}

/* The lead byte fixes the length and the range of the second byte (Unicode, table 3-7).
 */
static int sequence(unsigned char lead, unsigned char *lo, unsigned char *hi)
{
    *lo = 0x80;
    *hi = 0xbf;
    if (lead < 0xc2)
        return 0;
    if (lead < 0xe0)
        return 2;
    if (lead < 0xf0) {
        if (lead == 0xe0)
            *lo = 0xa0;
        if (lead == 0xed)
            *hi = 0x9f;
        return 3;
    }
    if (lead > 0xf4)
        return 0;
    if (lead == 0xf0)
        *lo = 0x90;
    if (lead == 0xf4)
        *hi = 0x8f;
    return 4;
}

int ab_utf8_decode(const char *s, size_t n, uint32_t *cp)
{
    const unsigned char *u = (const unsigned char *)s;
    if (u[0] < 0x80) {
        *cp = u[0];
        return 1;
    }
    unsigned char lo, hi;
    int len = sequence(u[0], &lo, &hi);
    if (len == 0)
        return -1;
    uint32_t v = u[0] & (0x7fu >> len);
    for (int i = 1; i < len; i++) {
        if ((size_t)i >= n || u[i] < lo || u[i] > hi)
            return -i;
        v = v << 6 | (u[i] & 0x3fu);
        lo = 0x80;
        hi = 0xbf;
    }
    *cp = v;
    return len;
}

int ab_utf8_encode(uint32_t cp, char out[4])
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xc0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3f));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xe0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3f));
        out[2] = (char)(0x80 | (cp & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
    out[3] = (char)(0x80 | (cp & 0x3f));
    return 4;
}

size_t ab_utf8_valid_prefix(const char *s, size_t len)
{
    size_t i = 0;
    for (;;) {
        i += ascii_run(s + i, len - i);
        if (i == len)
            return len;
        uint32_t cp;
        int n = ab_utf8_decode(s + i, len - i, &cp);
        if (n < 0)
            return i;
        i += (size_t)n;
    }
}

void ab_utf8_scrub(struct ab_buf *out, const char *s, size_t len)
{
    while (len > 0) {
        size_t good = ab_utf8_valid_prefix(s, len);
        ab_buf_put(out, s, good);
        s += good;
        len -= good;
        if (len == 0)
            return;
        uint32_t cp;
        size_t bad = (size_t)-ab_utf8_decode(s, len, &cp);
        ab_buf_put(out, "\xef\xbf\xbd", 3);
        s += bad;
        len -= bad;
    }
}

/* Walks up to `points` code points; stores how many there were, returns the bytes. */
static size_t walk(const char *s, size_t len, size_t points, size_t *seen)
{
    size_t i = 0, n = 0;
    while (i < len && n < points) {
        size_t left = points - n;
        size_t run = ascii_run(s + i, len - i < left ? len - i : left);
        i += run;
        n += run;
        if (i == len || n == points)
            break;
        uint32_t cp;
        int step = ab_utf8_decode(s + i, len - i, &cp);
        i += (size_t)(step < 0 ? -step : step);
        n++;
    }
    *seen = n;
    return i;
}

size_t ab_utf8_count(const char *s, size_t len)
{
    size_t n;
    walk(s, len, SIZE_MAX, &n);
    return n;
}

size_t ab_utf8_prefix(const char *s, size_t len, size_t points)
{
    size_t n;
    return walk(s, len, points, &n);
}

size_t ab_utf8_cut(const char *s, size_t len, size_t max)
{
    if (len <= max)
        return len;
    /* Only a sequence that begins in the last three bytes can straddle the cut. */
    for (size_t back = 1; back <= 3 && back <= max; back++) {
        unsigned char c = (unsigned char)s[max - back];
        if ((c & 0xc0) == 0x80)
            continue;
        uint32_t cp;
        int n = ab_utf8_decode(s + max - back, len - (max - back), &cp);
        return n > (int)back ? max - back : max;
    }
    return max;
}
