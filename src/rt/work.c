#include "rt/work.h"

struct work_op {
    struct ab_op op;
    uv_work_t uv;
    struct ab_work work;
};

static void run(uv_work_t *req)
{
    struct work_op *w = req->data;
    w->work.run(w->work.job);
}

static void on_finished(uv_work_t *req, int status)
{
    struct work_op *w = req->data;
    if (status < 0)
        ab_err_sys(&w->op.err, status, "background work");
    ab_op_done(&w->op);
    ab_op_unref(&w->op);
}

static void stop(struct ab_op *op)
{
    struct work_op *w = AB_CONTAINER(op, struct work_op, op);
    uv_cancel(
        (uv_req_t *)&w->uv); /* refused once it runs; on_finished comes either way */
}

static void fini(struct ab_op *op)
{
    struct work_op *w = AB_CONTAINER(op, struct work_op, op);
    w->work.free(w->work.job);
}

static const struct ab_op_class work_class = {
    .name = "work",
    .stop = stop,
    .fini = fini,
};

struct ab_op *ab_work_start(struct ab_loop *loop, const struct ab_work *work)
{
    struct work_op *w = ab_xcalloc(1, sizeof *w);
    ab_op_init(&w->op, &work_class, loop);
    w->work = *work;
    w->uv.data = w;
    ab_op_ref(&w->op); /* the pool's; dropped in on_finished */
    if (uv_queue_work(&loop->uv, &w->uv, run, on_finished) < 0)
        AB_BUG("uv_queue_work refused");
    return &w->op;
}

void *ab_work_job(const struct ab_op *op)
{
    return AB_CONTAINER(op, const struct work_op, op)->work.job;
}
