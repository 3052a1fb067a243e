#include "rt/plain.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/list.h"
#include "base/wire.h"

struct ab_plain_home {
    struct ab_list alive;
    struct ab_op *closing; /* owns a reference until it is done; NULL while open */
};

/* The far side of the control socket, until the group's leader has ended: it frees itself
 * then. A loop that ends need not know of it, since the near side's end kills the group.
 */
struct plain {
    uv_process_t process;
    uv_poll_t poll;
    struct ab_plain_home *home;
    struct ab_list link; /* in home->alive until the leader is reaped */
    int ctl;             /* owns */
    int open;            /* handles that are not closed, or were never made */
    uint64_t began_ns;
    bool killed;
    void (*note)(pid_t leader, bool alive);
};

struct ab_plain_home *ab_plain_home_new(void)
{
    struct ab_plain_home *home = ab_xcalloc(1, sizeof *home);
    ab_list_init(&home->alive);
    return home;
}

/* The last command of a closed home ends it. */
static void left(struct plain *p)
{
    struct ab_plain_home *home = p->home;
    ab_list_remove(&p->link);
    if (!home->closing || !ab_list_empty(&home->alive))
        return;
    ab_op_done(home->closing);
    ab_op_unref(home->closing);
    free(home);
}

static void on_closed(uv_handle_t *h)
{
    struct plain *p = h->data;
    if (--p->open == 0) {
        close(p->ctl);
        free(p);
    }
}

static void kill_group(struct plain *p)
{
    p->killed = true;
    if (p->process.pid > 0)
        kill(-p->process.pid, SIGKILL);
}

/* Whoever waits may go; the home is emptied all the same. */
static void stop_waiting(struct ab_op *op)
{
    (void)op;
}

static const struct ab_op_class closing_class = {.name = "close of a plain sandbox",
                                                 .stop = stop_waiting};

struct ab_op *ab_plain_home_close(struct ab_loop *loop, struct ab_plain_home *home)
{
    if (ab_list_empty(&home->alive)) {
        free(home);
        return NULL;
    }
    home->closing = ab_xcalloc(1, sizeof *home->closing);
    ab_op_init(home->closing, &closing_class, loop);
    ab_op_ref(home->closing);
    for (struct ab_list *at = home->alive.next; at != &home->alive; at = at->next)
        kill_group(AB_CONTAINER(at, struct plain, link));
    return home->closing;
}

static void say_exit(struct plain *p, int64_t status, int sig)
{
    uint8_t buf[128];
    struct ab_wire_exit m = {
        .flags = p->killed ? AB_WIRE_KILLED : 0u,
        .code = sig ? -1 : (int32_t)status,
        .signal = sig,
        .wall_us = (uv_hrtime() - p->began_ns) / 1000,
    };
    long n = ab_wire_put_exit(buf, sizeof buf, &m);
    ab_wire_send(p->ctl, buf, (size_t)n, NULL, 0, MSG_DONTWAIT);
}

static void on_ended(uv_process_t *h, int64_t status, int sig)
{
    struct plain *p = h->data;
    if (p->killed)
        kill(-h->pid, SIGKILL); /* who was born while the first one was on its way */
    if (p->note)
        p->note(h->pid, false);
    say_exit(p, status, sig);
    left(p);
    uv_close((uv_handle_t *)&p->poll, on_closed);
    uv_close((uv_handle_t *)h, on_closed);
}

static void on_control(uv_poll_t *h, int status, int events)
{
    struct plain *p = h->data;
    uint8_t buf[AB_WIRE_MAX];
    int fds[AB_WIRE_FDS], nfds;
    (void)status;
    (void)events;
    long n = ab_wire_recv(p->ctl, buf, fds, &nfds, MSG_DONTWAIT);
    if (n == -EAGAIN)
        return;
    ab_wire_close_fds(fds, nfds);
    if (n <= 0)
        uv_poll_stop(h);
    if (n <= 0 || ab_wire_type(buf, (size_t)n) == AB_WIRE_KILL)
        kill_group(p);
}

/* [0] is ours, [1] the command's. */
static int open_pipe(int ends[2], bool we_write)
{
    int p[2];
    if (pipe2(p, O_CLOEXEC) < 0)
        return -1;
    ends[0] = p[we_write];
    ends[1] = p[!we_write];
    return fcntl(ends[0], F_SETFL, O_NONBLOCK);
}

static void close_pair(int ends[2])
{
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
}

static int start(struct ab_loop *loop, struct plain *p, const struct ab_plain *cmd,
                 const int io[3])
{
    uv_stdio_container_t stdio[3] = {
        {.flags = UV_IGNORE}, {.flags = UV_INHERIT_FD}, {.flags = UV_INHERIT_FD}};
    if (io[0] >= 0)
        stdio[0].flags = UV_INHERIT_FD;
    for (int i = 0; i < 3; i++)
        stdio[i].data.fd = io[i];
    uv_process_options_t options = {
        .exit_cb = on_ended,
        .file = cmd->argv[0],
        .args = (char **)(uintptr_t)cmd->argv,
        .env = (char **)(uintptr_t)cmd->envp,
        .cwd = cmd->cwd,
        .flags = UV_PROCESS_DETACHED,
        .stdio_count = 3,
        .stdio = stdio,
    };
    p->open = 2;
    int rc = uv_poll_init(&loop->uv, &p->poll, p->ctl);
    if (rc < 0)
        AB_BUG("control socket: %s", uv_strerror(rc));
    p->poll.data = p->process.data = p;
    rc = uv_spawn(&loop->uv, &p->process, &options);
    if (rc < 0) {
        uv_close((uv_handle_t *)&p->poll, on_closed);
        uv_close((uv_handle_t *)&p->process, on_closed);
        return rc;
    }
    ab_list_append(&p->home->alive, &p->link);
    if (p->note)
        p->note(p->process.pid, true);
    uv_poll_start(&p->poll, UV_READABLE, on_control);
    return 0;
}

/* What a shell says about a program that it cannot start, as an outcome of the command.
 */
static void say_no_exec(struct plain *p, int errnum, int err_fd)
{
    uint8_t buf[128];
    struct ab_wire_exit m = {
        .flags = AB_WIRE_NO_EXEC, .code = errnum == ENOENT ? 127 : 126, .errnum = errnum};
    dprintf(err_fd, "agentbox: cannot start the command: %s\n", uv_strerror(-errnum));
    long n = ab_wire_put_exit(buf, sizeof buf, &m);
    ab_wire_send(p->ctl, buf, (size_t)n, NULL, 0, MSG_DONTWAIT);
}

int ab_plain_spawn(struct ab_loop *loop, const struct ab_plain *cmd, struct ab_child *out,
                   struct ab_err *err)
{
    int in[2] = {-1, -1}, o[2] = {-1, -1}, e[2] = {-1, -1}, ctl[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ctl) < 0 ||
        open_pipe(o, false) < 0 || open_pipe(e, false) < 0 ||
        (cmd->stdin_pipe && open_pipe(in, true) < 0)) {
        ab_err_sys(err, errno, "make the command's pipes");
        close_pair(in);
        close_pair(o);
        close_pair(e);
        close_pair(ctl);
        return -1;
    }
    struct plain *p = ab_xcalloc(1, sizeof *p);
    p->ctl = ctl[1];
    p->note = cmd->note;
    p->home = cmd->home;
    p->began_ns = uv_hrtime();
    const int io[3] = {in[1], o[1], e[1]};
    int rc = start(loop, p, cmd, io);
    if (rc < 0)
        say_no_exec(p, -rc, e[1]);
    close(o[1]);
    close(e[1]);
    if (in[1] >= 0)
        close(in[1]);
    *out = (struct ab_child){
        .in = in[0], .script = -1, .out = o[0], .err = e[0], .ctl = ctl[0]};
    return 0;
}
