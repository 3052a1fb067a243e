/* main.c - the start of the guest: what it takes from Docker, its threads. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/guest.h"
#include "guest/loop.h"
#include "init/init.h"

const char *ab_step = "start"; /* of src/init, which names it when a native one fails */

/* The stream keeps away from the descriptors of commands; theirs at 0 is /dev/null. */
static int take_stream(struct guest *g)
{
    int in = fcntl(0, F_DUPFD_CLOEXEC, 10), out = fcntl(1, F_DUPFD_CLOEXEC, 10);
    g->null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (in < 0 || out < 0 || g->null < 0 || dup2(g->null, 0) < 0 || dup2(g->null, 1) < 0)
        return -1;
    if (fcntl(in, F_SETFL, O_NONBLOCK) < 0 || fcntl(out, F_SETFL, O_NONBLOCK) < 0)
        return -1;
    ab_frames_init(&g->frames, in, out);
    return 0;
}

static int open_root(struct guest *g)
{
    g->root = (struct ab_tree){.root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC),
                               .ids = {.first = 0, .rest = 1, .count = UINT32_MAX}};
    return g->root.root;
}

/* Version, and why the workspace could not be made or "". */
static void say_hello(struct guest *g, const char *workspace)
{
    struct ab_err err = {.msg = ""};
    struct ab_buf b;
    ab_buf_init(&b, 0);
    ab_put_int(&b, AB_FRAME_PROTOCOL, 4);
    if (ab_file_mkdir(&g->root, workspace, true, 0755, &err) == 0)
        err.msg[0] = 0;
    ab_buf_put(&b, err.msg, strlen(err.msg) + 1);
    ab_frames_put(&g->frames, AB_FRAME_HELLO, 0, b.data, b.len, NULL, 0);
    ab_buf_fini(&b);
}

static void *run_loop(void *arg)
{
    ab_guest_loop(arg);
}

int main(int argc, char **argv)
{
    static struct guest g;
    int pair[2];
    pthread_t thread;
    sigset_t child;
    /* What runs here as root must not look into this process, whose stream the engine
     * believes. */
    prctl(PR_SET_DUMPABLE, 0);
    umask(022);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL); /* before there are threads: for all of them */
    if (argc != 2 || take_stream(&g) < 0 || open_root(&g) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        dprintf(2, "agentbox-guest: %s\n", argc == 2 ? strerror(errno) : "usage");
        return 1;
    }
    say_hello(&g, argv[1]);
    g.pid1 = (struct ab_sandbox){
        .state = AB_SANDBOX_READY, .sock = pair[0], .pidfd = -1, .ids = g.root.ids};
    if (pthread_create(&thread, NULL, run_loop, &g) != 0) {
        dprintf(2, "agentbox-guest: no thread\n");
        return 1;
    }
    ab_pid1(pair[1]);
}
