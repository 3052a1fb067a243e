/* json_parse.c - tokens to nodes. Containers are kept on a stack of their own: nesting
 * costs no C stack. */
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_index.h"
#include "base/json_scan.h"

struct level {
    bool object;
    uint32_t count;
    size_t node; /* of the container */
};

struct parser {
    struct ab_json *doc;
    const struct ab_json_opts *opts;
    struct ab_json_scan scan;
    unsigned depth;
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

static int fail(const struct parser *p, size_t at, const char *what)
{
    return ab_json_fail(p->scan.src, at, what, p->scan.err);
}

/* A string token at `at`: its bounds without the quotes. */
static int string_bounds(struct parser *p, size_t at, size_t *end)
{
    size_t e = ab_json_token_end(p->scan, at);
    if (e < at + 2 || p->scan.src[e - 1] != '"')
        return fail(p, at, "malformed string");
    *end = e - 1;
    return 0;
}

static int read_string(struct parser *p, size_t at)
{
    size_t end = at;
    if (string_bounds(p, at, &end) < 0)
        return -1;
    const char *s = p->scan.src + at + 1;
    size_t len = end - at - 1;
    struct ab_json_node *node = ab_json_add(p->doc, AB_JSON_STRING);
    if (!memchr(s, '\\', len)) {
        node->at = at + 1;
        node->len = (uint32_t)len;
        return 0;
    }
    struct ab_buf *text = &p->doc->text;
    size_t written;
    if (ab_json_unescape(p->scan.src, s, s + len, ab_buf_reserve(text, len), &written,
                         p->scan.err) < 0)
        return -1;
    node->copied = true;
    node->at = text->len;
    node->len = (uint32_t)written;
    ab_buf_advance(text, written);
    return 0;
}

static int read_number(struct parser *p, size_t at)
{
    const char *s = p->scan.src + at;
    const char *end = p->scan.src + ab_json_token_end(p->scan, at);
    bool integral;
    if (!ab_json_is_number(s, end, &integral))
        return fail(p, at, "malformed number");
    struct ab_json_node *node = ab_json_add(p->doc, AB_JSON_INT);
    ab_json_read_number(s, end, integral, node);
    if (node->kind == AB_JSON_NUMBER) {
        node->at = at;
        node->len = (uint32_t)(end - s);
    }
    return 0;
}

static int read_literal(struct parser *p, size_t at, const char *word, size_t len,
                        enum ab_json_kind kind)
{
    if (ab_json_token_end(p->scan, at) != at + len ||
        memcmp(p->scan.src + at, word, len) != 0)
        return fail(p, at, "unknown word");
    ab_json_add(p->doc, kind);
    return 0;
}

static int read_scalar(struct parser *p, size_t at)
{
    switch (p->scan.src[at]) {
    case '"':
        return read_string(p, at);
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

static int open_container(struct parser *p, size_t at)
{
    if (p->depth == AB_JSON_MAX_DEPTH)
        return fail(p, at, "nested too deeply");
    struct level *l = &p->levels[p->depth++];
    l->object = p->scan.src[at] == '{';
    l->count = 0;
    l->node = p->doc->count;
    ab_json_add(p->doc, l->object ? AB_JSON_OBJECT : AB_JSON_ARRAY);
    return 0;
}

static void close_container(struct parser *p)
{
    const struct level *l = &p->levels[--p->depth];
    p->doc->nodes[l->node].len = l->count;
}

static int read_raw(struct parser *p, size_t at)
{
    size_t end;
    if (ab_json_check(&p->scan, at, p->depth + 1, &end) < 0)
        return -1;
    struct ab_json_node *node = ab_json_add(p->doc, AB_JSON_RAW);
    node->at = at;
    node->len = (uint32_t)(end - at);
    return 0;
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
    size_t at = *p->scan.next;
    if (p->scan.next == p->scan.end || p->scan.src[at] != '"')
        return fail(p, at, "expected a string as key");
    p->scan.next++;
    if (read_string(p, at) < 0)
        return -1;
    *raw = is_raw_name(p, &p->doc->nodes[p->doc->count - 1]);
    at = *p->scan.next;
    if (p->scan.next == p->scan.end || p->scan.src[at] != ':')
        return fail(p, at, "expected ':'");
    p->scan.next++;
    return 0;
}

/* After a value: 1 when the next thing is another value, 0 at the end of the text. */
static int advance(struct parser *p, bool *raw)
{
    while (p->depth > 0) {
        struct level *l = &p->levels[p->depth - 1];
        size_t at = *p->scan.next;
        char c = p->scan.next == p->scan.end ? '\0' : p->scan.src[at];
        l->count++;
        if (c == ',') {
            p->scan.next++;
            *raw = false;
            return l->object && read_key(p, raw) < 0 ? -1 : 1;
        }
        if (c != (l->object ? '}' : ']'))
            return fail(p, at, l->object ? "expected ',' or '}'" : "expected ',' or ']'");
        p->scan.next++;
        close_container(p);
    }
    return p->scan.next == p->scan.end ? 0
                                       : fail(p, *p->scan.next, "text after the value");
}

/* A container that is read, up to its first value: 1 when that comes next, 0 when it is
 * empty. */
static int enter(struct parser *p, size_t at, bool *raw)
{
    char closing = (char)(p->scan.src[at] + 2); /* ASCII: [ and ], { and } */
    if (open_container(p, at) < 0)
        return -1;
    *raw = false;
    if (p->scan.next < p->scan.end && p->scan.src[*p->scan.next] == closing) {
        p->scan.next++;
        close_container(p);
        return 0;
    }
    return closing == '}' && read_key(p, raw) < 0 ? -1 : 1;
}

static int read_value(struct parser *p, bool raw)
{
    for (;;) {
        if (p->scan.next == p->scan.end)
            return fail(p, *p->scan.next, "expected a value");
        size_t at = *p->scan.next++;
        char c = p->scan.src[at];
        int more = 0;
        if (c != '{' && c != '[')
            more = read_scalar(p, at);
        else if (raw)
            more = read_raw(p, at);
        else
            more = enter(p, at, &raw);
        if (more == 0)
            more = advance(p, &raw);
        if (more <= 0)
            return more;
    }
}

int ab_json_parse(struct ab_json *doc, const char *text, size_t len,
                  const struct ab_json_opts *opts, struct ab_err *err)
{
    static const struct ab_json_opts none = {0};
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3; /* a byte order mark: RFC 8259 lets a parser ignore it */
        len -= 3;
    }
    struct parser p; /* the levels are not zeroed: they are most of it */
    p.doc = doc;
    p.opts = opts ? opts : &none;
    p.scan = (struct ab_json_scan){.src = text, .err = err};
    p.depth = 0;
    if (!doc->index)
        doc->index = ab_json_index_new();
    doc->src = text;
    doc->count = 0;
    ab_buf_clear(&doc->text);
    size_t count;
    enum ab_json_index_status status =
        ab_json_index_run(doc->index, text, len, &p.scan.next, &count);
    if (status != AB_JSON_INDEX_OK)
        return ab_json_fail_index(status, text, len, err);
    p.scan.end = p.scan.next + count;
    size_t first = *p.scan.next;
    if (read_value(&p, p.opts->raw_root) < 0)
        return -1;
    if (p.opts->raw_root && doc->nodes[0].kind != AB_JSON_RAW)
        doc->nodes[0] = (struct ab_json_node){
            .kind = AB_JSON_RAW,
            .at = first,
            .len = (uint32_t)(ab_json_token_end(p.scan, first) - first)};
    return 0;
}
