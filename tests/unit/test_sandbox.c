/* The native sandbox without Lua and without a loop: the zygote, one sandbox, one
 * command, files, the end. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "sandbox/file.h"
#include "sandbox/sandbox.h"
#include "sandbox/zygote.h"

static void wait_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 20000), 1);
}

static struct ab_sandbox *create(struct ab_layer *layer)
{
    struct ab_err err = {0};
    struct ab_sandbox *sb;
    struct ab_sandbox_spec spec = {
        .image = "host",
        .hostname = "sandbox",
        .workspace = "/workspace",
        .layer = layer,
        .limits = {.memory_bytes = 256 << 20, .pids = 100, .cpus = 1}};
    int rc = ab_sandbox_begin(&spec, &sb, &err);
    while (rc >= 0) {
        wait_readable(ab_sandbox_fd(sb));
        rc = ab_sandbox_step(sb, &err);
        if (rc == 0)
            return sb;
    }
    fail_msg("%s", err.msg);
    return NULL;
}

static int run(struct ab_sandbox *sb, const char *text, char *out, size_t room)
{
    struct ab_err err = {0};
    struct ab_child child;
    struct ab_wire_exit m;
    uint8_t buf[AB_WIRE_MAX];
    int fds[AB_WIRE_FDS], nfds;
    char *argv[] = {(char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
                    (char *)(uintptr_t)text};
    char *envp[] = {(char *)(uintptr_t) "PATH=/usr/bin:/bin"};
    struct ab_command cmd = {
        .argv = argv, .argc = 3, .envp = envp, .envc = 1, .cwd = "/"};
    assert_int_equal(ab_sandbox_exec(sb, &cmd, &child, &err), 0);
    wait_readable(child.ctl);
    long n = ab_wire_recv(child.ctl, buf, fds, &nfds, 0);
    assert_int_equal(ab_wire_get_exit(buf, (size_t)n, &m), 0);
    ssize_t got = read(child.out, out, room - 1);
    out[got > 0 ? got : 0] = 0;
    close(child.out);
    close(child.err);
    close(child.ctl);
    ab_tally_leave(child.tally, child.leaf, AB_LEAF_OVER);
    return m.code;
}

static void finish(struct ab_sandbox *sb)
{
    ab_sandbox_kill(sb);
    while (ab_sandbox_reap(sb, false) == 1)
        wait_readable(ab_sandbox_fd(sb));
    ab_sandbox_free(sb);
}

static void test_a_command(void **state)
{
    char out[64];
    (void)state;
    struct ab_sandbox *sb = create(NULL);
    assert_int_equal(run(sb, "echo hi; exit 5", out, sizeof out), 5);
    assert_string_equal(out, "hi\n");
    finish(sb);
}

static void test_files_and_layers(void **state)
{
    char out[64];
    struct ab_err err = {0};
    struct ab_buf buf;
    (void)state;
    struct ab_sandbox *sb = create(NULL);
    struct ab_tree t = {.root = sb->files, .ids = sb->ids};
    struct ab_file_write how = {.mode = 0600, .uid = -1, .gid = -1};
    assert_int_equal(ab_file_write(&t, "/tmp/a/b", "text", 4, &how, &err), 0);
    assert_int_equal(run(sb, "stat -c %a:%u:%s /tmp/a/b", out, sizeof out), 0);
    assert_string_equal(out, "600:0:4\n");
    ab_sandbox_kill(sb);
    while (ab_sandbox_reap(sb, false) == 1)
        wait_readable(ab_sandbox_fd(sb));
    struct ab_layer *layer = ab_sandbox_take_layer(sb);
    ab_sandbox_free(sb);
    sb = create(layer);
    ab_layer_unref(layer); /* the sandbox on it keeps it */
    t.root = sb->files;
    ab_buf_init(&buf, 100);
    assert_int_equal(ab_file_read(&t, "/tmp/a/b", false, &buf, &err), 0);
    assert_string_equal(buf.data, "text");
    ab_buf_fini(&buf);
    finish(sb);
}

static struct ab_layer *snapshot(struct ab_sandbox *sb)
{
    struct ab_err err = {0};
    int rc = ab_sandbox_snapshot(sb, &err);
    while (rc == 0 && ab_sandbox_snapshot_fd(sb) >= 0) {
        wait_readable(ab_sandbox_snapshot_fd(sb));
        rc = ab_sandbox_snapshot_step(sb, &err);
        rc = rc == 1 ? 0 : rc;
    }
    if (rc < 0)
        fail_msg("%s", err.msg);
    return ab_sandbox_snapshot_take(sb);
}

/* Many snapshots of little upon one of much: the little ones are made one, again and
 * again, and the heavy one stays what it is. */
static void test_a_heavy_layer_is_not_copied_again(void **state)
{
    char out[64], text[64];
    (void)state;
    struct ab_sandbox *sb = create(NULL);
    /* Then each snapshot is a copy, and nothing piles up. */
    bool copies = ab_zygote_facts() & AB_WIRE_NO_SWAP;
    assert_true(copies == ((ab_zygote_facts() & AB_WIRE_OLD_MOUNTS) != 0));
    if (copies) {
        finish(sb);
        skip();
    }
    run(sb,
        "mkdir /d; cd /d; i=0; while [ $i -lt 300 ]; do echo $i >h$i; i=$((i+1)); done",
        out, sizeof out);
    struct ab_layer *heavy = snapshot(sb);
    for (int i = 0; i < 100; i++) {
        snprintf(text, sizeof text, "echo %d >/d/h0; rm -f /d/n*; echo >/d/n%d", i, i);
        assert_int_equal(run(sb, text, out, sizeof out), 0);
        ab_layer_unref(snapshot(sb));
        assert_true(sb->layer->below_count > 0 && sb->layer->below_count < 32);
        assert_ptr_equal(sb->layer->below[sb->layer->below_count - 1], heavy);
    }
    struct ab_sandbox *kid = create(sb->layer);
    run(kid, "cd /d; ls | wc -l; cat h0 h299; ls n*", out, sizeof out);
    assert_string_equal(out, "301\n99\n299\nn99\n");
    finish(kid);
    ab_layer_unref(heavy);
    finish(sb);
}

static void test_many_at_once(void **state)
{
    enum { COUNT = 20 };
    struct ab_err err = {0};
    struct ab_sandbox *all[COUNT];
    struct ab_sandbox_spec spec = {
        .image = "host", .hostname = "sandbox", .workspace = "/workspace"};
    (void)state;
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(ab_sandbox_begin(&spec, &all[i], &err), 0);
    for (int i = COUNT - 1; i >= 0; i--) {
        int rc;
        do {
            wait_readable(ab_sandbox_fd(all[i]));
            rc = ab_sandbox_step(all[i], &err);
        } while (rc == 1);
        assert_int_equal(rc, 0);
    }
    for (int i = 0; i < COUNT; i++)
        ab_sandbox_free(all[i]);
}

static void test_what_cannot_be_made_is_an_error(void **state)
{
    struct ab_err err = {0};
    struct ab_sandbox *sb;
    struct ab_sandbox_spec spec = {
        .image = "/no/such/image", .hostname = "h", .workspace = "/workspace"};
    (void)state;
    assert_int_equal(ab_sandbox_begin(&spec, &sb, &err), 0);
    int rc;
    do {
        wait_readable(ab_sandbox_fd(sb));
        rc = ab_sandbox_step(sb, &err);
    } while (rc == 1);
    assert_int_equal(rc, -1);
    assert_int_equal(err.code, AB_ENOTFOUND);
    ab_sandbox_free(sb);
    spec.image = "relative";
    assert_int_equal(ab_sandbox_begin(&spec, &sb, &err), -1);
    assert_int_equal(err.code, AB_EBADARG);
}

#ifdef AB_FAULTS
static void test_named_failures(void **state)
{
    struct ab_err err = {0};
    struct ab_sandbox *sb;
    struct ab_sandbox_spec spec = {
        .image = "host", .hostname = "h", .workspace = "/workspace"};
    (void)state;
    assert_int_equal(ab_fault_arm("sandbox_socket:1:24"), 0);
    assert_int_equal(ab_sandbox_begin(&spec, &sb, &err), -1);
    assert_int_equal(err.sys, EMFILE);
    assert_int_equal(ab_fault_arm("cgroup_create:1:28"), 0);
    assert_int_equal(ab_sandbox_begin(&spec, &sb, &err), -1);
    assert_int_equal(err.sys, ENOSPC);
    ab_fault_arm(NULL);
}
#endif

static void test_the_end_of_the_zygote_is_an_error(void **state)
{
    struct ab_err err = {0};
    struct ab_sandbox *sb = create(NULL);
    char out[16];
    (void)state;
    ab_zygote_stop(); /* kills what it has made */
    wait_readable(sb->pidfd);
    struct ab_command cmd = {.argv = (char *[]){out}, .argc = 1, .cwd = "/"};
    struct ab_child child;
    snprintf(out, sizeof out, "true");
    assert_int_equal(ab_sandbox_exec(sb, &cmd, &child, &err), -1);
    assert_int_equal(err.code, AB_ESANDBOX);
    ab_sandbox_free(sb);
    sb = create(NULL); /* a new zygote is started */
    assert_int_equal(run(sb, "echo again", out, sizeof out), 0);
    finish(sb);
}

static int stop(void **state)
{
    (void)state;
    ab_zygote_stop();
    ab_cgroup_end();
    /* No child is left: every sandbox was reaped. */
    return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_command),
        cmocka_unit_test(test_files_and_layers),
        cmocka_unit_test(test_a_heavy_layer_is_not_copied_again),
        cmocka_unit_test(test_many_at_once),
        cmocka_unit_test(test_what_cannot_be_made_is_an_error),
#ifdef AB_FAULTS
        cmocka_unit_test(test_named_failures),
#endif
        cmocka_unit_test(test_the_end_of_the_zygote_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, stop);
}
