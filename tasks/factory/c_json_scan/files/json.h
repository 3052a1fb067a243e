/* json.h - checks JSON texts (RFC 8259) and finds values in them, without memory of its own. */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>

enum { JSON_MAX_DEPTH = 64 }; /* arrays and objects inside of one another; [[1]] is 2 deep */

enum json_kind { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/* A piece of the input. */
struct json_value {
    enum json_kind kind;
    const char *text; /* of a string with its quotes; blanks around are not part of it */
    size_t length;
};

/* Whether `n` bytes are exactly one JSON value with blanks (space, tab, LF, CR) around it. Strings must be valid UTF-8 (no overlong forms,
 * no surrogates, nothing over U+10FFFF), without control characters below 0x20, with no other escapes than \" \\ \/ \b \f \n \r \t
 * and \u with four hexadecimal digits; \u surrogates must come in pairs, high before low. Numbers are as in the RFC: no leading zeros, no
 * plus sign in front, digits on both sides of a dot. Nested deeper than JSON_MAX_DEPTH is not valid. When the answer is false, *bad
 * (unless NULL) is the offset of the first byte with which no valid text can go on, or n when the input ends too early; for nesting
 * that is too deep it is the bracket. A surrogate that lacks its other half is found at the backslash of its \u when it is a low one, and
 * for a high one at the first byte that does not continue \u and a low surrogate: the digit with which it can be no low one. */
bool json_check(const char *text, size_t n, size_t *bad);

/* Finds a value in a text for which json_check() has said true: `path` has steps, each "name" for an object's member or "[3]" for an
 * array's element, ends with NULL, and is empty for the whole. Names are compared after escapes are undone (a name in `path` is UTF-8 and
 * is never an index in an object: the step "[3]" means only an element of an array). Of members of one name the last one counts. false
 * when there is no such value. */
bool json_find(const char *text, size_t n, const char *const path[], struct json_value *out);

/* Undoes the escapes of a string value (with its quotes) into `to`, which has `room` bytes, and puts a zero behind. Returns the length
 * without that zero; what is written is cut to fit (also inside of a character), as snprintf() does. `room` may be 0. */
size_t json_string(const struct json_value *value, char *to, size_t room);

#endif
