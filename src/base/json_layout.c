#include "base/json_layout.h"

#include <string.h>

#include "base/json_index.h"
#include "base/json_scan.h"
#include "base/json_slice.h"

enum { MAX_DEPTH = 128, MAX_KEYS = 64, MAX_BYTES = 1 << 30 };

struct writer {
    const struct ab_json_layout *layout;
    struct ab_buf *out;
    struct ab_json_walk walk;
    int depth;
};

static void put_break(struct writer *w)
{
    size_t n = (size_t)(w->layout->indent * w->depth);
    char *s = ab_buf_reserve(w->out, n + 1);
    *s = '\n';
    memset(s + 1, ' ', n);
    ab_buf_advance(w->out, n + 1);
}

/* Whether a string, between its quotes, is written as it stands. Most have no escape that
 * could be another's spelling: that is seen many bytes at a time, where looking for the
 * next backslash would stop at every line. */
static bool is_plain(const char *s, const char *end, unsigned style)
{
    unsigned beyond = 0, spelled = 0;
    for (const char *p = s; (style & AB_JSON_ASCII) && p < end; p++)
        beyond |= (unsigned char)*p > 0x7e;
    for (const char *p = s; p < end; p++) /* a quote stands at the end */
        spelled |= (unsigned)(*p == '\\') & ((unsigned)(p[1] == 'u') | (p[1] == '/'));
    while (spelled && !beyond && s < end && (s = memchr(s, '\\', (size_t)(end - s)))) {
        if (s[1] == 'u' || s[1] == '/')
            return false;
        s += 2;
    }
    return !beyond;
}

static bool put_string(struct writer *w, struct ab_json_slice text)
{
    struct ab_err err;
    struct ab_buf plain;
    size_t len;
    const char *s = text.s + 1, *end = text.s + text.len - 1;
    if (text.len < 2)
        return false;
    if (is_plain(s, end, w->layout->style)) {
        ab_buf_put(w->out, text.s, text.len);
        return true;
    }
    ab_buf_init(&plain, 0);
    char *room = ab_buf_reserve(&plain, text.len);
    bool ok = ab_json_unescape(s, s, end, room, &len, &err) == 0 &&
              ab_json_put_string(w->out, room, len, w->layout->style) == 0;
    ab_buf_fini(&plain);
    return ok;
}

/* What is rare: more digits than an integer has, -0, what no double holds. */
static bool put_parsed(struct writer *w, struct ab_json_slice text)
{
    struct ab_err err;
    struct ab_json doc;
    ab_json_init(&doc);
    bool ok = ab_json_parse(&doc, text.s, text.len, NULL, &err) == 0;
    if (ok && doc.nodes[0].kind == AB_JSON_INT)
        ab_json_put_integer(w->out, doc.nodes[0].integer);
    else if (ok && doc.nodes[0].kind == AB_JSON_FLOAT)
        ab_json_put_double(w->out, doc.nodes[0].number);
    else
        ab_buf_put(w->out, text.s, text.len);
    ab_json_fini(&doc);
    return ok;
}

/* Integers are written as they stand; of the others it takes the value to say. */
static bool put_number(struct writer *w, struct ab_json_slice text)
{
    bool integral = false;
    double v;
    if (!ab_json_is_number(text.s, text.s + text.len, &integral))
        return false;
    if (integral && text.len < 19 && text.s[0] != '-')
        ab_buf_put(w->out, text.s, text.len);
    else if (!integral && ab_json_read_double(text.s, text.len, &v))
        ab_json_put_double(w->out, v);
    else
        return put_parsed(w, text);
    return true;
}

static bool put_scalar(struct writer *w)
{
    struct ab_json_slice text = ab_json_value(&w->walk);
    if (text.len == 0)
        return false;
    if (*text.s == '"')
        return put_string(w, text);
    if (*text.s == '-' || (*text.s >= '0' && *text.s <= '9'))
        return put_number(w, text);
    ab_buf_put(w->out, text.s, text.len);
    return true;
}

static bool put_value(struct writer *w);

static bool stays_text(const struct writer *w, struct ab_json_slice key)
{
    if (w->walk.p == w->walk.end || (*w->walk.p != '{' && *w->walk.p != '['))
        return false;
    for (size_t i = 0; i < w->layout->text_count; i++) {
        const struct ab_json_name *name = &w->layout->text[i];
        if (name->len == key.len && memcmp(name->s, key.s, key.len) == 0)
            return true;
    }
    return false;
}

static bool put_member(struct writer *w, struct ab_json_slice key)
{
    if (!put_string(w, (struct ab_json_slice){key.s - 1, key.len + 2}))
        return false;
    ab_buf_put(w->out, ": ", 2);
    if (!stays_text(w, key))
        return put_value(w);
    struct ab_json_slice text = ab_json_value(&w->walk);
    ab_json_put_raw(w->out, text.s, text.len, w->layout->style);
    return true;
}

/* Notes a key; false when it came before, and for keys that take a closer look. */
static bool is_new(struct ab_json_slice *keys, int n, struct ab_json_slice key)
{
    if (n == MAX_KEYS || memchr(key.s, '\\', key.len))
        return false;
    for (int i = 0; i < n; i++) {
        if (keys[i].len == key.len && memcmp(keys[i].s, key.s, key.len) == 0)
            return false;
    }
    keys[n] = key;
    return true;
}

/* Before an element. */
static void put_start(struct writer *w, bool first)
{
    if (!first)
        ab_buf_putc(w->out, ',');
    put_break(w);
}

/* Behind the last of n. */
static bool put_end(struct writer *w, char bracket, int n)
{
    w->depth--;
    if (n > 0)
        put_break(w);
    ab_buf_putc(w->out, bracket);
    return true;
}

static bool put_object(struct writer *w)
{
    struct ab_json_slice keys[MAX_KEYS], key;
    int n = 0;
    ab_buf_putc(w->out, '{');
    for (; ab_json_next_key(&w->walk, &key); n++) {
        if (!is_new(keys, n, key))
            return false;
        put_start(w, n == 0);
        if (!put_member(w, key))
            return false;
    }
    return put_end(w, '}', n);
}

static bool put_array(struct writer *w)
{
    int n = 0;
    ab_buf_putc(w->out, '[');
    for (; ab_json_next(&w->walk); n = 1) {
        put_start(w, n == 0);
        if (!put_value(w))
            return false;
    }
    return put_end(w, ']', n);
}

static bool put_value(struct writer *w)
{
    bool object = ab_json_open(&w->walk, '{');
    if (!object && !ab_json_open(&w->walk, '['))
        return put_scalar(w);
    if (w->depth == MAX_DEPTH || w->out->len > MAX_BYTES)
        return false;
    w->depth++;
    return object ? put_object(w) : put_array(w);
}

bool ab_json_lay_out(struct ab_buf *out, const char *text, size_t len,
                     const struct ab_json_layout *layout)
{
    struct writer w = {.layout = layout, .out = out, .walk = {text, text + len}};
    return put_value(&w) && out->len <= MAX_BYTES;
}
