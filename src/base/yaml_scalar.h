/* yaml_scalar.h - which plain scalars are not strings. */
#ifndef AB_BASE_YAML_SCALAR_H
#define AB_BASE_YAML_SCALAR_H

#include "base/json.h"

/* The node of a plain scalar under the core schema, without its text: NULL, FALSE, TRUE,
 * INT, FLOAT (which may be infinite or NaN), NUMBER for an integer beyond int64, else
 * STRING. */
struct ab_json_node ab_yaml_resolve(const char *s, size_t len);

#endif
