#include "rt/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "rt/op.h"

/* What libuv opens for a loop: epoll, a pipe for signals in the process and one in the
 * loop, an eventfd, and in newer versions two rings. */
enum { DESCRIPTORS = 8 };

/* libuv aborts when it cannot open the pipe that the first loop makes for the process. */
static int check_descriptors(void)
{
    int fds[DESCRIPTORS], opened = 0, rc = 0;
    while (rc == 0 && opened < DESCRIPTORS) {
        int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            rc = -errno;
        else
            fds[opened++] = fd;
    }
    while (opened > 0)
        close(fds[--opened]);
    return rc;
}

int ab_loop_init(struct ab_loop *loop, struct ab_err *err)
{
    int rc = check_descriptors();
    /* libuv 1.45 to 1.48 would have a thread of the kernel's look for work in vain, at
     * our expense; the files that it is for are synced and written by the pool. */
    setenv("UV_USE_IO_URING", "0", 0);
    if (rc == 0)
        rc = uv_loop_init(&loop->uv);
    if (rc < 0)
        return ab_err_sys(err, -rc, "event loop");
    ab_list_init(&loop->ops);
    loop->commands = 0;
    loop->pool = false;
    uv_idle_init(&loop->uv, &loop->busy);
    return 0;
}

static void on_idle(uv_idle_t *handle)
{
    (void)handle;
}

/* libuv does not look at signals, whose handles are unreferenced, when it holds nothing
 * that is referenced: a script that computes alone could not be interrupted. */
bool ab_loop_turn(struct ab_loop *loop, bool has_work)
{
    if (!has_work)
        return uv_run(&loop->uv, UV_RUN_ONCE) != 0;
    if (!uv_loop_alive(&loop->uv))
        uv_idle_start(&loop->busy, on_idle);
    uv_run(&loop->uv, UV_RUN_NOWAIT);
    uv_idle_stop(&loop->busy);
    return true;
}

/* Two passes, because an op that is not pending may have been let go by its waiter
 * already: what is still listed after the loop has nothing left to do is what a waiter
 * forgot. */
int ab_loop_fini(struct ab_loop *loop)
{
    int swept = 0;
    struct ab_list *it = loop->ops.next;
    while (it != &loop->ops) {
        struct ab_op *op = AB_CONTAINER(it, struct ab_op, link);
        it = it->next;
        if (op->state != AB_OP_PENDING)
            continue;
        ab_op_cancel(op);
        ab_op_unref(op);
        swept++;
    }
    uv_close((uv_handle_t *)&loop->busy, NULL);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    while (!ab_list_empty(&loop->ops)) {
        ab_op_unref(AB_CONTAINER(loop->ops.next, struct ab_op, link));
        swept++;
    }
    int rc = uv_loop_close(&loop->uv);
    if (rc < 0)
        AB_BUG("loop still busy: %s", uv_strerror(rc));
    return swept;
}

int ab_loop_count(const struct ab_loop *loop)
{
    int n = 0;
    for (const struct ab_list *it = loop->ops.next; it != &loop->ops; it = it->next)
        n++;
    return n;
}
