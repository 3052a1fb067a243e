/* fuzz_json.c - whatever is accepted comes back; checking agrees with reading; repair is
 * stable. */
#include <math.h>
#include <string.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct walk {
    const struct ab_json *doc;
    size_t next;
};

static void write_value(struct walk *w, struct ab_buf *out);

static void write_container(struct walk *w, struct ab_buf *out, bool object,
                            uint32_t count)
{
    ab_buf_putc(out, object ? '{' : '[');
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0)
            ab_buf_putc(out, ',');
        if (object) {
            write_value(w, out);
            ab_buf_putc(out, ':');
        }
        write_value(w, out);
    }
    ab_buf_putc(out, object ? '}' : ']');
}

static void write_value(struct walk *w, struct ab_buf *out)
{
    const struct ab_json_node *node = &w->doc->nodes[w->next++];
    switch ((enum ab_json_kind)node->kind) {
    case AB_JSON_NULL:
        ab_buf_put(out, "null", 4);
        break;
    case AB_JSON_FALSE:
        ab_buf_put(out, "false", 5);
        break;
    case AB_JSON_TRUE:
        ab_buf_put(out, "true", 4);
        break;
    case AB_JSON_INT:
        ab_json_put_integer(out, node->integer);
        break;
    case AB_JSON_FLOAT:
        ab_json_put_double(out, node->number);
        break;
    case AB_JSON_NUMBER:
        ab_buf_put(out, ab_json_text(w->doc, node), node->len);
        break;
    case AB_JSON_STRING:
        if (ab_json_put_string(out, ab_json_text(w->doc, node), node->len,
                               AB_JSON_STRICT) < 0)
            AB_BUG("a string that is not UTF-8 was accepted");
        break;
    case AB_JSON_ARRAY:
    case AB_JSON_OBJECT:
        write_container(w, out, node->kind == AB_JSON_OBJECT, node->len);
        break;
    case AB_JSON_RAW:
        AB_BUG("raw without being asked for");
    }
}

static bool same_nodes(const struct ab_json *a, const struct ab_json *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        const struct ab_json_node *x = &a->nodes[i], *y = &b->nodes[i];
        if (x->kind != y->kind || x->len != y->len)
            return false;
        if (x->kind == AB_JSON_INT && x->integer != y->integer)
            return false;
        if (x->kind == AB_JSON_FLOAT &&
            (x->number != y->number || signbit(x->number) != signbit(y->number)))
            return false;
        if ((x->kind == AB_JSON_NUMBER || x->kind == AB_JSON_STRING) &&
            memcmp(ab_json_text(a, x), ab_json_text(b, y), x->len) != 0)
            return false;
    }
    return true;
}

static void check_round_trip(const struct ab_json *doc)
{
    struct walk w = {.doc = doc};
    struct ab_buf text;
    struct ab_json again;
    struct ab_err err;
    ab_buf_init(&text, 0);
    ab_json_init(&again);
    write_value(&w, &text);
    if (w.next != doc->count)
        AB_BUG("%zu of %zu nodes belong to the value", w.next, doc->count);
    if (ab_json_parse(&again, text.data, text.len, NULL, &err) < 0)
        AB_BUG("not accepted again: %s: %s", err.msg, text.data);
    if (!same_nodes(doc, &again))
        AB_BUG("another value: %s", text.data);
    ab_json_fini(&again);
    ab_buf_fini(&text);
}

static void check_repair(const char *text, size_t size, bool valid)
{
    struct ab_buf once, twice;
    ab_buf_init(&once, 0);
    ab_buf_init(&twice, 0);
    size_t fixes = ab_json_repair(&once, text, size);
    if (valid && fixes)
        AB_BUG("valid text was repaired");
    if (!fixes && (once.len != size || (size && memcmp(once.data, text, size) != 0)))
        AB_BUG("text changed without a repair");
    if (ab_json_repair(&twice, once.len ? once.data : "", once.len))
        AB_BUG("a repair left something to repair");
    struct ab_json doc;
    struct ab_err err;
    ab_json_init(&doc);
    if (ab_json_parse(&doc, once.len ? once.data : "", once.len, NULL, &err) == 0)
        check_round_trip(&doc);
    ab_json_fini(&doc);
    ab_buf_fini(&once);
    ab_buf_fini(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct ab_json_name names[] = {{"a", 1}};
    static const struct ab_json_opts whole = {.raw_root = true};
    static const struct ab_json_opts member = {.raw = names, .raw_count = 1};
    const char *text = (const char *)data;
    struct ab_json doc;
    struct ab_err err;
    ab_json_init(&doc);
    bool valid = ab_json_parse(&doc, text, size, NULL, &err) == 0;
    if (valid)
        check_round_trip(&doc);
    if ((ab_json_parse(&doc, text, size, &whole, &err) == 0) != valid)
        AB_BUG("checking and reading disagree");
    if ((ab_json_parse(&doc, text, size, &member, &err) == 0) != valid)
        AB_BUG("slicing and reading disagree");
    ab_json_fini(&doc);
    check_repair(text, size, valid);
    return 0;
}
