/* yaml.c - libyaml's events to nodes.
 *
 * Nodes lie in document order, so a subtree is a range of them: an alias copies the range
 * of its anchor, and a merge key rewrites the range of its mapping when that ends.
 */
#include "base/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <yaml.h>

#include "base/yaml_scalar.h"

/* Aliases are looked up one by one; and libyaml compares each %TAG with all before it. */
enum { MAX_ANCHORS = 1000, MAX_DIRECTIVES = 1000 };

struct level {
    size_t node;
    uint32_t count;
    bool mapping;
    bool want_value; /* in a mapping: a key has been read */
    size_t merge;    /* node of the key `<<`, or 0 */
    size_t anchor;   /* number of its anchor, or 0 */
};

struct anchor {
    char *name;        /* owns */
    size_t start, end; /* nodes; end is 0 while the subtree is open */
};

struct builder {
    struct ab_json *doc;
    struct ab_err *err;
    struct ab_yaml_mark *mark;
    yaml_parser_t parser;
    struct ab_yaml_mark *marks; /* owns; of each node */
    size_t marks_cap;
    struct anchor *anchors; /* owns */
    size_t anchor_count, aliased;
    unsigned depth;
    struct level levels[AB_YAML_MAX_DEPTH];
};

static int fail_at(struct builder *b, struct ab_yaml_mark at, enum ab_errcode code,
                   const char *what, const char *detail)
{
    *b->mark = at;
    return ab_err_set(b->err, code, "%s%s%.80s%s at line %zu column %zu", what,
                      detail ? " '" : "", detail ? detail : "", detail ? "'" : "",
                      at.line, at.column);
}

static struct ab_yaml_mark mark_of(const yaml_mark_t *m)
{
    return (struct ab_yaml_mark){m->line + 1, m->column + 1};
}

static int fail(struct builder *b, const yaml_event_t *ev, const char *what,
                const char *detail)
{
    return fail_at(b, mark_of(&ev->start_mark), AB_EPARSE, what, detail);
}

/* Adds a node whose text, if any, is copied. Returns its number. */
static size_t add(struct builder *b, struct ab_json_node node, const char *text,
                  size_t len, struct ab_yaml_mark at)
{
    size_t i = b->doc->count;
    *ab_json_add(b->doc, AB_JSON_NULL) = node;
    if (i >= b->marks_cap) {
        b->marks_cap = b->doc->cap;
        b->marks = ab_xrealloc(b->marks, b->marks_cap * sizeof *b->marks);
    }
    b->marks[i] = at;
    if (node.kind == AB_JSON_STRING || node.kind == AB_JSON_NUMBER) {
        struct ab_json_node *n = &b->doc->nodes[i];
        n->copied = true;
        n->at = b->doc->text.len;
        n->len = (uint32_t)len;
        ab_buf_put(&b->doc->text, text, len);
    }
    return i;
}

/* The node after the subtree that begins at i. */
static size_t subtree_end(const struct ab_json *doc, size_t i)
{
    for (size_t open = 1; open > 0; i++, open--) {
        if (doc->nodes[i].kind == AB_JSON_ARRAY)
            open += doc->nodes[i].len;
        else if (doc->nodes[i].kind == AB_JSON_OBJECT)
            open += 2 * (size_t)doc->nodes[i].len;
    }
    return i;
}

/* ---- tags ---- */

static bool has_tag(const char *tag, const char *name)
{
    static const char prefix[] = "tag:yaml.org,2002:";
    return strncmp(tag, prefix, sizeof prefix - 1) == 0 &&
           strcmp(tag + sizeof prefix - 1, name) == 0;
}

static int resolve_tagged(struct builder *b, const yaml_event_t *ev, const char *tag,
                          struct ab_json_node *node)
{
    static const struct {
        const char *name;
        uint8_t kinds[3];
    } known[] = {
        {"null", {AB_JSON_NULL, AB_JSON_NULL, AB_JSON_NULL}},
        {"bool", {AB_JSON_FALSE, AB_JSON_TRUE, AB_JSON_TRUE}},
        {"int", {AB_JSON_INT, AB_JSON_NUMBER, AB_JSON_NUMBER}},
        {"float", {AB_JSON_FLOAT, AB_JSON_INT, AB_JSON_INT}},
    };
    if (strcmp(tag, "!") == 0 || has_tag(tag, "str")) {
        *node = (struct ab_json_node){.kind = AB_JSON_STRING};
        return 0;
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (!has_tag(tag, known[i].name))
            continue;
        *node =
            ab_yaml_resolve((const char *)ev->data.scalar.value, ev->data.scalar.length);
        if (!memchr(known[i].kinds, node->kind, sizeof known[i].kinds))
            return fail(b, ev, "the value does not fit its tag", tag);
        if (i == 3 && node->kind == AB_JSON_INT)
            *node = (struct ab_json_node){.kind = AB_JSON_FLOAT,
                                          .number = (double)node->integer};
        return 0;
    }
    return fail(b, ev, "unknown tag", tag);
}

/* ---- anchors and aliases ---- */

/* Stores in *number the number of the new anchor, from 1, or 0 when there is none. */
static int open_anchor(struct builder *b, const yaml_event_t *ev, const yaml_char_t *name,
                       size_t *number)
{
    *number = 0;
    if (!name)
        return 0;
    if (b->anchor_count == MAX_ANCHORS)
        return fail_at(b, mark_of(&ev->start_mark), AB_ETOOBIG, "too many anchors", NULL);
    if (!b->anchors)
        b->anchors = ab_xcalloc(MAX_ANCHORS, sizeof *b->anchors);
    b->anchors[b->anchor_count++] = (struct anchor){
        .name = ab_xstrndup((const char *)name, strlen((const char *)name)),
        .start = b->doc->count,
    };
    *number = b->anchor_count;
    return 0;
}

static void close_anchor(struct builder *b, size_t number)
{
    if (number)
        b->anchors[number - 1].end = b->doc->count;
}

static int expand_alias(struct builder *b, const yaml_event_t *ev)
{
    const char *name = (const char *)ev->data.alias.anchor;
    const struct anchor *a = NULL;
    for (size_t i = b->anchor_count; i > 0 && !a; i--) {
        if (strcmp(b->anchors[i - 1].name, name) == 0)
            a = &b->anchors[i - 1];
    }
    if (!a)
        return fail(b, ev, "unknown alias", name);
    if (a->end == 0)
        return fail(b, ev, "an alias inside its own anchor", name);
    b->aliased += a->end - a->start;
    if (b->aliased > AB_YAML_MAX_ALIAS)
        return fail_at(b, mark_of(&ev->start_mark), AB_ETOOBIG,
                       "aliases expand to too much", NULL);
    for (size_t i = a->start; i < a->end; i++) {
        struct ab_json_node node = b->doc->nodes[i];
        *ab_json_add(b->doc, AB_JSON_NULL) = node;
    }
    if (b->doc->cap > b->marks_cap) {
        b->marks_cap = b->doc->cap;
        b->marks = ab_xrealloc(b->marks, b->marks_cap * sizeof *b->marks);
    }
    for (size_t i = b->doc->count - (a->end - a->start); i < b->doc->count; i++)
        b->marks[i] = mark_of(&ev->start_mark);
    return 0;
}

/* ---- the end of a mapping ---- */

struct key {
    const char *s;
    size_t len, node;
};

static int compare_keys(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    size_t n = x->len < y->len ? x->len : y->len;
    int c = n ? memcmp(x->s, y->s, n) : 0;
    if (c == 0)
        c = (x->len > y->len) - (x->len < y->len);
    return c ? c : (x->node > y->node) - (x->node < y->node);
}

static int check_repeats(struct builder *b, const struct level *l)
{
    if (l->count < 2)
        return 0;
    struct key *keys = ab_xcalloc(l->count, sizeof *keys);
    size_t i = l->node + 1, twin = 0;
    for (uint32_t k = 0; k < l->count; k++) {
        const struct ab_json_node *node = &b->doc->nodes[i];
        keys[k] = (struct key){ab_json_text(b->doc, node), node->len, i};
        i = subtree_end(b->doc, i + 1);
    }
    qsort(keys, l->count, sizeof *keys, compare_keys);
    for (uint32_t k = 1; k < l->count && !twin; k++) {
        if (keys[k].len == keys[k - 1].len &&
            memcmp(keys[k].s, keys[k - 1].s, keys[k].len) == 0)
            twin = keys[k].node;
    }
    free(keys);
    if (!twin)
        return 0;
    const struct ab_json_node *node = &b->doc->nodes[twin];
    char name[64];
    size_t n = node->len < sizeof name - 1 ? node->len : sizeof name - 1;
    memcpy(name, ab_json_text(b->doc, node), n);
    name[n] = '\0';
    return fail_at(b, b->marks[twin], AB_EPARSE, "repeated key", name);
}

static void copy_range(struct ab_json_node *to, size_t *n, const struct ab_json *doc,
                       size_t from, size_t end)
{
    memcpy(to + *n, doc->nodes + from, (end - from) * sizeof *to);
    *n += end - from;
}

/* Copies the members of what `<<` names, the last of a list first: of repeated keys the
 * later wins, so that an explicit key, copied after these, beats them all. */
static int copy_merged(struct builder *b, size_t value, struct ab_json_node *to,
                       size_t *n, uint32_t *members)
{
    const struct ab_json *doc = b->doc;
    const struct ab_json_node *v = &doc->nodes[value];
    if (v->kind == AB_JSON_OBJECT) {
        copy_range(to, n, doc, value + 1, subtree_end(doc, value));
        *members += v->len;
        return 0;
    }
    size_t count = v->kind == AB_JSON_ARRAY ? v->len : 0, i = value + 1;
    if (v->kind != AB_JSON_ARRAY)
        return fail_at(b, b->marks[value], AB_EPARSE, "'<<' needs a mapping", NULL);
    size_t *starts = ab_xcalloc(count + 1, sizeof *starts);
    int rc = 0;
    for (size_t k = 0; k < count; k++) {
        starts[k] = i;
        i = subtree_end(doc, i);
    }
    for (size_t k = count; k > 0 && rc == 0; k--) {
        const struct ab_json_node *one = &doc->nodes[starts[k - 1]];
        if (one->kind != AB_JSON_OBJECT) {
            rc = fail_at(b, b->marks[starts[k - 1]], AB_EPARSE, "'<<' needs mappings",
                         NULL);
            break;
        }
        copy_range(to, n, doc, starts[k - 1] + 1, subtree_end(doc, starts[k - 1]));
        *members += one->len;
    }
    free(starts);
    return rc;
}

/* Rewrites a mapping that has `<<`: merged members first, then its own. */
static int merge(struct builder *b, struct level *l)
{
    struct ab_json *doc = b->doc;
    size_t first = l->node + 1, n = 0;
    size_t after = subtree_end(doc, l->merge + 1);
    struct ab_json_node *to = ab_xcalloc(doc->count - first, sizeof *to);
    uint32_t members = l->count - 1;
    int rc = copy_merged(b, l->merge + 1, to, &n, &members);
    if (rc == 0) {
        copy_range(to, &n, doc, first, l->merge);
        copy_range(to, &n, doc, after, doc->count);
        memcpy(doc->nodes + first, to, n * sizeof *to);
        doc->count = first + n;
        l->count = members;
    }
    free(to);
    return rc;
}

/* ---- events ---- */

/* Before a key or a value: checks that it may stand here, and counts it. */
static int begin(struct builder *b, const yaml_event_t *ev, bool scalar)
{
    if (b->depth == 0)
        return 0;
    struct level *l = &b->levels[b->depth - 1];
    if (!l->mapping || l->want_value) {
        l->count += !l->mapping;
        l->want_value = false;
        return 0;
    }
    if (!scalar)
        return fail(b, ev, "a key must be a scalar", NULL);
    l->count++;
    l->want_value = true;
    return 0;
}

static int open_level(struct builder *b, const yaml_event_t *ev, bool mapping,
                      const char *tag, const yaml_char_t *anchor)
{
    struct ab_yaml_mark at = mark_of(&ev->start_mark);
    if (begin(b, ev, false) < 0)
        return -1;
    if (b->depth == AB_YAML_MAX_DEPTH)
        return fail_at(b, at, AB_ETOOBIG, "nested too deeply", NULL);
    if (tag && !has_tag(tag, mapping ? "map" : "seq") && strcmp(tag, "!") != 0)
        return fail(b, ev, "unknown tag", tag);
    struct level l = {.node = b->doc->count, .mapping = mapping};
    if (open_anchor(b, ev, anchor, &l.anchor) < 0)
        return -1;
    add(b, (struct ab_json_node){.kind = mapping ? AB_JSON_OBJECT : AB_JSON_ARRAY}, NULL,
        0, at);
    b->levels[b->depth++] = l;
    return 0;
}

static int close_level(struct builder *b)
{
    struct level *l = &b->levels[--b->depth];
    b->doc->nodes[l->node].len = l->count;
    if (l->mapping && check_repeats(b, l) < 0)
        return -1;
    if (l->merge && merge(b, l) < 0)
        return -1;
    b->doc->nodes[l->node].len = l->count;
    close_anchor(b, l->anchor);
    return 0;
}

static int on_scalar(struct builder *b, const yaml_event_t *ev)
{
    const char *s = (const char *)ev->data.scalar.value;
    size_t len = ev->data.scalar.length, anchor;
    const char *tag = (const char *)ev->data.scalar.tag;
    bool plain = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    struct level *l = b->depth ? &b->levels[b->depth - 1] : NULL;
    bool key = l && l->mapping && !l->want_value;
    struct ab_json_node node = {.kind = AB_JSON_STRING};
    if (begin(b, ev, true) < 0 || open_anchor(b, ev, ev->data.scalar.anchor, &anchor) < 0)
        return -1;
    if (tag && resolve_tagged(b, ev, tag, &node) < 0)
        return -1;
    if (!tag && plain)
        node = ab_yaml_resolve(s, len);
    if (key) {
        if (!tag && plain && len == 2 && memcmp(s, "<<", 2) == 0) {
            if (l->merge)
                return fail(b, ev, "repeated key", "<<");
            l->merge = b->doc->count;
        }
        node = (struct ab_json_node){.kind = AB_JSON_STRING};
    }
    size_t plus = node.kind == AB_JSON_NUMBER && *s == '+';
    add(b, node, s + plus, len - plus, mark_of(&ev->start_mark));
    close_anchor(b, anchor);
    return 0;
}

static int on_event(struct builder *b, const yaml_event_t *ev)
{
    switch (ev->type) {
    case YAML_SCALAR_EVENT:
        return on_scalar(b, ev);
    case YAML_ALIAS_EVENT:
        return begin(b, ev, false) < 0 ? -1 : expand_alias(b, ev);
    case YAML_SEQUENCE_START_EVENT:
        return open_level(b, ev, false, (const char *)ev->data.sequence_start.tag,
                          ev->data.sequence_start.anchor);
    case YAML_MAPPING_START_EVENT:
        return open_level(b, ev, true, (const char *)ev->data.mapping_start.tag,
                          ev->data.mapping_start.anchor);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return close_level(b);
    case YAML_DOCUMENT_START_EVENT:
        if (b->doc->count > 0)
            return fail(b, ev, "a second document", NULL);
        return 0;
    default:
        return 0;
    }
}

static int fail_scan(struct builder *b)
{
    const yaml_parser_t *p = &b->parser;
    if (p->error == YAML_MEMORY_ERROR)
        AB_BUG("out of memory");
    if (p->error != YAML_READER_ERROR)
        return fail_at(b, mark_of(&p->problem_mark), AB_EPARSE, p->problem, NULL);
    *b->mark = (struct ab_yaml_mark){0};
    return ab_err_set(b->err, AB_EPARSE, "%s at byte %zu", p->problem, p->problem_offset);
}

static int run(struct builder *b)
{
    bool more = true;
    while (more) {
        yaml_event_t ev;
        if (!yaml_parser_parse(&b->parser, &ev))
            return fail_scan(b);
        more = ev.type != YAML_STREAM_END_EVENT;
        int rc = on_event(b, &ev);
        yaml_event_delete(&ev);
        if (rc < 0)
            return -1;
    }
    if (b->doc->count == 0)
        add(b, (struct ab_json_node){.kind = AB_JSON_NULL}, NULL, 0,
            (struct ab_yaml_mark){0});
    return 0;
}

static bool looks_like_json(const char *text, size_t len)
{
    size_t i = 0;
    while (i < len && strchr(" \t\r\n", text[i]) && text[i])
        i++;
    return i < len && (text[i] == '{' || text[i] == '[');
}

static bool has_too_many_directives(const char *text, size_t len)
{
    static const char mark[] = "%TAG"; /* wherever: YAML knows five line breaks */
    const char *end = text + len;
    for (int n = 0; n < MAX_DIRECTIVES; n++) {
        text = memmem(text, (size_t)(end - text), mark, sizeof mark - 1);
        if (!text)
            return false;
        text++;
    }
    return true;
}

int ab_yaml_parse(struct ab_json *doc, const char *text, size_t len,
                  struct ab_yaml_mark *mark, struct ab_err *err)
{
    struct builder b = {.doc = doc, .err = err, .mark = mark};
    *mark = (struct ab_yaml_mark){0};
    if (len > AB_YAML_MAX_BYTES)
        return ab_err_set(err, AB_ETOOBIG, "YAML of %zu bytes", len);
    if (looks_like_json(text, len) && ab_json_parse(doc, text, len, NULL, err) == 0)
        return 0;
    if (has_too_many_directives(text, len))
        return ab_err_set(err, AB_ETOOBIG, "too many %%TAG directives");
    doc->count = 0;
    ab_buf_clear(&doc->text);
    if (!yaml_parser_initialize(&b.parser))
        AB_BUG("out of memory");
    yaml_parser_set_input_string(&b.parser, (const unsigned char *)text, len);
    int rc = run(&b);
    yaml_parser_delete(&b.parser);
    for (size_t i = 0; i < b.anchor_count; i++)
        free(b.anchors[i].name);
    free(b.anchors);
    free(b.marks);
    return rc;
}

/* What YAML 1.1 readers take for something else than a string, beside numbers. */
static bool is_old_boolean(const char *s, size_t len)
{
    static const char *const words[] = {"y", "n", "yes", "no", "on", "off", NULL};
    for (const char *const *w = words; *w; w++) {
        if (strlen(*w) == len && strncasecmp(*w, s, len) == 0)
            return true;
    }
    return false;
}

/* Conservative: what might be syntax, or a number or a date elsewhere, is not plain. */
bool ab_yaml_is_plain(const char *s, size_t len)
{
    if (len == 0 || ab_yaml_resolve(s, len).kind != AB_JSON_STRING ||
        is_old_boolean(s, len))
        return false;
    if (strchr("0123456789.+-?:,[]{}#&*!|>'\"%@`=<~ ", s[0]))
        return false;
    if (s[len - 1] == ' ' || s[len - 1] == ':')
        return false;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c < 0x20 || c >= 0x7f || strchr(",[]{}\"'`", c))
            return false;
        if ((c == '#' && s[i - 1] == ' ') || (c == ':' && s[i + 1] == ' '))
            return false;
    }
    return true;
}
