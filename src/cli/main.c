/* main.c - the program: an engine around the library's command line. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lua/state.h"
#include "rt/unpack.h"
#include "sandbox/tree_child.h"
#include "sandbox/zygote.h"

/* What this process was not given; documented in docs/cli.md, as are 0, 1, 2 and 70. */
#define STATUS_INFRASTRUCTURE 3

/* A thousand rollouts hold thousands of descriptors; the soft limit is often 1024. */
#define WANTED_DESCRIPTORS 65536

static void raise_descriptor_limit(void)
{
    struct rlimit lim;
    if (getrlimit(RLIMIT_NOFILE, &lim) < 0 || lim.rlim_cur >= WANTED_DESCRIPTORS)
        return;
    lim.rlim_cur = lim.rlim_max < WANTED_DESCRIPTORS ? lim.rlim_max : WANTED_DESCRIPTORS;
    setrlimit(RLIMIT_NOFILE, &lim);
}

/* Closed standard descriptors would be given to the files of a run, and what is printed
 * would go into them. open() gives the lowest free number. */
static bool fill_standard_descriptors(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    return fd > STDERR_FILENO && close(fd) == 0;
}

int main(int argc, char **argv)
{
    struct ab_state state;
    struct ab_err err;
    if (!fill_standard_descriptors())
        return STATUS_INFRASTRUCTURE;
    if (argc > 1 && strcmp(argv[1], AB_UNPACK_WORD) == 0)
        return ab_unpack_main(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], AB_TREE_WORD) == 0)
        return ab_tree_child_main(argc - 1, argv + 1);
    /* Files are synced on the pool: more of them at once than libuv's four. */
    setenv("UV_THREADPOOL_SIZE", "8", 0);
    signal(SIGPIPE, SIG_IGN); /* a reader that went away is an error value, */
    signal(SIGXFSZ, SIG_IGN); /* and so is a file above `ulimit -f` */
    raise_descriptor_limit(); /* the zygote's as well: it holds four for each sandbox */
    /* The zygote first: before threads, heap and secrets, so that no sandbox inherits
     * them. */
    if (ab_zygote_start(&err) < 0 || ab_state_init(&state, &err) < 0) {
        fprintf(stderr, "agentbox: %s\n", err.msg);
        return STATUS_INFRASTRUCTURE;
    }
    int status = ab_state_main(&state, argc, argv);
    ab_state_fini(&state);
    return status;
}
