#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "rt/work.h"

/* Of libuv, without UV_THREADPOOL_SIZE. */
#define DEFAULT_THREADS 4
#define MAX_THREADS     64
/* A limit that nobody set for its own sake. */
#define LARGE_LIMIT 4096

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
        ab_err_sys(ab_op_error(&w->op), status, "background work");
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

static void *wait_to_end(void *end)
{
    sem_wait(end);
    return NULL;
}

/* How many of n threads can live at once. */
static int start_threads(int n)
{
    pthread_t threads[MAX_THREADS];
    sem_t end;
    int started = 0;
    sem_init(&end, 0, 0);
    while (started < n && pthread_create(&threads[started], NULL, wait_to_end, &end) == 0)
        started++;
    for (int i = 0; i < started; i++)
        sem_post(&end);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    sem_destroy(&end);
    return started;
}

int ab_work_check(struct ab_err *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NPROC, &limit) < 0 || limit.rlim_cur >= LARGE_LIMIT)
        return 0;
    const char *size = getenv("UV_THREADPOOL_SIZE");
    int wanted = size ? atoi(size) : DEFAULT_THREADS;
    wanted = wanted < 1 ? 1 : wanted > MAX_THREADS ? MAX_THREADS : wanted;
    int started = start_threads(wanted);
    if (started == wanted)
        return 0;
    return ab_err_set(err, AB_ESYS,
                      "%d of %d threads could be started: raise the limit of processes "
                      "(ulimit -u)",
                      started, wanted);
}

static void run_nothing(uv_work_t *req)
{
    (void)req;
}

static void on_ready(uv_work_t *req, int status)
{
    (void)req;
    (void)status;
}

int ab_work_ready(struct ab_loop *loop, struct ab_err *err)
{
    if (loop->pool)
        return 0;
    if (ab_work_check(err) < 0)
        return -1;
    if (uv_queue_work(&loop->uv, &loop->first, run_nothing, on_ready) < 0)
        AB_BUG("uv_queue_work refused");
    loop->pool = true;
    return 0;
}

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
