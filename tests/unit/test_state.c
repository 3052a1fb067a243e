/* test_state.c - whole engines: two in one process, each on a thread of its own. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lua/state.h"

/* The busy loop calls into libc because ThreadSanitizer delivers signals there only. */
static const char script[] =
    "local ab = require 'agentbox'\n"
    "local fiber = require 'agentbox.sys.fiber'\n"
    "local turns = 0\n"
    "local busy = fiber.spawn(function() while true do turns = turns + 1 os.time() end "
    "end)\n"
    "ab.async.each({1, 2, 3, 4, 5}, function() ab.async.sleep(0.02) end)\n"
    "busy:cancel()\n"
    "assert(not busy:join() and turns > 0)\n"
    "return tonumber(arg[1])\n";

struct engine {
    char *path, *status;
    int result;
};

static void *run_engine(void *arg)
{
    struct engine *e = arg;
    struct ab_state state;
    struct ab_err err;
    char program[] = "agentbox", command[] = "script";
    char *argv[] = {program, command, e->path, e->status, NULL};
    e->result = -1;
    if (ab_state_init(&state, &err) == 0) {
        e->result = ab_state_main(&state, 4, argv);
        ab_state_fini(&state);
    }
    return NULL;
}

static void test_two_engines_at_once(void **state)
{
    char path[] = "/tmp/agentbox-state-XXXXXX", three[] = "3", four[] = "4";
    struct engine engines[2] = {{.path = path, .status = three},
                                {.path = path, .status = four}};
    pthread_t threads[2];
    (void)state;
    int fd = mkstemp(path);
    assert_int_equal(write(fd, script, sizeof script - 1), sizeof script - 1);
    close(fd);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_engine, &engines[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    unlink(path);
    assert_int_equal(engines[0].result, 3);
    assert_int_equal(engines[1].result, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_engines_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
