/* json_column.h - one member of every object of a list, without building the objects.
 *
 * Log-probs come as a list of objects, megabytes of them, of which a record keeps one
 * number each.
 */
#ifndef AB_BASE_JSON_COLUMN_H
#define AB_BASE_JSON_COLUMN_H

#include "base/buf.h"

/* text is valid JSON: a list of objects, or an object whose member `inside` is one.
 * Appends the list of their members `name`, as JSON, to out; only scalars are taken.
 * Returns how many there were, or -1 when there is no such list or an object lacks the
 * member. */
long ab_json_column(struct ab_buf *out, const char *text, size_t len, const char *inside,
                    const char *name);

#endif
