/* test_watchdog.c - the watchdog signals whoever stays, and nobody else. Waits for
 * events, never for a time; the time-outs only bound a failure. */
#include <pthread.h>
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
        cmocka_unit_test(test_a_sign_of_life_resets),
        cmocka_unit_test(test_two_engines_in_one_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
