#include "lua/sandbox_life.h"

#include "base/wire.h"

struct life {
    struct ab_op op;
    struct ab_sandbox *sb;  /* owns, until taken */
    struct ab_layer *layer; /* owns, until taken */
    uv_poll_t sock, pid;
    uv_timer_t kick;   /* reports what is over before any descriptor was waited for, and
                        * before that the time in which it should have been made */
    uv_work_t closing; /* its files */
    int fds[AB_SANDBOX_FILES], nfds;
    bool sock_open, pid_open, kick_open;
    bool dead;      /* and waits for its files to be closed */
    bool abandoned; /* nobody waits for the sandbox any more */
    bool want_layer;
};

static void on_closed(uv_handle_t *h)
{
    struct life *l = h->data;
    ab_op_unref(&l->op);
}

static void close_handle(bool *open, uv_handle_t *h)
{
    if (*open)
        uv_close(h, on_closed);
    *open = false;
}

static void done(struct life *l)
{
    close_handle(&l->sock_open, (uv_handle_t *)&l->sock);
    close_handle(&l->pid_open, (uv_handle_t *)&l->pid);
    close_handle(&l->kick_open, (uv_handle_t *)&l->kick);
    ab_op_done(&l->op);
}

static void bury(struct life *l)
{
    l->dead = true;
    if (l->nfds > 0)
        return;
    if (l->want_layer && l->sb->upper >= 0)
        l->layer = ab_sandbox_take_layer(l->sb);
    ab_sandbox_free(l->sb);
    l->sb = NULL;
    done(l);
}

/* The zygote holds the same open file. Were it closed while it is watched, the kernel
 * would go on reporting it, and the loop turn without end, until the zygote has closed it
 * too. */
static void on_pid(uv_poll_t *h, int status, int events)
{
    struct life *l = h->data;
    (void)status;
    (void)events;
    uv_poll_stop(h);
    if (ab_sandbox_reap(l->sb, false) != 0) {
        uv_poll_start(h, UV_READABLE, on_pid);
        return;
    }
    close_handle(&l->pid_open, (uv_handle_t *)h); /* its number may be another's soon */
    bury(l);
}

static void on_kick(uv_timer_t *t)
{
    bury(t->data);
}

/* Polls a descriptor; false when that cannot be had, and then there is nothing to do but
 * block. */
static bool watch(struct life *l, uv_poll_t *h, bool *open, int fd, uv_poll_cb cb)
{
    if (fd < 0 || uv_poll_init(&l->op.loop->uv, h, fd) < 0)
        return false;
    h->data = l;
    *open = true;
    ab_op_ref(&l->op);
    uv_poll_start(h, UV_READABLE, cb);
    return true;
}

static void start_timer(struct life *l, uv_timer_cb cb, uint64_t ms)
{
    if (!l->kick_open) {
        uv_timer_init(&l->op.loop->uv, &l->kick);
        l->kick.data = l;
        l->kick_open = true;
        ab_op_ref(&l->op);
    }
    uv_timer_start(&l->kick, cb, ms, 0);
}

static void close_files(uv_work_t *work)
{
    struct life *l = work->data;
    ab_wire_close_fds(l->fds, l->nfds);
}

static void on_files_closed(uv_work_t *work, int status)
{
    struct life *l = work->data;
    (void)status;
    l->nfds = 0;
    if (l->dead)
        bury(l);
    ab_op_unref(&l->op);
}

/* On another thread: the loop does not wait for the kernel, which for each file system
 * that goes waits for all of the machine's processors. */
static void start_closing(struct life *l)
{
    l->nfds = ab_sandbox_take_files(l->sb, !l->want_layer, l->fds);
    if (l->nfds == 0)
        return;
    l->closing.data = l;
    ab_op_ref(&l->op);
    if (uv_queue_work(&l->op.loop->uv, &l->closing, close_files, on_files_closed) < 0)
        AB_BUG("uv_queue_work refused");
}

static void start_death(struct life *l)
{
    close_handle(&l->sock_open, (uv_handle_t *)&l->sock);
    start_closing(l);
    ab_sandbox_kill(l->sb);
    if (l->sb->state == AB_SANDBOX_DYING &&
        watch(l, &l->pid, &l->pid_open, ab_sandbox_fd(l->sb), on_pid)) {
        close_handle(&l->kick_open, (uv_handle_t *)&l->kick);
        return;
    }
    start_timer(l, on_kick, 0);
}

/* Whoever should have answered may be stopped, and would never. */
static void on_late(uv_timer_t *t)
{
    struct life *l = t->data;
    ab_sandbox_late(l->sb, ab_op_error(&l->op));
    start_death(l);
}

static void on_sock(uv_poll_t *h, int status, int events)
{
    struct life *l = h->data;
    struct ab_err err;
    (void)status;
    (void)events;
    int rc = ab_sandbox_step(l->sb, &err);
    if (rc == 1)
        return;
    if (rc < 0)
        *ab_op_error(&l->op) = err;
    if (rc < 0 || l->abandoned)
        start_death(l);
    else
        done(l);
}

static void stop(struct ab_op *op)
{
    AB_CONTAINER(op, struct life, op)->abandoned = true;
}

static void fini(struct ab_op *op)
{
    struct life *l = AB_CONTAINER(op, struct life, op);
    ab_sandbox_free(l->sb);
    ab_layer_unref(l->layer);
}

static const struct ab_op_class life_class = {
    .name = "sandbox", .stop = stop, .fini = fini, .soon = true};

static struct life *new_life(struct ab_loop *loop, struct ab_sandbox *sb)
{
    struct life *l = ab_xcalloc(1, sizeof *l);
    ab_op_init(&l->op, &life_class, loop);
    l->sb = sb;
    return l;
}

struct ab_op *ab_life_create(struct ab_loop *loop, struct ab_sandbox *sb, uint64_t ms)
{
    struct life *l = new_life(loop, sb);
    start_timer(l, on_late, ms);
    if (!watch(l, &l->sock, &l->sock_open, ab_sandbox_fd(sb), on_sock)) {
        ab_err_set(ab_op_error(&l->op), AB_ESYS, "cannot wait for the sandbox");
        start_death(l);
    }
    return &l->op;
}

struct ab_sandbox *ab_life_take(struct ab_op *op)
{
    struct life *l = AB_CONTAINER(op, struct life, op);
    struct ab_sandbox *sb = l->sb;
    l->sb = NULL;
    return sb;
}

struct ab_op *ab_life_close(struct ab_loop *loop, struct ab_sandbox *sb, bool want_layer)
{
    struct life *l = new_life(loop, sb);
    l->want_layer = want_layer;
    start_death(l);
    return &l->op;
}

struct ab_layer *ab_life_take_layer(struct ab_op *op)
{
    struct life *l = AB_CONTAINER(op, struct life, op);
    struct ab_layer *layer = l->layer;
    l->layer = NULL;
    return layer;
}
