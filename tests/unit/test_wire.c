/* The protocol between engine and init: what is put comes out, and nothing malformed
 * passes. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/wire.h"

static const struct ab_wire_create create = {
    .flags = AB_WIRE_HOST_IMAGE | AB_WIRE_CGROUP2,
    .slot = 7,
    .layers = 2,
    .v1 = 3,
    .disk_bytes = 1ull << 40,
    .inodes = 5,
    .shm_bytes = 6,
    .memory_bytes = 7,
    .pids = 8,
    .nofile = 9,
    .image = "/an/image",
    .hostname = "sandbox",
    .workspace = "/workspace",
    .cgroup = "s1",
};

static void test_create_comes_back(void **state)
{
    uint8_t buf[512];
    struct ab_wire_create m;
    (void)state;
    long n = ab_wire_put_create(buf, sizeof buf, &create);
    assert_true(n > 0);
    assert_int_equal(ab_wire_type(buf, (size_t)n), AB_WIRE_CREATE);
    assert_int_equal(ab_wire_get_create(buf, (size_t)n, &m), 0);
    assert_int_equal(m.disk_bytes, create.disk_bytes);
    assert_int_equal(m.v1, 3);
    assert_string_equal(m.image, "/an/image");
    assert_string_equal(m.cgroup, "s1");
}

static void test_every_cut_and_every_addition_is_refused(void **state)
{
    uint8_t buf[512];
    struct ab_wire_create m;
    (void)state;
    long n = ab_wire_put_create(buf, sizeof buf, &create);
    for (long i = 0; i < n; i++)
        assert_int_equal(ab_wire_get_create(buf, (size_t)i, &m), -1);
    buf[n] = 0;
    assert_int_equal(ab_wire_get_create(buf, (size_t)n + 1, &m), -1);
    for (long room = 0; room < n; room++)
        assert_int_equal(ab_wire_put_create(buf, (size_t)room, &create), -1);
}

static void test_a_zero_inside_a_text_is_refused(void **state)
{
    uint8_t buf[512];
    struct ab_wire_failed m, put = {.errnum = 2, .step = "open the image"};
    (void)state;
    long n = ab_wire_put_failed(buf, sizeof buf, &put);
    assert_int_equal(ab_wire_get_failed(buf, (size_t)n, &m), 0);
    assert_string_equal(m.step, "open the image");
    buf[n - 3] = 0;
    assert_int_equal(ab_wire_get_failed(buf, (size_t)n, &m), -1);
}

static void test_exec_counts_its_strings(void **state)
{
    uint8_t buf[512];
    static const char strings[] = "a\0b\0K=V";
    struct ab_wire_exec m, put = {.argc = 2,
                                  .envc = 1,
                                  .cwd = "/",
                                  .strings = strings,
                                  .strings_len = sizeof strings};
    (void)state;
    long n = ab_wire_put_exec(buf, sizeof buf, &put);
    assert_int_equal(ab_wire_get_exec(buf, (size_t)n, &m), 0);
    assert_string_equal(m.strings + 2, "b");
    put.envc = 2;
    n = ab_wire_put_exec(buf, sizeof buf, &put);
    assert_int_equal(ab_wire_get_exec(buf, (size_t)n, &m), -1);
    put.argc = 0;
    put.envc = 3;
    n = ab_wire_put_exec(buf, sizeof buf, &put);
    assert_int_equal(ab_wire_get_exec(buf, (size_t)n, &m), -1);
}

static void test_exit_comes_back(void **state)
{
    uint8_t buf[128];
    struct ab_wire_exit m, put = {.flags = AB_WIRE_KILLED,
                                  .code = -1,
                                  .signal = 9,
                                  .user_us = 1,
                                  .system_us = 2,
                                  .max_rss_bytes = 1ull << 33,
                                  .wall_us = 4};
    (void)state;
    long n = ab_wire_put_exit(buf, sizeof buf, &put);
    assert_int_equal(ab_wire_get_exit(buf, (size_t)n, &m), 0);
    assert_memory_equal(&m, &put, sizeof m);
}

static void test_descriptors_travel(void **state)
{
    int pair[2], fds[AB_WIRE_FDS], nfds, pipes[2];
    static uint8_t buf[AB_WIRE_MAX];
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(pipe(pipes), 0);
    long n = ab_wire_put_bare(buf, sizeof buf, AB_WIRE_READY);
    assert_int_equal(ab_wire_send(pair[0], buf, (size_t)n, pipes, 2, 0), 0);
    assert_int_equal(ab_wire_recv(pair[1], buf, fds, &nfds, 0), n);
    assert_int_equal(nfds, 2);
    assert_int_equal(fcntl(fds[0], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(write(fds[1], "x", 1), 1);
    assert_int_equal(read(pipes[0], buf, 1), 1);
    ab_wire_close_fds(fds, nfds);
    assert_int_equal(ab_wire_recv(pair[1], buf, fds, &nfds, MSG_DONTWAIT), -EAGAIN);
    close(pair[0]);
    assert_int_equal(ab_wire_recv(pair[1], buf, fds, &nfds, 0), 0);
    close(pair[1]);
    ab_wire_close_fds(pipes, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create_comes_back),
        cmocka_unit_test(test_every_cut_and_every_addition_is_refused),
        cmocka_unit_test(test_a_zero_inside_a_text_is_refused),
        cmocka_unit_test(test_exec_counts_its_strings),
        cmocka_unit_test(test_exit_comes_back),
        cmocka_unit_test(test_descriptors_travel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
