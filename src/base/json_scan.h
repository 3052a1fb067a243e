/* json_scan.h - the tokens of a JSON text, shared by reading (json_parse.c) and checking
 * (json_check.c).
 *
 * The index holds the offset of every token's first byte, so a token ends before the next
 * one, less the white space between. That bounds strings without looking for their
 * closing quote, and makes "the scalar is exactly this" the check that refuses `1.2.3` or
 * `"a"b`.
 */
#ifndef AB_BASE_JSON_SCAN_H
#define AB_BASE_JSON_SCAN_H

#include "base/err.h"
#include "base/json.h"
#include "base/json_index.h"

struct ab_json_scan {
    const char *src;            /* borrowed */
    const uint32_t *next, *end; /* tokens to come; *end is the length of the text */
    struct ab_err *err;         /* borrowed */
};

/* Checking keeps the scan in registers: no call may take its address, nor the whole of
 * it, which would be copied to the stack for every token, whether it fails or not. */

/* AB_EPARSE: what, and where in src it is. */
int ab_json_fail(const char *src, size_t at, const char *what, struct ab_err *err);

/* The same for a text without an index: simdjson says only that something is wrong, the
 * first place is found here. */
int ab_json_fail_index(enum ab_json_index_status status, const char *src, size_t len,
                       struct ab_err *err);

static inline bool ab_json_is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* The token before `next` begins at `at`; where it ends. */
static inline size_t ab_json_token_end(struct ab_json_scan s, size_t at)
{
    size_t e = *s.next;
    while (e > at + 1 && ab_json_is_space(s.src[e - 1]))
        e--;
    return e;
}

/* Decodes the inside of a string of src, [from, end), to out, which has room for as many
 * bytes; NULL means only check. */
int ab_json_unescape(const char *src, const char *from, const char *end, char *out,
                     size_t *written, struct ab_err *err);

/* Whether [s, end) is a number; *integral when it has neither point nor exponent. */
bool ab_json_is_number(const char *s, const char *end, bool *integral);

/* Gives the node the kind and the value of such a number; AB_JSON_NUMBER, and no text
 * yet, when neither int64 nor double holds it. */
void ab_json_read_number(const char *s, const char *end, bool integral,
                         struct ab_json_node *node);

/* Whether [s, end) is true, false or null. */
bool ab_json_is_word(const char *s, const char *end);

/* Checks the container whose bracket, at `at`, was just taken; `depth` counts it. Stores
 * where it ends. */
int ab_json_check(struct ab_json_scan *s, size_t at, unsigned depth, size_t *end);

#endif
