/* A script that grows: nothing of it is lost, and what was read is not kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "rt/script.h"

#define PIECE 100000

static void test_what_was_read_is_given_back(void **state)
{
    (void)state;
    struct ab_script s = {.fd = memfd_create("script", MFD_CLOEXEC)};
    char *written = malloc(PIECE), *read_back = malloc(PIECE);
    struct stat st;
    assert_true(s.fd >= 0 && written && read_back);
    for (int i = 0; i < 100; i++) {
        memset(written, 'a' + i % 26, PIECE);
        assert_int_equal(ab_script_append(&s, written, PIECE), 0);
        assert_int_equal(read(s.fd, read_back, PIECE), PIECE);
        assert_memory_equal(read_back, written, PIECE);
    }
    assert_int_equal(fstat(s.fd, &st), 0);
    assert_int_equal(st.st_size, 100 * PIECE);
    assert_true(st.st_blocks * 512 < 2 << 20);
    /* The last two may not have been read. */
    assert_int_equal(pread(s.fd, read_back, PIECE, 98 * PIECE), PIECE);
    assert_int_equal(read_back[0], 'a' + 98 % 26);
    assert_int_equal(read_back[PIECE - 1], 'a' + 98 % 26);
    free(written);
    free(read_back);
    close(s.fd);
}

static void test_a_file_that_cannot_grow(void **state)
{
    (void)state;
    struct ab_script s = {0};
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    s.fd = ends[1]; /* no place can be named in a pipe */
    assert_int_equal(ab_script_append(&s, "x", 1), -1);
    assert_int_equal(s.end, 0);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_read_is_given_back),
        cmocka_unit_test(test_a_file_that_cannot_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
