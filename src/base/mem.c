#include "base/ab.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ab_bug(const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "agentbox: BUG at %s:%d: ", file, line);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    abort();
}

void *ab_xcalloc(size_t n, size_t size)
{
    void *p = calloc(n, size);
    if (!p)
        AB_BUG("out of memory (%zu x %zu)", n, size);
    return p;
}

void *ab_xrealloc(void *old, size_t size)
{
    void *p = realloc(old, size ? size : 1);
    if (!p)
        AB_BUG("out of memory (%zu)", size);
    return p;
}

char *ab_xstrndup(const char *s, size_t n)
{
    char *p = ab_xcalloc(n + 1, 1);
    if (n)
        memcpy(p, s, n);
    return p;
}
