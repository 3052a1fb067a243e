/* test_watchdog.c - the watchdog signals whoever stays, and nobody else. Waits for
 * events, never for a time; the time-outs only bound a failure. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "rt/watchdog.h"

enum { BOUND_S = 20 };

struct seen {
    atomic_int slices, warned, stuck;
    pthread_t loop_thread;
    atomic_bool wrong_thread;
};

static void on_slice(void *arg)
{
    struct seen *seen = arg;
    atomic_fetch_add(&seen->slices, 1);
    if (!pthread_equal(pthread_self(), seen->loop_thread))
        atomic_store(&seen->wrong_thread, true);
}

static void on_warn(void *arg)
{
    atomic_fetch_add(&((struct seen *)arg)->warned, 1);
}

static void on_stuck(void *arg)
{
    atomic_fetch_add(&((struct seen *)arg)->stuck, 1);
}

static struct ab_watchdog *start(struct seen *seen, unsigned warn_ms, unsigned stuck_ms)
{
    struct ab_err err;
    seen->loop_thread = pthread_self();
    const struct ab_watchdog_hooks hooks = {
        .slice = on_slice,
        .warn = on_warn,
        .stuck = on_stuck,
        .arg = seen,
        .warn_ms = warn_ms,
        .stuck_ms = stuck_ms,
    };
    struct ab_watchdog *wd = ab_watchdog_new(&hooks, &err);
    assert_non_null(wd);
    return wd;
}

/* Spins until *n reaches what; false when it takes for ever. */
static bool spin_until(atomic_int *n, int what)
{
    time_t end = time(NULL) + BOUND_S;
    while (atomic_load(n) < what)
        if (time(NULL) > end)
            return false;
    return true;
}

static void test_long_work_is_signalled(void **state)
{
    struct seen seen = {0};
    (void)state;
    struct ab_watchdog *wd = start(&seen, 1000000, 1000000);
    ab_watchdog_enter(wd);
    assert_true(spin_until(&seen.slices, 3));
    ab_watchdog_leave(wd);
    ab_watchdog_free(wd);
    assert_false(atomic_load(&seen.wrong_thread));
    assert_int_equal(atomic_load(&seen.stuck), 0);
}

static void test_silence_warns_then_is_stuck(void **state)
{
    struct seen seen = {0};
    (void)state;
    struct ab_watchdog *wd = start(&seen, 50, 100);
    ab_watchdog_enter(wd);
    assert_true(spin_until(&seen.stuck, 1));
    ab_watchdog_leave(wd);
    ab_watchdog_free(wd);
    assert_int_equal(atomic_load(&seen.warned), 1);
}

static atomic_bool crowd_ends;

static void *crowd(void *arg)
{
    while (!atomic_load(&crowd_ends))
        ;
    return arg;
}

static long own_cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Eleven threads on one CPU: waiting for it is no silence. */
static void test_a_crowded_cpu_is_no_silence(void **state)
{
    struct seen seen = {0};
    pthread_t others[10];
    cpu_set_t before, one;
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &before))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    atomic_store(&crowd_ends, false);
    for (int i = 0; i < 10; i++)
        assert_int_equal(pthread_create(&others[i], NULL, crowd, NULL), 0);
    struct ab_watchdog *wd = start(&seen, 300, 1000000);
    ab_watchdog_enter(wd);
    for (long began = own_cpu_ms(); own_cpu_ms() - began < 100;)
        ;
    ab_watchdog_leave(wd);
    ab_watchdog_free(wd);
    atomic_store(&crowd_ends, true);
    for (int i = 0; i < 10; i++)
        pthread_join(others[i], NULL);
    sched_setaffinity(0, sizeof before, &before);
    assert_true(atomic_load(&seen.slices) > 0);
    assert_int_equal(atomic_load(&seen.warned), 0);
}

static void test_sleep_is_silence(void **state)
{
    struct seen seen = {0};
    (void)state;
    struct ab_watchdog *wd = start(&seen, 50, 1000000);
    ab_watchdog_enter(wd);
    time_t end = time(NULL) + BOUND_S;
    while (atomic_load(&seen.warned) == 0 && time(NULL) < end)
        usleep(100000);
    ab_watchdog_leave(wd);
    ab_watchdog_free(wd);
    assert_int_equal(atomic_load(&seen.warned), 1);
}

static void test_a_sign_of_life_resets(void **state)
{
    struct seen seen = {0};
    (void)state;
    struct ab_watchdog *wd = start(&seen, 500, 1000000);
    ab_watchdog_enter(wd);
    for (int i = 0; i < 60; i++) {
        int now = atomic_load(&seen.slices);
        assert_true(spin_until(&seen.slices, now + 1));
        ab_watchdog_alive(wd);
    }
    ab_watchdog_leave(wd);
    ab_watchdog_free(wd);
    assert_int_equal(atomic_load(&seen.warned), 0);
}

static void *engine(void *arg)
{
    struct seen *seen = arg;
    struct ab_watchdog *wd = start(seen, 1000000, 1000000);
    ab_watchdog_enter(wd);
    bool ok = spin_until(&seen->slices, 5);
    ab_watchdog_leave(wd);
    ab_watchdog_free(wd);
    return ok ? seen : NULL;
}

static void test_two_engines_in_one_process(void **state)
{
    struct seen seen[2] = {0};
    pthread_t threads[2];
    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, engine, &seen[i]), 0);
    for (int i = 0; i < 2; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_non_null(result);
        assert_false(atomic_load(&seen[i].wrong_thread));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_work_is_signalled),
        cmocka_unit_test(test_silence_warns_then_is_stuck),
        cmocka_unit_test(test_a_crowded_cpu_is_no_silence),
        cmocka_unit_test(test_sleep_is_silence),
        cmocka_unit_test(test_a_sign_of_life_resets),
        cmocka_unit_test(test_two_engines_in_one_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
