/* ab.h - attributes and the two ways to die. Every .c file includes this first. */
#ifndef AB_BASE_AB_H
#define AB_BASE_AB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AB_MUST_CHECK   __attribute__((warn_unused_result))
#define AB_NORETURN     __attribute__((noreturn, cold))
#define AB_PRINTF(f, v) __attribute__((format(printf, f, v)))

#define AB_CONTAINER(ptr, type, member) \
    ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* A broken invariant: our bug, never the user's. Aborts in every build type. */
#define AB_BUG(...) ab_bug(__FILE__, __LINE__, __VA_ARGS__)
AB_NORETURN AB_PRINTF(3, 4) void ab_bug(const char *file, int line, const char *fmt, ...);

/* Never returns NULL; out of memory in C aborts. Lua's heap has its own ceiling. */
void *ab_xcalloc(size_t n, size_t size);
void *ab_xrealloc(void *old, size_t size);
char *ab_xstrndup(const char *s, size_t n); /* gives; always NUL-terminated */

#ifdef __cplusplus
}
#endif

#endif
