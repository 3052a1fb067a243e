#include "rt/watchdog.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TICK_MS = 10 };

struct ab_watchdog {
    struct ab_watchdog_hooks hooks;
    pthread_t watched, thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool quit; /* under lock */
    atomic_ulong
        epoch;        /* odd while work is in progress; changes with every sign of life */
    atomic_bool warn; /* asks the handler for `warn` */
    struct ab_watchdog *outer; /* owns nothing; the one of this thread before us */
};

/* The signal handler's target. Per thread, so that several engines can live in one
 * process. */
static _Thread_local struct ab_watchdog *volatile target;

static void on_signal(int signum)
{
    (void)signum;
    int saved = errno;
    struct ab_watchdog *wd = target;
    if (wd) {
        if (atomic_exchange(&wd->warn, false))
            wd->hooks.warn(wd->hooks.arg);
        wd->hooks.slice(wd->hooks.arg);
    }
    errno = saved;
}

/* False when it is time to stop. */
static bool wait_tick(struct ab_watchdog *wd)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += TICK_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    pthread_mutex_lock(&wd->lock);
    int rc = 0;
    while (!wd->quit && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&wd->wake, &wd->lock, &until);
    bool go_on = !wd->quit;
    pthread_mutex_unlock(&wd->lock);
    return go_on;
}

/* CPU time of the watched thread: on a crowded machine, or in a call that sleeps, time
 * passes without work. */
static unsigned cpu_ms(clockid_t clock)
{
    struct timespec t;
    if (clock_gettime(clock, &t) < 0)
        return 0;
    return (unsigned)(t.tv_sec * 1000 + t.tv_nsec / 1000000);
}

static void *watch(void *arg)
{
    struct ab_watchdog *wd = arg;
    clockid_t clock;
    if (pthread_getcpuclockid(wd->watched, &clock) != 0)
        AB_BUG("no clock for the loop thread");
    unsigned long last = 0;
    unsigned silent_ms = 0, cpu_before = 0;
    while (wait_tick(wd)) {
        unsigned long epoch = atomic_load(&wd->epoch);
        if (epoch != last || epoch % 2 == 0) {
            last = epoch;
            silent_ms = 0;
            continue;
        }
        if (silent_ms == 0)
            cpu_before = cpu_ms(clock);
        silent_ms += TICK_MS;
        if (cpu_ms(clock) - cpu_before >= wd->hooks.stuck_ms)
            wd->hooks.stuck(wd->hooks.arg);
        if (silent_ms / TICK_MS == wd->hooks.warn_ms / TICK_MS)
            atomic_store(&wd->warn, true);
        pthread_kill(wd->watched, SIGURG);
    }
    return NULL;
}

struct ab_watchdog *ab_watchdog_new(const struct ab_watchdog_hooks *hooks,
                                    struct ab_err *err)
{
    struct ab_watchdog *wd = ab_xcalloc(1, sizeof *wd);
    wd->hooks = *hooks;
    wd->watched = pthread_self();
    pthread_mutex_init(&wd->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&wd->wake, &attr);
    pthread_condattr_destroy(&attr);

    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGURG, &sa, NULL);
    wd->outer = target;
    target = wd;

    /* The thread takes no signals: they belong to the loop thread. */
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(&wd->thread, NULL, watch, wd);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc == 0)
        return wd;
    ab_err_sys(err, rc, "watchdog thread");
    target = wd->outer;
    free(wd);
    return NULL;
}

void ab_watchdog_free(struct ab_watchdog *wd)
{
    if (!wd)
        return;
    pthread_mutex_lock(&wd->lock);
    wd->quit = true;
    pthread_cond_signal(&wd->wake);
    pthread_mutex_unlock(&wd->lock);
    pthread_join(wd->thread, NULL);
    target = wd->outer;
    pthread_cond_destroy(&wd->wake);
    pthread_mutex_destroy(&wd->lock);
    free(wd);
}

static void step(struct ab_watchdog *wd, unsigned long by)
{
    /* The watched thread is the only writer: no locked instruction is needed. */
    unsigned long epoch = atomic_load_explicit(&wd->epoch, memory_order_relaxed);
    atomic_store_explicit(&wd->epoch, epoch + by, memory_order_relaxed);
}

void ab_watchdog_enter(struct ab_watchdog *wd)
{
    step(wd, 1);
}

void ab_watchdog_leave(struct ab_watchdog *wd)
{
    step(wd, 1);
}

void ab_watchdog_alive(struct ab_watchdog *wd)
{
    step(wd, 2);
}
