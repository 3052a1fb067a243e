/* plane.h - flat lists of numbers, as JSON text and packed: little-endian values without
 * anything between them.
 *
 *     struct ab_plane plane;
 *     if (ab_plane_read(&doc, text, len, &plane) == 0 && plane.kind != AB_PLANE_NONE)
 *         ab_plane_pack(&doc, &plane, &bytes);
 *     ...
 *     ab_plane_unpack(data, size, AB_PLANE_I4, &text);
 *
 * Packing loses nothing but spelling: every value reads back as the same number.
 */
#ifndef AB_BASE_PLANE_H
#define AB_BASE_PLANE_H

#include "base/json.h"

enum ab_plane_kind {
    AB_PLANE_NONE, /* no kind holds every value exactly */
    AB_PLANE_I4,
    AB_PLANE_F4,
    AB_PLANE_F8,
};

struct ab_plane {
    size_t count;
    double min, max;         /* of an empty list: 0 */
    enum ab_plane_kind kind; /* the smallest that holds all values */
};

/* "i4", "f4", "f8"; NULL for none. */
const char *ab_plane_name(enum ab_plane_kind kind);
enum ab_plane_kind ab_plane_named(const char *name);

/* Parses a list of numbers and sums it up; the values stay in doc. -1 when the text is
 * anything else, a list with other things in it included. */
int ab_plane_read(struct ab_json *doc, const char *text, size_t len,
                  struct ab_plane *plane) AB_MUST_CHECK;

/* How many numbers a list has, without reading them. The text is valid JSON; -1 when it
 * is no list, or has other things in it. */
long ab_plane_count(const char *text, size_t len);

/* Appends the values that were just read. plane->kind is not AB_PLANE_NONE. */
void ab_plane_pack(const struct ab_json *doc, const struct ab_plane *plane,
                   struct ab_buf *out);

/* Appends the list as JSON. -1 when size is no multiple of the kind's, or when a value is
 * not finite. */
int ab_plane_unpack(const void *data, size_t size, enum ab_plane_kind kind,
                    struct ab_buf *out) AB_MUST_CHECK;

#endif
