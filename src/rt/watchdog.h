/* watchdog.h - a thread that notices when the loop thread stays too long in one place.
 *
 * The loop thread brackets each piece of work with enter and leave. When a piece lasts
 * for more than one tick (10 ms) the thread signals the loop thread (SIGURG), and `slice`
 * runs there, in the signal handler, on every further tick: it may only do what is safe
 * in one. Whoever is interrupted shows that it can be by calling ab_watchdog_alive.
 * Without a sign of life for warn_ms, `warn` runs in the handler once; after stuck_ms,
 * `stuck` runs on the watchdog's thread and is expected to end the process.
 *
 * warn_ms is time in which the thread computes or sleeps, not in which it waits for a CPU
 * or everything is stopped: a crowded machine is nobody's fault. stuck_ms is CPU time: a
 * call that sleeps may yet return.
 *
 * One watchdog per thread that runs a loop; several in one process are fine.
 */
#ifndef AB_RT_WATCHDOG_H
#define AB_RT_WATCHDOG_H

#include "base/err.h"

struct ab_watchdog_hooks {
    void (*slice)(void *arg);
    void (*warn)(void *arg);
    void (*stuck)(void *arg);
    void *arg; /* borrowed */
    unsigned warn_ms, stuck_ms;
};

struct ab_watchdog;

/* Starts watching the calling thread; NULL and *err when there is no thread to be had.
 * Gives. */
struct ab_watchdog *ab_watchdog_new(const struct ab_watchdog_hooks *hooks,
                                    struct ab_err *err);

/* Stops and frees; from the watched thread. NULL is fine. */
void ab_watchdog_free(struct ab_watchdog *wd);

void ab_watchdog_enter(struct ab_watchdog *wd);
void ab_watchdog_leave(struct ab_watchdog *wd);
void ab_watchdog_alive(struct ab_watchdog *wd);

#endif
