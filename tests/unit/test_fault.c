/* test_fault.c - failure points, and the file calls under each of theirs. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "rt/fs.h"

static char dir[] = "/tmp/agentbox-test-XXXXXX";

static int setup(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    struct ab_err err;
    (void)state;
    ab_fault_arm(NULL);
    return ab_fs_remove(dir, true, &err);
}

#ifdef AB_FAULTS

static void test_points(void **state)
{
    (void)state;
    assert_int_equal(ab_fault_arm("a:2:5,b:0:28"), 0);
    assert_int_equal(ab_fault_hit("a"), 0);
    assert_int_equal(ab_fault_hit("a"), 5);
    assert_int_equal(ab_fault_hit("a"), 0);
    assert_int_equal(ab_fault_hit("b"), ENOSPC);
    assert_int_equal(ab_fault_hit("b"), ENOSPC);
    assert_int_equal(ab_fault_hit("c"), 0);
    assert_int_equal(ab_fault_arm(NULL), 0);
    assert_int_equal(ab_fault_hit("b"), 0);
}

static void test_bad_specs_are_refused(void **state)
{
    static const char *const bad[] = {"a", "a:1", "a:1:x", "a:1:5;b:1:5", "a:x:5"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(ab_fault_arm(bad[i]), -1);
}

/* Whatever fails, the old content stays, the code says why, and no temporary file is
 * left. */
static void test_write_is_all_or_nothing(void **state)
{
    static const char *const points[] = {"fs.create", "fs.write", "fs.fsync",
                                         "fs.rename"};
    const struct ab_fs_write how = {0};
    char path[64];
    struct ab_err err;
    (void)state;
    snprintf(path, sizeof path, "%s/f", dir);
    assert_int_equal(ab_fs_write(path, "old", 3, &how, &err), 0);
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        char spec[64];
        snprintf(spec, sizeof spec, "%s:1:%d", points[i], ENOSPC);
        ab_fault_arm(spec);
        assert_int_equal(ab_fs_write(path, "new", 3, &how, &err), -1);
        assert_int_equal(err.code, AB_EFULL);
        ab_fault_arm(NULL);

        struct ab_buf text;
        ab_buf_init(&text, 100);
        assert_int_equal(ab_fs_read(path, &text, &err), 0);
        assert_string_equal(text.data, "old");
        ab_buf_fini(&text);
        struct ab_fs_list list;
        assert_int_equal(ab_fs_list(dir, &list, &err), 0);
        assert_int_equal(list.count, 1);
        ab_fs_list_fini(&list);
    }
}

static void test_read_error_is_io(void **state)
{
    struct ab_buf text;
    struct ab_err err;
    (void)state;
    ab_buf_init(&text, 0);
    ab_fault_arm("fs.read:1:5");
    assert_int_equal(ab_fs_read("/etc/passwd", &text, &err), -1);
    assert_int_equal(err.code, AB_EIO);
    ab_buf_fini(&text);
}

#else

static void test_points_are_compiled_out(void **state)
{
    (void)state;
    assert_int_equal(ab_fault_arm("a:1:5"), -1);
    assert_int_equal(AB_FAULT("a"), 0);
}

#endif

static void test_cap_and_kind(void **state)
{
    const struct ab_fs_write how = {.exclusive = true};
    struct ab_buf text;
    struct ab_err err;
    char path[64];
    (void)state;
    snprintf(path, sizeof path, "%s/ten", dir);
    assert_int_equal(ab_fs_write(path, "0123456789", 10, &how, &err), 0);
    assert_int_equal(ab_fs_write(path, "x", 1, &how, &err), -1);
    assert_int_equal(err.code, AB_EEXISTS);
    ab_buf_init(&text, 9);
    assert_int_equal(ab_fs_read(path, &text, &err), -1);
    assert_int_equal(err.code, AB_ETOOBIG);
    ab_buf_fini(&text);
    ab_buf_init(&text, 10);
    assert_int_equal(ab_fs_read(path, &text, &err), 0);
    assert_int_equal(text.len, 10);
    ab_buf_fini(&text);
    ab_buf_init(&text, 0);
    assert_int_equal(ab_fs_read(dir, &text, &err), -1);
    assert_int_equal(err.code, AB_EINVALID);
    assert_int_equal(ab_fs_read("/dev/zero", &text, &err), -1);
    assert_int_equal(err.code, AB_EINVALID);
    ab_buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef AB_FAULTS
        cmocka_unit_test(test_points),
        cmocka_unit_test(test_bad_specs_are_refused),
        cmocka_unit_test(test_write_is_all_or_nothing),
        cmocka_unit_test(test_read_error_is_io),
#else
        cmocka_unit_test(test_points_are_compiled_out),
#endif
        cmocka_unit_test(test_cap_and_kind),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
