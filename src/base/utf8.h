/* utf8.h - UTF-8 as the Unicode standard has it: no surrogates, no overlong forms.
 *
 * Bytes that are not UTF-8 are replaced the way browsers do it: each maximal subpart of
 * an ill-formed sequence becomes one U+FFFD (so `e2 82` cut off at the end is one mark,
 * and `ed a0 80` is three).
 */
#ifndef AB_BASE_UTF8_H
#define AB_BASE_UTF8_H

#include "base/buf.h"

/* Decodes the sequence at s (n > 0 bytes are readable). Returns its length, 1 to 4, and
 * stores the code point; or minus the length of the maximal subpart to replace. */
int ab_utf8_decode(const char *s, size_t n, uint32_t *cp);

/* Writes cp, which must be a Unicode scalar value; returns 1 to 4. */
int ab_utf8_encode(uint32_t cp, char out[4]);

/* The length of the valid prefix: len when all of it is UTF-8. */
size_t ab_utf8_valid_prefix(const char *s, size_t len);

/* Appends s with replacements to an uncapped buffer. */
void ab_utf8_scrub(struct ab_buf *out, const char *s, size_t len);

/* Code points; an ill-formed subpart counts as the one mark it would become. */
size_t ab_utf8_count(const char *s, size_t len);

/* The length in bytes of the first `points` code points, at most len. */
size_t ab_utf8_prefix(const char *s, size_t len, size_t points);

/* The longest prefix of at most max bytes that does not end inside a sequence. */
size_t ab_utf8_cut(const char *s, size_t len, size_t max);

#endif
