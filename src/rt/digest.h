/* digest.h - SHA-256. libcrypto is loaded at the first call: linking it costs every
 * start. */
#ifndef AB_RT_DIGEST_H
#define AB_RT_DIGEST_H

#include "base/err.h"

enum { AB_SHA256_HEX = 65 };

/* Writes 64 lower-case digits and a NUL. -1 with AB_EUNSUPPORTED when libcrypto is
 * missing. */
int ab_sha256(const void *data, size_t len, char hex[AB_SHA256_HEX], struct ab_err *err)
    AB_MUST_CHECK;

struct ab_hasher;

/* Gives; NULL on failure. */
struct ab_hasher *ab_hasher_new(struct ab_err *err);
void ab_hasher_update(struct ab_hasher *h, const void *data, size_t len);

/* The digest of what was fed so far and of `more` behind it, which does not count as fed;
 * feeding may go on. */
void ab_hasher_hex(const struct ab_hasher *h, const void *more, size_t len,
                   char hex[AB_SHA256_HEX]);
void ab_hasher_free(struct ab_hasher *h);

#endif
