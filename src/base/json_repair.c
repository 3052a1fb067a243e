/* json_repair.c - the slow path for text that strict JSON refuses. */
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"

static int hex_value(const char *s, size_t n)
{
    int v = 0;
    if (n < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        const char *digits = "0123456789abcdef0123456789ABCDEF";
        const char *d = s[i] ? strchr(digits, s[i]) : NULL;
        if (!d)
            return -1;
        v = v << 4 | (int)((d - digits) & 15);
    }
    return v;
}

/* s points at a backslash; appends the escape, or its replacement. Returns bytes used. */
static size_t put_escape(struct ab_buf *out, const char *s, size_t n, size_t *fixes)
{
    int unit = n >= 2 && s[1] == 'u' ? hex_value(s + 2, n - 2) : -1;
    if (unit < 0xd800 || unit > 0xdfff) {
        /* Only ASCII after the backslash is taken along: the rest is looked at again. */
        size_t used = n >= 2 && (unsigned char)s[1] >= 0x20 && !(s[1] & 0x80) ? 2 : 1;
        ab_buf_put(out, s, used);
        return used;
    }
    int low = n >= 12 && s[6] == '\\' && s[7] == 'u' ? hex_value(s + 8, n - 8) : -1;
    if (unit < 0xdc00 && low >= 0xdc00 && low <= 0xdfff) {
        ab_buf_put(out, s, 12);
        return 12;
    }
    ab_buf_put(out, "\\ufffd", 6);
    ++*fixes;
    return 6;
}

size_t ab_json_repair(struct ab_buf *out, const char *text, size_t len)
{
    static const char hex[] = "0123456789abcdef";
    const char *s = text, *end = text + len;
    size_t fixes = 0;
    bool inside = false;
    while (s < end) {
        size_t left = (size_t)(end - s);
        unsigned char c = (unsigned char)*s;
        uint32_t cp;
        int n = ab_utf8_decode(s, left, &cp);
        if (n < 0) {
            ab_buf_put(out, "\xef\xbf\xbd", 3);
            fixes++;
            s += -n;
        } else if (inside && c == '\\') {
            s += put_escape(out, s, left, &fixes);
        } else if (inside && c < 0x20) {
            char esc[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
            ab_buf_put(out, esc, sizeof esc);
            fixes++;
            s++;
        } else {
            inside ^= c == '"';
            ab_buf_put(out, s, (size_t)n);
            s += n;
        }
    }
    return fixes;
}
