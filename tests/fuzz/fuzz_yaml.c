/* fuzz_yaml.c - the nodes of whatever is accepted make one value; plain scalars read as
 * strings. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "base/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_shape(const struct ab_json *doc)
{
    size_t i = 0;
    for (size_t open = 1; open > 0; open--, i++) {
        if (i >= doc->count)
            AB_BUG("nodes are missing");
        const struct ab_json_node *node = &doc->nodes[i];
        if (node->kind == AB_JSON_ARRAY)
            open += node->len;
        else if (node->kind == AB_JSON_OBJECT)
            open += 2 * (size_t)node->len;
        else if (node->kind == AB_JSON_STRING &&
                 ab_utf8_valid_prefix(ab_json_text(doc, node), node->len) != node->len)
            AB_BUG("a string that is not UTF-8");
        else if (node->kind == AB_JSON_RAW)
            AB_BUG("raw without being asked for");
    }
    if (i != doc->count)
        AB_BUG("%zu of %zu nodes belong to the value", i, doc->count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct ab_yaml_mark mark;
    struct ab_json doc;
    struct ab_err err;
    ab_json_init(&doc);
    bool valid = ab_yaml_parse(&doc, text, size, &mark, &err) == 0;
    if (valid)
        check_shape(&doc);
    if (ab_yaml_is_plain(text, size)) {
        if (!valid || doc.count != 1 || doc.nodes[0].kind != AB_JSON_STRING ||
            doc.nodes[0].len != size ||
            memcmp(ab_json_text(&doc, doc.nodes), text, size) != 0)
            AB_BUG("a plain scalar was read as something else");
    }
    ab_json_fini(&doc);
    return 0;
}
