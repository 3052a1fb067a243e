#include "rt/poll.h"

#include <fcntl.h>
#include <unistd.h>

struct poll {
    struct ab_op op;
    uv_poll_t uv;
    uv_timer_t
        failed;   /* reports a refused start from the loop, never from ab_poll_start */
    bool refused; /* by uv_poll_init: `uv` was never started */
    int events;
    int own; /* owns, or -1 */
};

static void on_close(uv_handle_t *h)
{
    struct poll *p = h->data;
    if (p->own >= 0)
        close(p->own);
    ab_op_unref(&p->op);
}

static void stop(struct ab_op *op)
{
    struct poll *p = AB_CONTAINER(op, struct poll, op);
    uv_handle_t *h = p->refused ? (uv_handle_t *)&p->failed : (uv_handle_t *)&p->uv;
    if (!uv_is_closing(h))
        uv_close(h, on_close);
}

static void on_ready(uv_poll_t *h, int status, int events)
{
    struct poll *p = h->data;
    p->events = events;
    /* libuv says EBADF for POLLERR: the reader or writer will learn the true reason. */
    if (status < 0 && status != UV_EBADF)
        ab_err_sys(ab_op_error(&p->op), status, "poll");
    stop(&p->op);
    ab_op_done(&p->op);
}

static void on_failed(uv_timer_t *h)
{
    struct poll *p = h->data;
    stop(&p->op);
    ab_op_done(&p->op);
}

static const struct ab_op_class poll_class = {
    .name = "poll",
    .stop = stop,
};

struct ab_op *ab_poll_start(struct ab_loop *loop, int fd, int events)
{
    struct poll *p = ab_xcalloc(1, sizeof *p);
    ab_op_init(&p->op, &poll_class, loop);
    ab_op_ref(&p->op); /* the loop's; dropped in on_close */
    p->uv.data = p->failed.data = p;
    p->own = -1;
    int rc = uv_poll_init(&loop->uv, &p->uv, fd);
    if (rc == 0) {
        uv_poll_start(&p->uv, events, on_ready); /* cannot fail on Linux */
        return &p->op;
    }
    p->refused = true;
    ab_err_sys(ab_op_error(&p->op), rc, "cannot wait for descriptor %d", fd);
    uv_timer_init(&loop->uv, &p->failed);
    uv_timer_start(&p->failed, on_failed, 0, 0);
    return &p->op;
}

struct ab_op *ab_poll_shared(struct ab_loop *loop, int fd, int events)
{
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    struct ab_op *op = ab_poll_start(loop, own < 0 ? fd : own, events);
    AB_CONTAINER(op, struct poll, op)->own = own;
    return op;
}

int ab_poll_events(const struct ab_op *op)
{
    return AB_CONTAINER(op, const struct poll, op)->events;
}
