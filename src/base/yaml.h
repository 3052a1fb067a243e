/* yaml.h - YAML 1.2 (core schema) to the nodes of json.h.
 *
 * libyaml scans, the scalars are resolved here: `no`, `on` and `22:22` are strings, `010`
 * is ten. Merge keys (`<<`) and aliases are expanded. Refused: repeated keys, keys that
 * are not scalars, unknown tags, a second document, and whatever would grow without
 * bound.
 */
#ifndef AB_BASE_YAML_H
#define AB_BASE_YAML_H

#include "base/json.h"

#define AB_YAML_MAX_BYTES (1u << 20)
#define AB_YAML_MAX_DEPTH 100
#define AB_YAML_MAX_ALIAS 100000 /* nodes that aliases may add */

struct ab_yaml_mark {
    size_t line, column; /* from 1; 0 when unknown */
};

/* Replaces the nodes of doc; an empty text is null. Text that begins with `{` or `[` is
 * tried as JSON first, because JSON's surrogate pairs are not YAML. *mark is written on
 * failure: AB_EPARSE, AB_ETOOBIG. Borrows text until the next parse. */
int ab_yaml_parse(struct ab_json *doc, const char *text, size_t len,
                  struct ab_yaml_mark *mark, struct ab_err *err) AB_MUST_CHECK;

/* Whether the scalar, written without quotes, would be read back as this string. */
bool ab_yaml_is_plain(const char *s, size_t len);

#endif
