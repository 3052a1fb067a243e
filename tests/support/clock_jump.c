/* clock_jump.c - preloaded: a time of day that is a year earlier or later every few times
 * somebody asks. The clocks that only run forward are left alone. */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

#define STEP_S (400L * 86400)

static long step(void)
{
    static long asked;
    return (asked++ / 3 % 3 - 1) * STEP_S;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int rc = real(id, t);
    if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)
        t->tv_sec += step();
    return rc;
}
