#include "rt/signal.h"

struct signal_op {
    struct ab_op op;
    uv_signal_t uv;
    int signum;
    bool closed;
};

static void on_close(uv_handle_t *h)
{
    struct signal_op *s = h->data;
    s->closed = true;
    ab_op_unref(&s->op);
}

static void stop(struct ab_op *op)
{
    struct signal_op *s = AB_CONTAINER(op, struct signal_op, op);
    if (!uv_is_closing((uv_handle_t *)&s->uv))
        uv_close((uv_handle_t *)&s->uv, on_close);
}

static void on_signal(uv_signal_t *h, int signum)
{
    struct signal_op *s = h->data;
    (void)signum;
    stop(&s->op);
    ab_op_done(&s->op);
}

static const struct ab_op_class signal_class = {
    .name = "signal",
    .stop = stop,
};

struct ab_op *ab_signal_start(struct ab_loop *loop, int signum)
{
    struct signal_op *s = ab_xcalloc(1, sizeof *s);
    ab_op_init(&s->op, &signal_class, loop);
    s->signum = signum;
    uv_signal_init(&loop->uv, &s->uv);
    s->uv.data = s;
    ab_op_ref(&s->op); /* the loop's; dropped in on_close */
    if (uv_signal_start(&s->uv, on_signal, signum) < 0)
        AB_BUG("signal %d cannot be caught", signum);
    return &s->op;
}

/* One that is done counts until its handle is closed: libuv may tell it of the signal
 * before it tells whoever asks here. */
bool ab_signal_awaited(const struct ab_loop *loop, int signum)
{
    for (const struct ab_list *it = loop->ops.next; it != &loop->ops; it = it->next) {
        const struct ab_op *op = AB_CONTAINER(it, struct ab_op, link);
        if (op->cls != &signal_class)
            continue;
        const struct signal_op *s = AB_CONTAINER(op, const struct signal_op, op);
        bool waits =
            op->state == AB_OP_PENDING || (op->state == AB_OP_DONE && !s->closed);
        if (waits && s->signum == signum)
            return true;
    }
    return false;
}
