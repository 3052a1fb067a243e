/* json_slice.h - members and elements of a JSON text as slices of it: nothing is built,
 * nothing copied.
 *
 *     struct ab_json_walk walk;
 *     struct ab_json_slice key, value;
 *     if (ab_json_walk_object(&walk, text, len))
 *         while (ab_json_next_member(&walk, &key, &value))
 *             ...
 *
 * For text that is known to be valid, as parts of a parsed document are. Of other text
 * the slices say nothing, but they are always inside it.
 */
#ifndef AB_BASE_JSON_SLICE_H
#define AB_BASE_JSON_SLICE_H

#include "base/ab.h"

struct ab_json_slice {
    const char *s; /* borrowed from the text */
    size_t len;
};

struct ab_json_walk {
    const char *p, *end; /* borrowed */
};

/* Begins a walk. False when the text is no object or no array. */
bool ab_json_walk_object(struct ab_json_walk *walk, const char *text, size_t len);
bool ab_json_walk_array(struct ab_json_walk *walk, const char *text, size_t len);

/* The next one, false after the last. A key is given without its quotes, its escapes as
 * they are. */
bool ab_json_next_member(struct ab_json_walk *walk, struct ab_json_slice *key,
                         struct ab_json_slice *value);
bool ab_json_next_element(struct ab_json_walk *walk, struct ab_json_slice *value);

/* Whether the key, as a walk gives it, is that name. */
bool ab_json_is_key(struct ab_json_slice key, const char *name, size_t len);

#endif
