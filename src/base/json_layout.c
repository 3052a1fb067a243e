#include "base/json_layout.h"

#include <string.h>
#ifdef __SSE2__
#    include <emmintrin.h>
#endif

#include "base/json_index.h"
#include "base/json_scan.h"
#include "base/json_slice.h"

enum {
    MAX_DEPTH = 128,
    MAX_KEYS = 64,
    MAX_BYTES = 1 << 30,
    BLOCK = 16,
    SLACK = 2 * BLOCK,
};

/* There is always room for all the text that is left and for SLACK bytes more, so that
 * what is copied needs no look at the end of the room: only what the layout adds does. */
struct writer {
    const struct ab_json_layout *layout;
    struct ab_buf *out;
    const char *p, *end; /* the text that is left */
    char *at, *limit;    /* where the next byte goes, and the end of the room */
    int depth;
};

/* ---- the room ---- */

/* What is written becomes the buffer's: others may append to it. */
static void give_back(struct writer *w)
{
    ab_buf_advance(w->out, (size_t)(w->at - (w->out->data + w->out->len)));
}

static void take_room(struct writer *w, size_t more)
{
    w->at = ab_buf_reserve(w->out, (size_t)(w->end - w->p) + more + SLACK);
    w->limit = w->out->data + w->out->cap - 1;
}

static inline void put_break(struct writer *w)
{
    size_t n = (size_t)(w->layout->indent * w->depth) + 1;
    if ((size_t)(w->limit - w->at) < (size_t)(w->end - w->p) + n + SLACK) {
        give_back(w);
        take_room(w, n);
    }
    char *at = w->at, *stop = at + n;
    *at++ = '\n';
    for (; at < stop; at += BLOCK)
        memset(at, ' ', BLOCK);
    w->at = stop;
}

static inline void skip_space(struct writer *w)
{
    while (w->p < w->end && *w->p <= ' ' && ab_json_is_space(*w->p))
        w->p++;
}

static inline bool is_at(const struct writer *w, char c)
{
    return w->p < w->end && *w->p == c;
}

/* Copies the byte at p. */
static inline void take(struct writer *w)
{
    *w->at++ = *w->p++;
}

/* ---- strings ---- */

/* What is known of a string, or of what has been copied of one. */
struct copied {
    const char *end; /* behind its text */
    char *at;        /* behind its copy */
    bool slashes;    /* it has escapes */
    bool spelled;    /* perhaps some that have another spelling */
};

/* Whether what is at p is escaped, in the string that begins at `from`. */
static inline bool is_escaped(const char *p, const char *from)
{
    const char *slash = p;
    while (slash > from && slash[-1] == '\\')
        slash--;
    return (p - slash) % 2;
}

#ifdef __SSE2__

static inline __m128i load(const char *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

static inline __m128i each(__m128i v, char c)
{
    return _mm_cmpeq_epi8(v, _mm_set1_epi8(c));
}

/* The u and / of v that have a backslash before them. */
static inline __m128i spellings(__m128i v, __m128i before)
{
    return _mm_and_si128(each(before, '\\'), _mm_or_si128(each(v, 'u'), each(v, '/')));
}

/* Of these bits the first that is a quote of its own; 0 when none is. */
static inline unsigned closing(unsigned quotes, const char *p, const char *from)
{
    while (quotes && is_escaped(p + __builtin_ctz(quotes), from))
        quotes &= quotes - 1;
    return quotes & -quotes;
}

/* Goes on in whole blocks, to behind the closing quote: then true. Many strings have an
 * escape in every line and few have a quote inside, so it stops for quotes alone. */
static inline bool copy_blocks(struct copied *s, const char *from, const char *end)
{
    __m128i slashes = _mm_setzero_si128(), spelled = slashes;
    const char *p = s->end;
    char *at = s->at;
    unsigned quote = 0, inside = 0;
    for (; end - p >= BLOCK; p += BLOCK, at += BLOCK) {
        __m128i v = load(p), found = spellings(v, load(p - 1));
        _mm_storeu_si128((__m128i *)(void *)at, v);
        quote = (unsigned)_mm_movemask_epi8(each(v, '"'));
        if (quote && (quote = closing(quote, p, from))) {
            inside = (unsigned)_mm_movemask_epi8(each(v, '\\')) & (quote - 1);
            spelled = _mm_or_si128(spelled, found);
            p += __builtin_ctz(quote) + 1;
            at += __builtin_ctz(quote) + 1;
            break;
        }
        slashes = _mm_or_si128(slashes, each(v, '\\'));
        spelled = _mm_or_si128(spelled, found);
    }
    s->end = p;
    s->at = at;
    s->slashes = inside || _mm_movemask_epi8(slashes);
    s->spelled = _mm_movemask_epi8(spelled);
    return quote;
}

#else

static bool copy_blocks(struct copied *s, const char *from, const char *end)
{
    (void)s;
    (void)from;
    (void)end;
    return false;
}

#endif

/* The same to the end of the text, a byte at a time. */
static bool copy_bytes(struct copied *s, const char *from, const char *end)
{
    bool escaped = is_escaped(s->end, from);
    while (s->end < end) {
        char c = *s->end++;
        *s->at++ = c;
        if (escaped) {
            s->spelled |= c == 'u' || c == '/';
            escaped = false;
        } else if (c == '\\') {
            s->slashes = escaped = true;
        } else if (c == '"') {
            return true;
        }
    }
    return false;
}

/* Whether a byte between the quotes is no printing ASCII. */
static bool goes_beyond(const char *s, const char *end)
{
    unsigned beyond = 0;
    for (; s < end; s++)
        beyond |= (unsigned char)*s > 0x7e;
    return beyond;
}

/* Whether there is an escape between the quotes that is written otherwise. */
static bool has_respelling(const char *s, const char *end)
{
    while (s < end && (s = memchr(s, '\\', (size_t)(end - s)))) {
        if (s[1] == 'u' || s[1] == '/')
            return true;
        s += 2;
    }
    return false;
}

/* The text between the quotes, by what it says. */
static bool put_respelled(struct writer *w, const char *s, const char *end)
{
    struct ab_err err;
    struct ab_buf plain;
    size_t len;
    ab_buf_init(&plain, 0);
    char *room = ab_buf_reserve(&plain, (size_t)(end - s));
    give_back(w);
    bool ok = ab_json_unescape(s, s, end, room, &len, &err) == 0 &&
              ab_json_put_string(w->out, room, len, w->layout->style) == 0;
    ab_buf_fini(&plain);
    take_room(w, 0);
    return ok;
}

/* The string whose quote is at p; *slashes says whether it has escapes. */
static inline bool put_string(struct writer *w, bool *slashes)
{
    const char *from = w->p + 1;
    *w->at = '"';
    struct copied s = {.end = from, .at = w->at + 1};
    if (!copy_blocks(&s, from, w->end) && !copy_bytes(&s, from, w->end))
        return false;
    *slashes = s.slashes;
    w->p = s.end;
    if ((s.spelled && has_respelling(from, s.end - 1)) ||
        ((w->layout->style & AB_JSON_ASCII) && goes_beyond(from, s.end - 1)))
        return put_respelled(w, from, s.end - 1);
    w->at = s.at;
    return true;
}

/* ---- other values ---- */

static void put(struct writer *w, struct ab_json_slice text)
{
    memcpy(w->at, text.s, text.len);
    w->at += text.len;
}

/* What is rare: more digits than an integer has, -0, what no double holds. */
static bool put_parsed(struct ab_buf *out, struct ab_json_slice text)
{
    struct ab_err err;
    struct ab_json doc;
    ab_json_init(&doc);
    bool ok = ab_json_parse(&doc, text.s, text.len, NULL, &err) == 0;
    if (ok && doc.nodes[0].kind == AB_JSON_INT)
        ab_json_put_integer(out, doc.nodes[0].integer);
    else if (ok && doc.nodes[0].kind == AB_JSON_FLOAT)
        ab_json_put_double(out, doc.nodes[0].number);
    else
        ab_buf_put(out, text.s, text.len);
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
    if (integral && text.len < 19 && text.s[0] != '-') {
        put(w, text);
        return true;
    }
    give_back(w);
    bool ok = true;
    if (!integral && ab_json_read_double(text.s, text.len, &v))
        ab_json_put_double(w->out, v);
    else
        ok = put_parsed(w->out, text);
    take_room(w, 0);
    return ok;
}

static struct ab_json_slice take_value(struct writer *w)
{
    struct ab_json_walk walk = {w->p, w->end};
    struct ab_json_slice text = ab_json_value(&walk);
    w->p = walk.p;
    return text;
}

static bool put_scalar(struct writer *w)
{
    if (w->end - w->p > 4 && memcmp(w->p, "null", 4) == 0) { /* most of them */
        put(w, (struct ab_json_slice){w->p, 4});
        w->p += 4;
        return true;
    }
    struct ab_json_slice text = take_value(w);
    if (text.len == 0)
        return false;
    if (*text.s == '-' || (*text.s >= '0' && *text.s <= '9'))
        return put_number(w, text);
    put(w, text);
    return true;
}

static bool put_value(struct writer *w);

/* ---- members and elements ---- */

static bool stays_text(const struct writer *w, struct ab_json_slice key)
{
    for (size_t i = 0; i < w->layout->text_count; i++) {
        const struct ab_json_name *name = &w->layout->text[i];
        if (name->len == key.len && memcmp(name->s, key.s, key.len) == 0)
            return true;
    }
    return false;
}

/* The container at p, as it stands. */
static void put_text(struct writer *w)
{
    struct ab_json_slice text = take_value(w);
    give_back(w);
    ab_json_put_raw(w->out, text.s, text.len, w->layout->style);
    take_room(w, 0);
}

/* The names of an object. */
struct keys {
    struct ab_json_slice key[MAX_KEYS];
    uint64_t kinds; /* by length and last byte: most names are alone of their kind */
    int n;
};

/* Notes a key; false when it came before. */
static inline bool add_key(struct keys *keys, struct ab_json_slice key)
{
    unsigned last = key.len ? (unsigned char)key.s[key.len - 1] : 0;
    uint64_t kind = (uint64_t)1 << ((key.len * 5 + last) & 63);
    for (int i = 0; (keys->kinds & kind) && i < keys->n; i++) {
        if (keys->key[i].len == key.len && memcmp(keys->key[i].s, key.s, key.len) == 0)
            return false;
    }
    keys->kinds |= kind;
    keys->key[keys->n++] = key;
    return true;
}

static bool put_member(struct writer *w, struct keys *keys)
{
    bool slashes;
    const char *from = w->p + 1;
    if (!is_at(w, '"') || keys->n == MAX_KEYS || !put_string(w, &slashes) || slashes)
        return false;
    struct ab_json_slice key = {from, (size_t)(w->p - from) - 1};
    skip_space(w);
    if (!add_key(keys, key) || !is_at(w, ':'))
        return false;
    take(w);
    *w->at++ = ' ';
    skip_space(w);
    if ((is_at(w, '{') || is_at(w, '[')) && stays_text(w, key)) {
        put_text(w);
        return true;
    }
    return put_value(w);
}

/* Before the next element; false behind the last one. */
static inline bool put_start(struct writer *w, char bracket, bool first)
{
    skip_space(w);
    if (is_at(w, bracket))
        return false;
    if (!first && is_at(w, ',')) {
        take(w);
        skip_space(w);
    }
    put_break(w);
    return true;
}

/* Behind the last one, at the bracket. */
static bool put_end(struct writer *w, bool empty)
{
    w->depth--;
    if (!empty)
        put_break(w);
    take(w);
    return true;
}

static bool put_object(struct writer *w)
{
    struct keys keys;
    keys.n = 0;
    keys.kinds = 0;
    while (put_start(w, '}', keys.n == 0)) {
        if (!put_member(w, &keys))
            return false;
    }
    return put_end(w, keys.n == 0);
}

static bool put_array(struct writer *w)
{
    bool empty = true;
    for (; put_start(w, ']', empty); empty = false) {
        if (!put_value(w))
            return false;
    }
    return put_end(w, empty);
}

static bool put_value(struct writer *w)
{
    bool slashes, object = is_at(w, '{');
    if (is_at(w, '"'))
        return put_string(w, &slashes);
    if (!object && !is_at(w, '['))
        return put_scalar(w);
    if (w->depth == MAX_DEPTH || w->at - w->out->data > MAX_BYTES)
        return false;
    w->depth++;
    take(w);
    return object ? put_object(w) : put_array(w);
}

bool ab_json_lay_out(struct ab_buf *out, const char *text, size_t len,
                     const struct ab_json_layout *layout)
{
    struct writer w = {.layout = layout, .out = out, .p = text, .end = text + len};
    take_room(&w, 0);
    skip_space(&w);
    bool ok = put_value(&w);
    give_back(&w);
    return ok && out->len <= MAX_BYTES;
}
