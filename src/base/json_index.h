/* json_index.h - what json.c needs from C++: simdjson's token index, and double <-> text.
 */
#ifndef AB_BASE_JSON_INDEX_H
#define AB_BASE_JSON_INDEX_H

#include "base/ab.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ab_json_index;

enum ab_json_index_status {
    AB_JSON_INDEX_OK,
    AB_JSON_INDEX_EMPTY,
    AB_JSON_INDEX_UTF8,    /* somewhere the bytes are not UTF-8 */
    AB_JSON_INDEX_CONTROL, /* a control character inside a string */
    AB_JSON_INDEX_OPEN,    /* the last string has no end */
    AB_JSON_INDEX_TOOBIG,  /* 4 GiB and more */
};

/* Gives; never NULL. */
struct ab_json_index *ab_json_index_new(void);
void ab_json_index_free(struct ab_json_index *ix);
size_t ab_json_index_capacity(const struct ab_json_index *ix);

/* Offsets of every `{}[]:,` outside strings and of the first byte of every other token,
 * in order, followed by one entry equal to len. Borrowed until the next call. */
enum ab_json_index_status ab_json_index_run(struct ab_json_index *ix, const char *text,
                                            size_t len, const uint32_t **at,
                                            size_t *count);

/* s is a number in JSON syntax. Returns false when a double overflows or underflows. */
bool ab_json_read_double(const char *s, size_t len, double *v);

/* Shortest scientific form: "1e-07", "-1.25e+00". Returns the length, below 32. */
size_t ab_json_format_scientific(double v, char out[32]);

#ifdef __cplusplus
}
#endif

#endif
