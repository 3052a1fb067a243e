/* json_slice.h - members and elements of a JSON text as slices of it: nothing is built,
 * nothing copied, each byte looked at once.
 *
 *     struct ab_json_walk walk = {text, text + len};
 *     struct ab_json_slice key;
 *     if (ab_json_open(&walk, '{'))
 *         while (ab_json_next_key(&walk, &key))
 *             value = ab_json_value(&walk);    // or ab_json_open() again, and so on
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

/* At a value: goes inside when it is an array '[' or an object '{', else stays. */
bool ab_json_open(struct ab_json_walk *walk, char bracket);

/* Inside: goes to the next element; false and behind the bracket after the last. */
bool ab_json_next(struct ab_json_walk *walk);

/* The same in an object, and its key without the quotes, its escapes as they are. */
bool ab_json_next_key(struct ab_json_walk *walk, struct ab_json_slice *key);

/* At a value: goes behind it. Empty when there is none. */
struct ab_json_slice ab_json_value(struct ab_json_walk *walk);

/* Whether the key, as a walk gives it, is that name. */
bool ab_json_is_key(struct ab_json_slice key, const char *name, size_t len);

#endif
