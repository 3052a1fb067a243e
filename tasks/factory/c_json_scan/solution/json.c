#include "json.h"

#include <stdint.h>
#include <string.h>

struct scan {
    const char *text;
    size_t n;
    size_t at;
};

static int peek(const struct scan *s)
{
    return s->at < s->n ? (unsigned char)s->text[s->at] : -1;
}

static bool accept(struct scan *s, int c)
{
    if (peek(s) != c)
        return false;
    s->at++;
    return true;
}

static void blanks(struct scan *s)
{
    int c;
    while ((c = peek(s)) == ' ' || c == '\t' || c == '\n' || c == '\r')
        s->at++;
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static int hex_of(int c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static bool word(struct scan *s, const char *text)
{
    for (; *text; text++) {
        if (!accept(s, *text))
            return false;
    }
    return true;
}

static bool digits(struct scan *s)
{
    if (!is_digit(peek(s)))
        return false;
    while (is_digit(peek(s)))
        s->at++;
    return true;
}

static bool number(struct scan *s)
{
    accept(s, '-');
    if (!accept(s, '0') && !digits(s))
        return false;
    if (accept(s, '.') && !digits(s))
        return false;
    if (accept(s, 'e') || accept(s, 'E')) {
        if (!accept(s, '+'))
            accept(s, '-');
        return digits(s);
    }
    return true;
}

/* Four hexadecimal digits; those of a low surrogate when `low`. */
static bool hex4(struct scan *s, bool low, unsigned *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++) {
        int h = hex_of(peek(s));
        if (h < 0 || (low && ((i == 0 && h != 13) || (i == 1 && h < 12))))
            return false;
        *out = *out << 4 | (unsigned)h;
        s->at++;
    }
    return true;
}

static bool escape(struct scan *s)
{
    size_t start = s->at - 1; /* the backslash */
    int c = peek(s);
    if (c != 'u') {
        if (c < 0 || !strchr("\"\\/bfnrt", c) || c == 0)
            return false;
        s->at++;
        return true;
    }
    s->at++;
    unsigned unit;
    if (!hex4(s, false, &unit))
        return false;
    if (unit >= 0xdc00 && unit <= 0xdfff) {
        s->at = start;
        return false;
    }
    if (unit >= 0xd800 && unit <= 0xdbff)
        return word(s, "\\u") && hex4(s, true, &unit);
    return true;
}

/* One character of two to four bytes. */
static bool utf8(struct scan *s)
{
    int c = peek(s), more, low = 0x80, high = 0xbf;
    if (c >= 0xc2 && c <= 0xdf) {
        more = 1;
    } else if (c >= 0xe0 && c <= 0xef) {
        more = 2;
        low = c == 0xe0 ? 0xa0 : low;
        high = c == 0xed ? 0x9f : high;
    } else if (c >= 0xf0 && c <= 0xf4) {
        more = 3;
        low = c == 0xf0 ? 0x90 : low;
        high = c == 0xf4 ? 0x8f : high;
    } else {
        return false;
    }
    s->at++;
    for (; more > 0; more--) {
        c = peek(s);
        if (c < low || c > high)
            return false;
        s->at++;
        low = 0x80;
        high = 0xbf;
    }
    return true;
}

static bool string(struct scan *s)
{
    if (!accept(s, '"'))
        return false;
    for (;;) {
        int c = peek(s);
        if (c == '"') {
            s->at++;
            return true;
        }
        if (c < 0x20)
            return false;
        if (c >= 0x80) {
            if (!utf8(s))
                return false;
            continue;
        }
        s->at++;
        if (c == '\\' && !escape(s))
            return false;
    }
}

static bool value(struct scan *s, int depth);

static bool members(struct scan *s, int depth, bool object)
{
    int close = object ? '}' : ']';
    s->at++;
    blanks(s);
    if (accept(s, close))
        return true;
    for (;;) {
        blanks(s);
        if (object) {
            if (!string(s))
                return false;
            blanks(s);
            if (!accept(s, ':'))
                return false;
        }
        if (!value(s, depth + 1))
            return false;
        blanks(s);
        if (accept(s, close))
            return true;
        if (!accept(s, ','))
            return false;
    }
}

/* A value with blanks before it. */
static bool value(struct scan *s, int depth)
{
    blanks(s);
    int c = peek(s);
    switch (c) {
    case 'n':
        return word(s, "null");
    case 't':
        return word(s, "true");
    case 'f':
        return word(s, "false");
    case '"':
        return string(s);
    case '[':
    case '{':
        return depth < JSON_MAX_DEPTH && members(s, depth, c == '{');
    default:
        return number(s);
    }
}

bool json_check(const char *text, size_t n, size_t *bad)
{
    struct scan s = {text, n, 0};
    bool ok = value(&s, 0);
    if (ok)
        blanks(&s);
    if (ok && s.at == n)
        return true;
    if (bad)
        *bad = s.at;
    return false;
}

static enum json_kind kind_of(int c)
{
    switch (c) {
    case 'n':
        return JSON_NULL;
    case 'f':
        return JSON_FALSE;
    case 't':
        return JSON_TRUE;
    case '"':
        return JSON_STRING;
    case '[':
        return JSON_ARRAY;
    case '{':
        return JSON_OBJECT;
    default:
        return JSON_NUMBER;
    }
}

/* Reads the value at the scan's place. */
static struct json_value read_value(struct scan *s)
{
    blanks(s);
    size_t start = s->at;
    value(s, 0);
    return (struct json_value){kind_of((unsigned char)s->text[start]), s->text + start, s->at - start};
}

struct sink {
    char *to;
    size_t room, length;
    const char *same; /* what has to come out, or NULL */
    bool differs;
};

static void put(struct sink *k, unsigned char c)
{
    if (k->length + 1 < k->room)
        k->to[k->length] = (char)c;
    if (k->same && !k->differs) {
        k->differs = (unsigned char)k->same[k->length] != c || c == 0;
    }
    k->length++;
}

static void put_code(struct sink *k, unsigned code)
{
    if (code < 0x80) {
        put(k, (unsigned char)code);
        return;
    }
    if (code < 0x800) {
        put(k, (unsigned char)(0xc0 | code >> 6));
    } else {
        if (code < 0x10000) {
            put(k, (unsigned char)(0xe0 | code >> 12));
        } else {
            put(k, (unsigned char)(0xf0 | code >> 18));
            put(k, (unsigned char)(0x80 | (code >> 12 & 0x3f)));
        }
        put(k, (unsigned char)(0x80 | (code >> 6 & 0x3f)));
    }
    put(k, (unsigned char)(0x80 | (code & 0x3f)));
}

static void undo(const struct json_value *v, struct sink *k)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    struct scan s = {v->text, v->length - 1, 1};
    while (s.at < s.n) {
        int c = peek(&s);
        s.at++;
        if (c != '\\') {
            put(k, (unsigned char)c);
            continue;
        }
        c = peek(&s);
        s.at++;
        if (c == 'u') {
            unsigned code, low;
            hex4(&s, false, &code);
            if (code >= 0xd800 && code <= 0xdbff) {
                s.at += 2;
                hex4(&s, false, &low);
                code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            }
            put_code(k, code);
        } else {
            const char *which = strchr(from, c);
            put(k, (unsigned char)(which ? to[which - from] : c));
        }
    }
}

static bool is_named(const struct json_value *name, const char *wanted)
{
    struct sink k = {.same = wanted};
    undo(name, &k);
    return !k.differs && wanted[k.length] == '\0';
}

/* Steps of the form [digits]; SIZE_MAX for anything else, which no array reaches. */
static size_t index_of(const char *step)
{
    size_t n = 0, at = 1;
    if (step[0] != '[' || !is_digit(step[1]) || (step[1] == '0' && step[2] != ']'))
        return SIZE_MAX;
    for (; is_digit(step[at]); at++) {
        if (n > SIZE_MAX / 100)
            return SIZE_MAX;
        n = n * 10 + (size_t)(step[at] - '0');
    }
    return step[at] == ']' && step[at + 1] == '\0' ? n : SIZE_MAX;
}

static bool step_into(struct json_value *v, const char *step)
{
    if (v->kind != JSON_ARRAY && v->kind != JSON_OBJECT)
        return false;
    struct scan s = {v->text, v->length, 1};
    size_t wanted = index_of(step);
    bool found = false;
    struct json_value result = *v;
    blanks(&s);
    if (peek(&s) == ']' || peek(&s) == '}')
        return false;
    for (size_t i = 0;; i++) {
        bool hit = v->kind == JSON_ARRAY && i == wanted;
        if (v->kind == JSON_OBJECT) {
            struct json_value name = read_value(&s);
            hit = is_named(&name, step);
            blanks(&s);
            s.at++;
        }
        struct json_value one = read_value(&s);
        if (hit) {
            result = one;
            found = true;
        }
        blanks(&s);
        if (!accept(&s, ','))
            break;
    }
    *v = result;
    return found;
}

bool json_find(const char *text, size_t n, const char *const path[], struct json_value *out)
{
    struct scan s = {text, n, 0};
    struct json_value v = read_value(&s);
    for (; *path; path++) {
        if (!step_into(&v, *path))
            return false;
    }
    *out = v;
    return true;
}

size_t json_string(const struct json_value *value, char *to, size_t room)
{
    struct sink k = {.to = to, .room = room};
    undo(value, &k);
    if (room > 0)
        to[k.length < room ? k.length : room - 1] = '\0';
    return k.length;
}
