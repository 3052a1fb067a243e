/* test_op.c - operations: two owners, cancel at any moment, nothing left behind. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "rt/poll.h"
#include "rt/signal.h"
#include "rt/timer.h"
#include "rt/work.h"

static struct ab_loop loop;

static int setup(void **state)
{
    struct ab_err err;
    (void)state;
    return ab_loop_init(&loop, &err);
}

static int teardown(void **state)
{
    (void)state;
    return ab_loop_fini(&loop); /* a test that leaves an op behind fails */
}

static void on_done(struct ab_op *op, void *arg)
{
    (void)op;
    ++*(int *)arg;
}

/* Runs the loop until it is idle; gives how often on_done was called. */
static int run(struct ab_op *op)
{
    int called = 0;
    op->on_done = on_done;
    op->arg = &called;
    uv_run(&loop.uv, UV_RUN_DEFAULT);
    return called;
}

static void test_timer(void **state)
{
    (void)state;
    struct ab_op *op = ab_timer_start(&loop, 1);
    assert_int_equal(ab_loop_count(&loop), 1);
    assert_int_equal(run(op), 1);
    assert_int_equal(op->state, AB_OP_DONE);
    ab_op_unref(op);
    assert_int_equal(ab_loop_count(&loop), 0);
}

static void test_cancelled_is_never_done(void **state)
{
    (void)state;
    struct ab_op *op = ab_timer_start(&loop, 1000000);
    int called = 0;
    op->on_done = on_done;
    op->arg = &called;
    ab_op_cancel(op);
    ab_op_cancel(op);
    ab_op_unref(op);
    uv_run(&loop.uv, UV_RUN_DEFAULT);
    assert_int_equal(called, 0);
    assert_int_equal(ab_loop_count(&loop), 0);
}

static void test_poll(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    struct ab_op *op = ab_poll_start(&loop, fds[0], UV_READABLE);
    assert_int_equal(write(fds[1], "x", 1), 1);
    assert_int_equal(run(op), 1);
    assert_int_equal(ab_poll_events(op), UV_READABLE);
    assert_null(op->err);
    ab_op_unref(op);

    /* Level-triggered: what was not read is there at the next wait. Then cancel. */
    op = ab_poll_start(&loop, fds[0], UV_READABLE);
    assert_int_equal(run(op), 1);
    ab_op_unref(op);
    op = ab_poll_start(&loop, fds[0], UV_READABLE);
    ab_op_cancel(op);
    ab_op_unref(op);
    uv_run(&loop.uv, UV_RUN_DEFAULT);
    close(fds[0]);
    close(fds[1]);
}

static void test_poll_of_a_file_is_an_error_from_the_loop(void **state)
{
    (void)state;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct ab_op *op = ab_poll_start(&loop, fd, UV_READABLE);
    assert_int_equal(op->state, AB_OP_PENDING);
    assert_int_equal(run(op), 1);
    assert_non_null(op->err);
    ab_op_unref(op);
    close(fd);
}

struct job {
    int ran, *freed;
};

static void job_run(void *arg)
{
    ((struct job *)arg)->ran++;
}

static void job_free(void *arg)
{
    struct job *job = arg;
    ++*job->freed;
    free(job);
}

static void test_work(void **state)
{
    (void)state;
    int freed = 0;
    struct job *job = ab_xcalloc(1, sizeof *job);
    job->freed = &freed;
    struct ab_work work = {.run = job_run, .free = job_free, .job = job};
    struct ab_op *op = ab_work_start(&loop, &work);
    assert_int_equal(run(op), 1);
    assert_ptr_equal(ab_work_job(op), job);
    assert_int_equal(job->ran, 1);
    ab_op_unref(op);
    assert_int_equal(freed, 1);

    job = ab_xcalloc(1, sizeof *job);
    job->freed = &freed;
    work.job = job;
    op = ab_work_start(&loop, &work);
    ab_op_cancel(op);
    ab_op_unref(op);
    assert_int_equal(freed, 1); /* the pool may be running it */
    uv_run(&loop.uv, UV_RUN_DEFAULT);
    assert_int_equal(freed, 2);
}

static void test_signal(void **state)
{
    (void)state;
    struct ab_op *op = ab_signal_start(&loop, SIGUSR2);
    assert_true(ab_signal_awaited(&loop, SIGUSR2));
    assert_false(ab_signal_awaited(&loop, SIGUSR1));
    raise(SIGUSR2);
    assert_int_equal(run(op), 1);
    assert_false(ab_signal_awaited(&loop, SIGUSR2));
    ab_op_unref(op);
}

static void test_sweep_takes_what_waiters_forgot(void **state)
{
    (void)state;
    struct ab_loop own;
    struct ab_err err;
    int freed = 0;
    assert_int_equal(ab_loop_init(&own, &err), 0);
    ab_timer_start(&own, 1000000);
    struct job *job = ab_xcalloc(1, sizeof *job);
    job->freed = &freed;
    struct ab_work work = {.run = job_run, .free = job_free, .job = job};
    ab_work_start(&own, &work);
    assert_int_equal(ab_loop_fini(&own), 2);
    assert_int_equal(freed, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_timer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cancelled_is_never_done, setup, teardown),
        cmocka_unit_test_setup_teardown(test_poll, setup, teardown),
        cmocka_unit_test_setup_teardown(test_poll_of_a_file_is_an_error_from_the_loop,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_work, setup, teardown),
        cmocka_unit_test_setup_teardown(test_signal, setup, teardown),
        cmocka_unit_test(test_sweep_takes_what_waiters_forgot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
