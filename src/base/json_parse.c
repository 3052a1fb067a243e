/* json_parse.c - the grammar, over simdjson's token index.
 *
 * The index holds the offset of every token's first byte, so a token ends before the next
 * one, less the white space between. That bounds strings without looking for their closing
 * quote, and makes "the scalar is exactly this" the check that refuses `1.2.3` or `"a"b`.
 * Containers are kept on a stack of their own: nesting costs no C stack.
 */
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_index.h"
#include "base/utf8.h"

struct level {
    bool object;
    uint32_t count;
    size_t node; /* of the container; unused inside raw text */
};

struct parser {
    struct ab_json *doc;
    const struct ab_json_opts *opts;
    struct ab_err *err;
    const char *src;
    const uint32_t *next, *end; /* *end is the length of the text */
    unsigned depth;
    unsigned raw_depth; /* the depth of the raw container being checked, or 0 */
    size_t raw_start;
    struct level levels[AB_JSON_MAX_DEPTH];
};

void ab_json_init(struct ab_json *doc)
{
    *doc = (struct ab_json){0};
    ab_buf_init(&doc->text, 0);
}

void ab_json_fini(struct ab_json *doc)
{
    free(doc->nodes);
    ab_buf_fini(&doc->text);
    ab_json_index_free(doc->index);
    *doc = (struct ab_json){0};
}

size_t ab_json_footprint(const struct ab_json *doc)
{
    size_t index = doc->index ? ab_json_index_capacity(doc->index) : 0;
    return doc->cap * sizeof *doc->nodes + doc->text.cap + index;
}

const char *ab_json_text(const struct ab_json *doc, const struct ab_json_node *node)
{
    return (node->copied ? doc->text.data : doc->src) + node->at;
}

struct ab_json_node *ab_json_add(struct ab_json *doc, enum ab_json_kind kind)
{
    if (doc->count == doc->cap) {
        doc->cap = doc->cap ? doc->cap * 2 : 64;
        doc->nodes = ab_xrealloc(doc->nodes, doc->cap * sizeof *doc->nodes);
    }
    struct ab_json_node *node = &doc->nodes[doc->count++];
    *node = (struct ab_json_node){.kind = (uint8_t)kind};
    return node;
}

static int fail(struct parser *p, size_t at, const char *what)
{
    size_t line = 1, start = 0;
    for (size_t i = 0; i < at; i++) {
        if (p->src[i] == '\n') {
            line++;
            start = i + 1;
        }
    }
    return ab_err_set(p->err, AB_EPARSE, "%s at line %zu column %zu (byte %zu)", what, line,
                      at - start + 1, at);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* The token before p->next begins at `at`; where it ends. */
static size_t token_end(const struct parser *p, size_t at)
{
    size_t e = *p->next;
    while (e > at + 1 && is_space(p->src[e - 1]))
        e--;
    return e;
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

/* Decodes [s, end) to out, which has room for end - s bytes; NULL means only check. */
static int unescape(struct parser *p, const char *s, const char *end, char *out,
                    size_t *written)
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
            return fail(p, (size_t)(s - p->src), "bad escape or lone surrogate");
        int n = ab_utf8_encode(cp, out ? w : scratch);
        if (out)
            w += n;
        s += 2 + used;
    }
    if (out)
        *written = (size_t)(w - out);
    return 0;
}

/* A string token at `at`: its bounds without the quotes. */
static int string_bounds(struct parser *p, size_t at, size_t *end)
{
    size_t e = token_end(p, at);
    if (e < at + 2 || p->src[e - 1] != '"')
        return fail(p, at, "malformed string");
    *end = e - 1;
    return 0;
}

static int check_string(struct parser *p, size_t at)
{
    size_t end = at;
    if (string_bounds(p, at, &end) < 0)
        return -1;
    return unescape(p, p->src + at + 1, p->src + end, NULL, NULL);
}

static int read_string(struct parser *p, size_t at)
{
    size_t end = at;
    if (string_bounds(p, at, &end) < 0)
        return -1;
    const char *s = p->src + at + 1;
    size_t len = end - at - 1;
    struct ab_json_node *node = ab_json_add(p->doc, AB_JSON_STRING);
    if (!memchr(s, '\\', len)) {
        node->at = at + 1;
        node->len = (uint32_t)len;
        return 0;
    }
    struct ab_buf *text = &p->doc->text;
    size_t written;
    if (unescape(p, s, s + len, ab_buf_reserve(text, len), &written) < 0)
        return -1;
    node->copied = true;
    node->at = text->len;
    node->len = (uint32_t)written;
    ab_buf_advance(text, written);
    return 0;
}

static const char *digits(const char *s, const char *end)
{
    while (s < end && (unsigned char)(*s - '0') <= 9)
        s++;
    return s;
}

/* Whether [s, end) is a number; *integral when it has neither point nor exponent. */
static bool is_number(const char *s, const char *end, bool *integral)
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

static int read_number(struct parser *p, size_t at)
{
    const char *s = p->src + at;
    const char *end = p->src + token_end(p, at);
    bool integral;
    if (!is_number(s, end, &integral))
        return fail(p, at, "malformed number");
    if (p->raw_depth)
        return 0;
    struct ab_json_node *node = ab_json_add(p->doc, AB_JSON_INT);
    if (integral && read_int64(s, end, &node->integer))
        return 0;
    bool minus_zero = integral && end - s == 2 && s[1] == '0';
    node->kind = AB_JSON_FLOAT;
    if ((!integral || minus_zero) && ab_json_read_double(s, (size_t)(end - s), &node->number))
        return 0;
    if (!integral && is_tiny(s, end)) {
        node->number = *s == '-' ? -0.0 : 0.0;
        return 0;
    }
    node->kind = AB_JSON_NUMBER;
    node->at = at;
    node->len = (uint32_t)(end - s);
    return 0;
}

static int read_literal(struct parser *p, size_t at, const char *word, size_t len,
                        enum ab_json_kind kind)
{
    if (token_end(p, at) != at + len || memcmp(p->src + at, word, len) != 0)
        return fail(p, at, "unknown word");
    if (!p->raw_depth)
        ab_json_add(p->doc, kind);
    return 0;
}

static int read_scalar(struct parser *p, size_t at)
{
    switch (p->src[at]) {
    case '"':
        return p->raw_depth ? check_string(p, at) : read_string(p, at);
    case 't':
        return read_literal(p, at, "true", 4, AB_JSON_TRUE);
    case 'f':
        return read_literal(p, at, "false", 5, AB_JSON_FALSE);
    case 'n':
        return read_literal(p, at, "null", 4, AB_JSON_NULL);
    case ']':
    case '}':
    case ',':
    case ':':
        return fail(p, at, "expected a value");
    default:
        return read_number(p, at);
    }
}

static int open_container(struct parser *p, size_t at, bool raw)
{
    if (p->depth == AB_JSON_MAX_DEPTH)
        return fail(p, at, "nested too deeply");
    struct level *l = &p->levels[p->depth++];
    l->object = p->src[at] == '{';
    l->count = 0;
    if (p->raw_depth)
        return 0;
    l->node = p->doc->count;
    struct ab_json_node *node = ab_json_add(
        p->doc, raw ? AB_JSON_RAW : l->object ? AB_JSON_OBJECT : AB_JSON_ARRAY);
    if (raw) {
        p->raw_depth = p->depth;
        node->at = at;
    }
    return 0;
}

/* at is the closing bracket of the innermost container. */
static void close_container(struct parser *p, size_t at)
{
    const struct level *l = &p->levels[p->depth - 1];
    if (!p->raw_depth) {
        p->doc->nodes[l->node].len = l->count;
    } else if (p->raw_depth == p->depth) {
        struct ab_json_node *node = &p->doc->nodes[l->node];
        node->len = (uint32_t)(at + 1 - node->at);
        p->raw_depth = 0;
    }
    p->depth--;
}

static bool is_raw_name(const struct parser *p, const struct ab_json_node *key)
{
    if (p->opts->raw_count == 0)
        return false;
    const char *s = ab_json_text(p->doc, key);
    for (size_t i = 0; i < p->opts->raw_count; i++) {
        const struct ab_json_name *name = &p->opts->raw[i];
        if (name->len == key->len && memcmp(name->s, s, key->len) == 0)
            return true;
    }
    return false;
}

/* A key and its colon; *raw tells whether its value stays text. */
static int read_key(struct parser *p, bool *raw)
{
    size_t at = *p->next;
    if (p->next == p->end || p->src[at] != '"')
        return fail(p, at, "expected a string as key");
    p->next++;
    *raw = false;
    if (p->raw_depth) {
        if (check_string(p, at) < 0)
            return -1;
    } else {
        if (read_string(p, at) < 0)
            return -1;
        *raw = is_raw_name(p, &p->doc->nodes[p->doc->count - 1]);
    }
    at = *p->next;
    if (p->next == p->end || p->src[at] != ':')
        return fail(p, at, "expected ':'");
    p->next++;
    return 0;
}

/* After a value: 1 when the next thing is another value, 0 at the end of the text. */
static int advance(struct parser *p, bool *raw)
{
    while (p->depth > 0) {
        struct level *l = &p->levels[p->depth - 1];
        size_t at = *p->next;
        char c = p->next == p->end ? '\0' : p->src[at];
        l->count++;
        if (c == ',') {
            p->next++;
            *raw = false;
            return l->object && read_key(p, raw) < 0 ? -1 : 1;
        }
        if (c != (l->object ? '}' : ']'))
            return fail(p, at, l->object ? "expected ',' or '}'" : "expected ',' or ']'");
        p->next++;
        close_container(p, at);
    }
    return p->next == p->end ? 0 : fail(p, *p->next, "text after the value");
}

static int read_value(struct parser *p, bool raw)
{
    for (;;) {
        if (p->next == p->end)
            return fail(p, *p->next, "expected a value");
        size_t at = *p->next++;
        char c = p->src[at];
        if (c != '{' && c != '[') {
            if (read_scalar(p, at) < 0)
                return -1;
        } else {
            if (open_container(p, at, raw) < 0)
                return -1;
            bool empty = p->next < p->end && p->src[*p->next] == c + 2;
            raw = false;
            if (!empty && c == '{' && read_key(p, &raw) < 0)
                return -1;
            if (!empty)
                continue;
            close_container(p, *p->next++);
        }
        int more = advance(p, &raw);
        if (more <= 0)
            return more;
    }
}

/* simdjson only says that something is wrong; the first place is found here. */
static int fail_index(struct parser *p, enum ab_json_index_status status, size_t len)
{
    switch (status) {
    case AB_JSON_INDEX_EMPTY:
        return ab_err_set(p->err, AB_EPARSE, "empty text");
    case AB_JSON_INDEX_UTF8:
        return fail(p, ab_utf8_valid_prefix(p->src, len), "bytes that are not UTF-8");
    case AB_JSON_INDEX_TOOBIG:
        return ab_err_set(p->err, AB_ETOOBIG, "JSON of %zu bytes", len);
    default:
        break;
    }
    bool inside = false;
    size_t quote = 0;
    for (size_t i = 0; i < len; i++) {
        if (inside && p->src[i] == '\\') {
            i++;
        } else if (p->src[i] == '"') {
            inside = !inside;
            quote = i;
        } else if (inside && (unsigned char)p->src[i] < 0x20) {
            return fail(p, i, "control character inside a string");
        }
    }
    return fail(p, quote, "string without an end");
}

int ab_json_parse(struct ab_json *doc, const char *text, size_t len,
                  const struct ab_json_opts *opts, struct ab_err *err)
{
    static const struct ab_json_opts none = {0};
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3; /* a byte order mark: RFC 8259 lets a parser ignore it */
        len -= 3;
    }
    struct parser p = {.doc = doc, .opts = opts ? opts : &none, .err = err, .src = text};
    if (!doc->index)
        doc->index = ab_json_index_new();
    doc->src = text;
    doc->count = 0;
    ab_buf_clear(&doc->text);
    size_t count;
    enum ab_json_index_status status =
        ab_json_index_run(doc->index, text, len, &p.next, &count);
    if (status != AB_JSON_INDEX_OK)
        return fail_index(&p, status, len);
    p.end = p.next + count;
    size_t first = *p.next;
    if (read_value(&p, p.opts->raw_root) < 0)
        return -1;
    if (p.opts->raw_root && doc->nodes[0].kind != AB_JSON_RAW)
        doc->nodes[0] = (struct ab_json_node){
            .kind = AB_JSON_RAW, .at = first, .len = (uint32_t)(token_end(&p, first) - first)};
    return 0;
}
