#include "base/json_scan.h"

#include <string.h>

#include "base/utf8.h"

int ab_json_fail(const char *src, size_t at, const char *what, struct ab_err *err)
{
    size_t line = 1, start = 0;
    for (size_t i = 0; i < at; i++) {
        if (src[i] == '\n') {
            line++;
            start = i + 1;
        }
    }
    return ab_err_set(err, AB_EPARSE, "%s at line %zu column %zu (byte %zu)", what, line,
                      at - start + 1, at);
}

int ab_json_fail_index(enum ab_json_index_status status, const char *src, size_t len,
                       struct ab_err *err)
{
    switch (status) {
    case AB_JSON_INDEX_EMPTY:
        return ab_err_set(err, AB_EPARSE, "empty text");
    case AB_JSON_INDEX_UTF8:
        return ab_json_fail(src, ab_utf8_valid_prefix(src, len),
                            "bytes that are not UTF-8", err);
    case AB_JSON_INDEX_TOOBIG:
        return ab_err_set(err, AB_ETOOBIG, "JSON of %zu bytes", len);
    default:
        break;
    }
    bool inside = false;
    size_t quote = 0;
    for (size_t i = 0; i < len; i++) {
        if (inside && src[i] == '\\') {
            i++;
        } else if (src[i] == '"') {
            inside = !inside;
            quote = i;
        } else if (inside && (unsigned char)src[i] < 0x20) {
            return ab_json_fail(src, i, "control character inside a string", err);
        }
    }
    return ab_json_fail(src, quote, "string without an end", err);
}

static int hex4(const char *s, const char *end, uint32_t *out)
{
    if (end - s < 4)
        return -1;
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) {
        unsigned c = (unsigned char)s[i];
        unsigned digit = c - '0';
        if (digit > 9) {
            digit = (c | 0x20) - 'a' + 10;
            if (digit < 10 || digit > 15)
                return -1;
        }
        v = v << 4 | digit;
    }
    *out = v;
    return 0;
}

/* s points after `\u`. Returns the bytes used after it, or 0. */
static size_t read_unicode(const char *s, const char *end, uint32_t *cp)
{
    uint32_t low;
    if (hex4(s, end, cp) < 0)
        return 0;
    if (*cp < 0xd800 || *cp > 0xdfff)
        return 4;
    if (*cp > 0xdbff || end - s < 10 || s[4] != '\\' || s[5] != 'u' ||
        hex4(s + 6, end, &low) < 0 || low < 0xdc00 || low > 0xdfff)
        return 0;
    *cp = 0x10000 + ((*cp - 0xd800) << 10) + (low - 0xdc00);
    return 10;
}

static char simple_escape(char c)
{
    switch (c) {
    case '"':
    case '\\':
    case '/':
        return c;
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return '\0';
    }
}

int ab_json_unescape(const char *src, const char *s, const char *end, char *out,
                     size_t *written, struct ab_err *err)
{
    char scratch[4];
    char *w = out;
    while (s < end) {
        const char *slash = memchr(s, '\\', (size_t)(end - s));
        size_t run = (size_t)((slash ? slash : end) - s);
        if (out) {
            memcpy(w, s, run);
            w += run;
        }
        s += run;
        if (s == end)
            break;
        char plain = s + 1 < end ? simple_escape(s[1]) : '\0';
        if (plain) {
            if (out)
                *w++ = plain;
            s += 2;
            continue;
        }
        uint32_t cp;
        size_t used = s + 1 < end && s[1] == 'u' ? read_unicode(s + 2, end, &cp) : 0;
        if (!used)
            return ab_json_fail(src, (size_t)(s - src), "bad escape or lone surrogate",
                                err);
        int n = ab_utf8_encode(cp, out ? w : scratch);
        if (out)
            w += n;
        s += 2 + used;
    }
    if (out)
        *written = (size_t)(w - out);
    return 0;
}

bool ab_json_is_word(const char *s, const char *end)
{
    switch (end - s) {
    case 4:
        return memcmp(s, "true", 4) == 0 || memcmp(s, "null", 4) == 0;
    case 5:
        return memcmp(s, "false", 5) == 0;
    default:
        return false;
    }
}
