/* json_write.c - values to JSON text. */
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "base/utf8.h"

static const char hex[] = "0123456789abcdef";

static void put_u(struct ab_buf *out, uint32_t unit)
{
    char s[6] = {'\\', 'u', hex[unit >> 12], hex[unit >> 8 & 15], hex[unit >> 4 & 15],
                 hex[unit & 15]};
    ab_buf_put(out, s, sizeof s);
}

static void put_escaped(struct ab_buf *out, uint32_t cp)
{
    if (cp < 0x10000) {
        put_u(out, cp);
        return;
    }
    put_u(out, 0xd800 + ((cp - 0x10000) >> 10));
    put_u(out, 0xdc00 + ((cp - 0x10000) & 0x3ff));
}

static void put_special(struct ab_buf *out, unsigned char c)
{
    static const char letters[0x20] = {
        ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't',
    };
    char letter = c < 0x20 ? letters[c] : (char)c;
    if (!letter || c == 0x7f) {
        put_u(out, c);
        return;
    }
    char s[2] = {'\\', letter};
    ab_buf_put(out, s, 2);
}

/* Eight bytes at once: does any need more than a copy? Quote, backslash, below 0x20, or
 * with the high bit. The classic zero-byte test; borrows only cause false alarms. */
static bool is_plain8(const char *s)
{
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    uint64_t w;
    memcpy(&w, s, 8);
    uint64_t quote = (w ^ (ones * '"')) - ones;
    uint64_t slash = (w ^ (ones * '\\')) - ones;
    uint64_t low = w - ones * 0x20;
    return !((w | quote | slash | low) & high);
}

/* The bytes at the start that are copied as they are. */
static size_t plain_run(const char *s, size_t len, unsigned style)
{
    unsigned char last = style & AB_JSON_ASCII ? 0x7e : 0x7f;
    size_t i = 0;
    while (last == 0x7f && i + 8 <= len && is_plain8(s + i))
        i += 8;
    for (; i < len; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c < 0x20 || c == '"' || c == '\\' || c > last)
            break;
    }
    return i;
}

int ab_json_put_string(struct ab_buf *out, const char *s, size_t len, unsigned style)
{
    const char *end = s + len;
    ab_buf_reserve(out, len + 2);
    ab_buf_putc(out, '"');
    while (s < end) {
        size_t run = plain_run(s, (size_t)(end - s), style);
        ab_buf_put(out, s, run);
        s += run;
        if (s == end)
            break;
        unsigned char c = (unsigned char)*s;
        if (c < 0x80) {
            put_special(out, c);
            s++;
            continue;
        }
        uint32_t cp = 0xfffd;
        int n = ab_utf8_decode(s, (size_t)(end - s), &cp);
        if (n < 0 && (style & AB_JSON_STRICT))
            return -1;
        size_t used = (size_t)(n < 0 ? -n : n);
        if (style & AB_JSON_ASCII)
            put_escaped(out, n < 0 ? 0xfffd : cp);
        else if (n < 0)
            ab_buf_put(out, "\xef\xbf\xbd", 3);
        else
            ab_buf_put(out, s, used);
        s += used;
    }
    ab_buf_putc(out, '"');
    return 0;
}

void ab_json_put_integer(struct ab_buf *out, int64_t v)
{
    char s[20], *p = s + sizeof s;
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do {
        *--p = (char)('0' + u % 10);
        u /= 10;
    } while (u);
    if (v < 0)
        *--p = '-';
    ab_buf_put(out, p, (size_t)(s + sizeof s - p));
}

static void put_zeros(struct ab_buf *out, int n)
{
    for (; n > 0; n--)
        ab_buf_putc(out, '0');
}

/* digits d[0..n) with the decimal point after the first `point` of them. */
static void put_fixed(struct ab_buf *out, const char *d, int n, int point)
{
    if (point <= 0) {
        ab_buf_put(out, "0.", 2);
        put_zeros(out, -point);
        ab_buf_put(out, d, (size_t)n);
    } else if (point >= n) {
        ab_buf_put(out, d, (size_t)n);
        put_zeros(out, point - n);
        ab_buf_put(out, ".0", 2);
    } else {
        ab_buf_put(out, d, (size_t)point);
        ab_buf_putc(out, '.');
        ab_buf_put(out, d + point, (size_t)(n - point));
    }
}

void ab_json_put_double(struct ab_buf *out, double v)
{
    char sci[32], d[32];
    size_t len = ab_json_format_scientific(v, sci);
    const char *s = sci, *e = memchr(sci, 'e', len);
    if (!e)
        AB_BUG("a double that is not finite");
    if (*s == '-') {
        ab_buf_putc(out, '-');
        s++;
    }
    int n = 0, exp = 0;
    for (const char *p = s; p < e; p++) {
        if (*p != '.')
            d[n++] = *p;
    }
    for (const char *p = e + 2; p < sci + len; p++)
        exp = exp * 10 + (*p - '0');
    if (e[1] == '-')
        exp = -exp;
    if (exp >= -4 && exp < 16)
        put_fixed(out, d, n, exp + 1);
    else
        ab_buf_put(out, s, (size_t)(sci + len - s));
}

void ab_json_put_raw(struct ab_buf *out, const char *s, size_t len, unsigned style)
{
    const char *end = s + len;
    size_t start = out->len;
    if (!(style & AB_JSON_ASCII)) {
        ab_buf_put(out, s, len);
    } else {
        while (s < end) {
            uint32_t cp = 0xfffd;
            int n = ab_utf8_decode(s, (size_t)(end - s), &cp);
            if (n == 1)
                ab_buf_putc(out, *s);
            else
                put_escaped(out, cp);
            s += n < 0 ? -n : n;
        }
    }
    /* Inside strings they would be invalid, so these are white space between tokens. */
    char *nl = out->data + start, *stop = out->data + out->len;
    while (nl && (nl = memchr(nl, '\n', (size_t)(stop - nl))))
        *nl = ' ';
    nl = out->data + start;
    while (nl && (nl = memchr(nl, '\r', (size_t)(stop - nl))))
        *nl = ' ';
}
