/* fuzz_hello.c - what a client says first. Whatever is decided must be decided by the
 * bytes alone: with fewer of them it may only be that more are needed, and what comes
 * after the message changes nothing. */
#include <stdlib.h>
#include <string.h>

#include "base/hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In memory of its own size, so that one byte too many is noticed. */
static enum ab_hello read_of(const uint8_t *data, size_t len, char name[256])
{
    uint8_t *own = ab_xcalloc(1, len ? len : 1);
    memcpy(own, data, len);
    memset(name, 'x', 256);
    enum ab_hello got = ab_hello_read(own, len, name);
    free(own);
    if (got == AB_HELLO_NAMED && (!name[0] || strnlen(name, 256) == 256))
        AB_BUG("named without a name");
    for (const char *p = name; got == AB_HELLO_NAMED && *p; p++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789.-_", *p))
            AB_BUG("a byte that no name has");
    return got;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char name[256], other[256];
    enum ab_hello all = read_of(data, size, name);
    size_t steps = size < 64 ? size : 64;
    for (size_t i = 0; i < steps; i++) {
        enum ab_hello got = read_of(data, size * i / steps, other);
        if (got == AB_HELLO_MORE)
            continue;
        if (got != all || (got == AB_HELLO_NAMED && strcmp(name, other) != 0))
            AB_BUG("decided otherwise with more bytes");
    }
    return 0;
}
