/* Driving a command, with plain processes: input, caps, deadlines, who waits. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "rt/child.h"
#include "rt/plain.h"

static struct ab_loop loop;
static struct ab_plain_home *home;

static int open_loop(void **state)
{
    struct ab_err err;
    (void)state;
    home = ab_plain_home_new();
    return ab_loop_init(&loop, &err);
}

/* Until whatever was started is reaped. */
static void close_home(void)
{
    struct ab_op *op = ab_plain_home_close(&loop, home);
    if (!op)
        return;
    while (op->state == AB_OP_PENDING)
        uv_run(&loop.uv, UV_RUN_ONCE);
    assert_int_equal(op->state, AB_OP_DONE);
    ab_op_unref(op);
}

static int close_loop(void **state)
{
    (void)state;
    close_home();
    ab_loop_fini(&loop);
    return 0;
}

static struct ab_proc *start(const char *text, struct ab_proc_opts opts)
{
    struct ab_err err;
    struct ab_child child;
    char *argv[] = {(char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
                    (char *)(uintptr_t)text, NULL};
    char *envp[] = {(char *)(uintptr_t) "PATH=/usr/bin:/bin", NULL};
    struct ab_plain cmd = {.argv = argv,
                           .envp = envp,
                           .cwd = "/",
                           .home = home,
                           .stdin_pipe = opts.input || opts.hold_stdin};
    assert_int_equal(ab_plain_spawn(&loop, &cmd, &child, &err), 0);
    return ab_proc_start(&loop, &child, &opts);
}

static char *copy(size_t len)
{
    char *data = ab_xcalloc(len, 1);
    memset(data, 'x', len);
    return data;
}

/* Runs the loop until the operation is over. */
static void wait_for(struct ab_proc *p, int events, uint64_t timeout_ms)
{
    struct ab_op *op = ab_proc_wait(p, events, timeout_ms, false);
    while (op->state == AB_OP_PENDING)
        uv_run(&loop.uv, UV_RUN_ONCE);
    ab_op_unref(op);
}

static void test_output_and_status(void **state)
{
    (void)state;
    struct ab_proc *p = start("echo out; echo err >&2; exit 3",
                              (struct ab_proc_opts){.max_output_bytes = 100});
    wait_for(p, AB_PROC_EXIT, 0);
    assert_int_equal(ab_proc_result(p)->code, 3);
    assert_string_equal(ab_proc_stream(p, false)->buf.data, "out\n");
    assert_string_equal(ab_proc_stream(p, true)->buf.data, "err\n");
    ab_proc_unref(p);
}

static void test_the_head_is_kept_and_the_rest_counted(void **state)
{
    (void)state;
    struct ab_proc *p =
        start("head -c 1000000 /dev/zero", (struct ab_proc_opts){.max_output_bytes = 10});
    wait_for(p, AB_PROC_EXIT, 0);
    assert_int_equal(ab_proc_stream(p, false)->buf.len, 10);
    assert_int_equal(ab_proc_stream(p, false)->dropped, 999990);
    ab_proc_unref(p);
}

#ifdef AB_FAULTS
/* No descriptor is left for /dev/null: a reader that gave up would end the command. */
static void test_a_flood_without_descriptors(void **state)
{
    (void)state;
    ab_fault_arm("child.null:0:24");
    struct ab_proc *p = start("head -c 1000000 /dev/zero; echo $? >&2",
                              (struct ab_proc_opts){.max_output_bytes = 10});
    wait_for(p, AB_PROC_EXIT, 0);
    ab_fault_arm(NULL);
    assert_int_equal(ab_proc_stream(p, false)->dropped, 999990);
    assert_memory_equal(ab_proc_stream(p, true)->buf.data, "0\n", 2);
    ab_proc_unref(p);
}
#endif

/* A reader that waits for a text is woken by that, by a full buffer and by the end, not
 * by what comes before: the program waits until it is told that nobody was. */
static void test_waiting_for_a_text(void **state)
{
    (void)state;
    struct ab_proc *p =
        start("printf 'a-en'; read x; printf 'd-b'; read x; head -c 200 /dev/zero",
              (struct ab_proc_opts){
                  .max_output_bytes = 100, .hold_stdin = true, .interactive = true});
    struct ab_op *op = ab_proc_wait_text(p, "end", 3, 0);
    wait_for(p, AB_PROC_DATA, 0);
    assert_int_equal(op->state, AB_OP_PENDING);
    assert_int_equal(ab_proc_write(p, "\n", 1), 0);
    while (op->state == AB_OP_PENDING)
        uv_run(&loop.uv, UV_RUN_ONCE);
    assert_memory_equal(ab_proc_stream(p, false)->buf.data, "a-end", 5);
    ab_op_unref(op);
    op = ab_proc_wait_text(p, "never", 5, 0);
    assert_int_equal(ab_proc_write(p, "\n", 1), 0);
    while (op->state == AB_OP_PENDING)
        uv_run(&loop.uv, UV_RUN_ONCE);
    assert_int_equal(ab_proc_stream(p, false)->buf.len, 100);
    ab_op_unref(op);
    ab_proc_consume(p, false, 100);
    op = ab_proc_wait_text(p, "\0end", 4, 0);
    while (op->state == AB_OP_PENDING)
        uv_run(&loop.uv, UV_RUN_ONCE);
    assert_true(ab_proc_events(p) & (AB_PROC_DATA | AB_PROC_EXIT));
    ab_op_unref(op);
    ab_proc_unref(p);
}

static void test_large_input(void **state)
{
    (void)state;
    size_t len = 3 << 20;
    struct ab_proc *p = start("wc -c", (struct ab_proc_opts){.max_output_bytes = 100,
                                                             .input = copy(len),
                                                             .input_len = len});
    wait_for(p, AB_PROC_EXIT, 0);
    assert_string_equal(ab_proc_stream(p, false)->buf.data, "3145728\n");
    ab_proc_unref(p);
}

static void test_input_that_nobody_reads(void **state)
{
    (void)state;
    size_t len = 3 << 20;
    struct ab_proc *p = start("exit 0", (struct ab_proc_opts){.max_output_bytes = 100,
                                                              .input = copy(len),
                                                              .input_len = len});
    wait_for(p, AB_PROC_EXIT, 0);
    assert_int_equal(ab_proc_result(p)->code, 0);
    ab_proc_unref(p);
}

static void test_deadline(void **state)
{
    (void)state;
    struct ab_proc *p =
        start("echo early; sleep 1000",
              (struct ab_proc_opts){.max_output_bytes = 100, .timeout_ms = 100});
    wait_for(p, AB_PROC_EXIT, 0);
    assert_true(ab_proc_result(p)->timed_out);
    assert_int_equal(ab_proc_result(p)->signal, 9);
    assert_string_equal(ab_proc_stream(p, false)->buf.data, "early\n");
    ab_proc_unref(p);
}

static void test_a_child_that_holds_the_pipe_is_not_waited_for(void **state)
{
    (void)state;
    struct ab_proc *p =
        start("sleep 5 & echo $!", (struct ab_proc_opts){.max_output_bytes = 100});
    wait_for(p, AB_PROC_EXIT, 4000);
    assert_true(ab_proc_result(p)->over);
    kill(atoi(ab_proc_stream(p, false)->buf.data), SIGKILL);
    ab_proc_unref(p);
}

static void test_a_dialogue(void **state)
{
    (void)state;
    struct ab_proc *p =
        start("cat", (struct ab_proc_opts){
                         .max_output_bytes = 4, .hold_stdin = true, .interactive = true});
    assert_int_equal(ab_proc_write(p, "abcdefgh", 8), 0);
    wait_for(p, AB_PROC_DATA, 0);
    assert_memory_equal(ab_proc_stream(p, false)->buf.data, "abcd", 4);
    ab_proc_consume(p, false, 4);
    wait_for(p, AB_PROC_DATA, 0);
    assert_memory_equal(ab_proc_stream(p, false)->buf.data, "efgh", 4);
    wait_for(p, AB_PROC_EXIT, 20); /* nothing ends by itself */
    assert_false(ab_proc_result(p)->over);
    ab_proc_close_stdin(p);
    wait_for(p, AB_PROC_EXIT, 0);
    assert_int_equal(ab_proc_write(p, "x", 1), -1);
    ab_proc_unref(p);
}

static void test_giving_up_kills(void **state)
{
    (void)state;
    struct ab_proc *p = start("sleep 1000", (struct ab_proc_opts){.max_output_bytes = 4});
    struct ab_op *op = ab_proc_wait(p, AB_PROC_EXIT, 0, true);
    ab_op_cancel(op);
    ab_op_unref(op);
    wait_for(p, AB_PROC_EXIT, 0);
    assert_true(ab_proc_result(p)->killed);
    ab_proc_unref(p);
}

static void test_the_last_holder_kills(void **state)
{
    (void)state;
    ab_proc_unref(start("sleep 1000", (struct ab_proc_opts){.max_output_bytes = 4}));
    uv_run(&loop.uv, UV_RUN_DEFAULT); /* ends only when the process did */
}

static void test_a_closed_home_has_no_process_left(void **state)
{
    (void)state;
    struct ab_proc *lasting = start("exec sleep 1000", (struct ab_proc_opts){0});
    struct ab_proc *other = start("sleep 1000 & sleep 1000", (struct ab_proc_opts){0});
    ab_proc_unref(other); /* given up, and not yet dead */
    close_home();
    home = ab_plain_home_new();
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    ab_proc_unref(lasting);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_loop, close_loop)
    const struct CMUnitTest tests[] = {
        TEST(test_output_and_status),
        TEST(test_the_head_is_kept_and_the_rest_counted),
#ifdef AB_FAULTS
        TEST(test_a_flood_without_descriptors),
#endif
        TEST(test_waiting_for_a_text),
        TEST(test_large_input),
        TEST(test_input_that_nobody_reads),
        TEST(test_a_closed_home_has_no_process_left),
        TEST(test_deadline),
        TEST(test_a_child_that_holds_the_pipe_is_not_waited_for),
        TEST(test_a_dialogue),
        TEST(test_giving_up_kills),
        TEST(test_the_last_holder_kills),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
