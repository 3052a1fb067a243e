/* json_layout.h - JSON text laid out over lines, straight from text on one line: the same
 * bytes that the values in it would be written as.
 *
 *     struct ab_json_layout layout = {.indent = 2};
 *     if (!ab_json_lay_out(&out, text, len, &layout))
 *         ...                                       // decode it, and write the values
 */
#ifndef AB_BASE_JSON_LAYOUT_H
#define AB_BASE_JSON_LAYOUT_H

#include "base/json.h"

struct ab_json_layout {
    int indent;     /* spaces a level, more than 0 */
    unsigned style; /* enum ab_json_style */
    const struct ab_json_name
        *text; /* members whose objects and arrays stay as they are */
    size_t text_count;
};

/* Appends the text, which is valid JSON. False, and what is in out means nothing, for
 * what is rare and takes its values to say: an object with a name twice, with more than
 * 64 members or with a name that has escapes, nesting beyond 128, or more than 1 GiB. */
bool ab_json_lay_out(struct ab_buf *out, const char *text, size_t len,
                     const struct ab_json_layout *layout) AB_MUST_CHECK;

#endif
