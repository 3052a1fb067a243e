#include "rt/watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS = 10 };

struct ab_watchdog {
    struct ab_watchdog_hooks hooks;
    pthread_t watched, thread;
    int stat_fd; /* of the watched thread in /proc; -1: there is none */
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

/* Unknown counts as asleep. */
static bool is_asleep(const struct ab_watchdog *wd)
{
    char text[128]; /* PID (NAME) STATE ...; a name has at most 15 bytes, any */
    ssize_t n = pread(wd->stat_fd, text, sizeof text - 1, 0);
    if (n <= 0)
        return true;
    text[n] = '\0';
    const char *name_end = strrchr(text, ')');
    return !name_end || name_end[1] == '\0' || strchr("SD", name_end[2]);
}

static void *watch(void *arg)
{
    struct ab_watchdog *wd = arg;
    clockid_t clock;
    if (pthread_getcpuclockid(wd->watched, &clock) != 0)
        AB_BUG("no clock for the loop thread");
    unsigned long last = 0;
    unsigned silent_ms = 0, cpu_began = 0, cpu_before = 0;
    bool warned = false;
    while (wait_tick(wd)) {
        unsigned long epoch = atomic_load(&wd->epoch);
        if (epoch != last || epoch % 2 == 0) {
            last = epoch;
            silent_ms = 0;
            cpu_began = cpu_before = epoch % 2 ? cpu_ms(clock) : 0;
            warned = false;
            continue;
        }
        unsigned cpu = cpu_ms(clock);
        silent_ms += is_asleep(wd) ? TICK_MS : cpu - cpu_before;
        cpu_before = cpu;
        if (cpu - cpu_began >= wd->hooks.stuck_ms)
            wd->hooks.stuck(wd->hooks.arg);
        if (!warned && silent_ms >= wd->hooks.warn_ms) {
            warned = true;
            atomic_store(&wd->warn, true);
        }
        pthread_kill(wd->watched, SIGURG);
    }
    return NULL;
}

static void release(struct ab_watchdog *wd)
{
    if (wd->stat_fd >= 0)
        close(wd->stat_fd);
    pthread_cond_destroy(&wd->wake);
    pthread_mutex_destroy(&wd->lock);
    free(wd);
}

struct ab_watchdog *ab_watchdog_new(const struct ab_watchdog_hooks *hooks,
                                    struct ab_err *err)
{
    struct ab_watchdog *wd = ab_xcalloc(1, sizeof *wd);
    wd->hooks = *hooks;
    wd->watched = pthread_self();
    wd->stat_fd = open("/proc/thread-self/stat", O_RDONLY | O_CLOEXEC);
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
    release(wd);
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
    release(wd);
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
