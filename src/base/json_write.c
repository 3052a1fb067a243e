/* json_write.c - values to JSON text. */
#include <endian.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "base/utf8.h"

/* The longest text of one character: a pair of surrogate escapes. */
#define MAX_ESCAPE 12

/* These write to memory that has MAX_ESCAPE bytes and return how many they wrote. */

static size_t write_u(char *out, uint32_t unit)
{
    static const char hex[] = "0123456789abcdef";
    char s[6] = {
        '\\',          'u', hex[unit >> 12], hex[unit >> 8 & 15], hex[unit >> 4 & 15],
        hex[unit & 15]};
    memcpy(out, s, sizeof s);
    return sizeof s;
}

static size_t write_escaped(char *out, uint32_t cp)
{
    if (cp < 0x10000)
        return write_u(out, cp);
    write_u(out, 0xd800 + ((cp - 0x10000) >> 10));
    write_u(out + 6, 0xdc00 + ((cp - 0x10000) & 0x3ff));
    return 12;
}

static size_t write_ascii(char *out, unsigned char c)
{
    static const char letters[0x20] = {
        ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't',
    };
    char letter = c < 0x20 ? letters[c] : (char)c;
    if (!letter || c == 0x7f)
        return write_u(out, c);
    out[0] = '\\';
    out[1] = letter;
    return 2;
}

/* A bit set in each of eight bytes that cannot be copied as it is: quote, backslash,
 * below 0x20, or with the high bit. The classic zero-byte test: its borrows may set bits
 * above the lowest one, never below, so the lowest is exact. */
static inline uint64_t specials(uint64_t w)
{
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    uint64_t quote = (w ^ (ones * '"')) - ones;
    uint64_t slash = (w ^ (ones * '\\')) - ones;
    uint64_t low = w - ones * 0x20;
    return (w | quote | slash | low) & high;
}

/* Copies what needs no care, eight bytes at a time; out has room for eight more than
 * that. Returns how many. */
static size_t copy_plain(char *out, const char *s, size_t len, unsigned style)
{
    unsigned char last = style & AB_JSON_ASCII ? 0x7e : 0x7f;
    size_t i = 0;
    while (last == 0x7f && i + 8 <= len) {
        uint64_t w;
        memcpy(&w, s + i, 8);
        memcpy(out + i, &w, 8);
        uint64_t found = specials(le64toh(w));
        if (found)
            return i + (size_t)(__builtin_ctzll(found) / 8);
        i += 8;
    }
    for (; i < len; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c < 0x20 || c == '"' || c == '\\' || c > last)
            break;
        out[i] = s[i];
    }
    return i;
}

/* One character that is not plain: stores the bytes it has in s, 0 for what strictness
 * refuses. */
static size_t write_careful(char *out, const char *s, size_t len, unsigned style,
                            size_t *used)
{
    uint32_t cp = 0xfffd;
    *used = 1;
    if (!(*s & 0x80))
        return write_ascii(out, (unsigned char)*s);
    int n = ab_utf8_decode(s, len, &cp);
    if (n < 0)
        cp = 0xfffd;
    *used = n < 0 && (style & AB_JSON_STRICT) ? 0 : (size_t)(n < 0 ? -n : n);
    return style & AB_JSON_ASCII ? write_escaped(out, cp)
                                 : (size_t)ab_utf8_encode(cp, out);
}

int ab_json_put_string(struct ab_buf *out, const char *s, size_t len, unsigned style)
{
    /* Room for what is left as it is, one escape, and the eight bytes of copy_plain. */
    const size_t slack = MAX_ESCAPE + 8;
    char *w = ab_buf_reserve(out, len + slack), *room = w + len + slack;
    *w++ = '"';
    for (;;) {
        size_t n = copy_plain(w, s, len, style);
        w += n;
        s += n;
        len -= n;
        if (len == 0)
            break;
        w += write_careful(w, s, len, style, &n);
        if (n == 0)
            return -1;
        s += n;
        len -= n;
        if ((size_t)(room - w) < len + slack) {
            ab_buf_advance(out, (size_t)(w - (out->data + out->len)));
            w = ab_buf_reserve(out, 2 * len + slack);
            room = w + 2 * len + slack;
        }
    }
    *w++ = '"';
    ab_buf_advance(out, (size_t)(w - (out->data + out->len)));
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

/* Inside strings they would be invalid, so these are white space between tokens. */
void ab_json_join_lines(struct ab_buf *out, size_t from)
{
    char *nl = out->data + from, *stop = out->data + out->len;
    while (nl && (nl = memchr(nl, '\n', (size_t)(stop - nl))))
        *nl = ' ';
    nl = out->data + from;
    while (nl && (nl = memchr(nl, '\r', (size_t)(stop - nl))))
        *nl = ' ';
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
                ab_buf_advance(out, write_escaped(ab_buf_reserve(out, MAX_ESCAPE), cp));
            s += n < 0 ? -n : n;
        }
    }
    ab_json_join_lines(out, start);
}
