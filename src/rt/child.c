#include "rt/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/wire.h"
#include "rt/control.h"
#include "rt/script.h"

#define CHUNK        65536
#define READS_A_TURN 4 /* then others on the loop have theirs */
#define FLOOD_PIPE   (1 << 20)
#define DRAIN_MAX    (2u << 20) /* after the end: no pipe holds more */
#define DEATH_MS     30000      /* from kill to EXIT; the sandbox is broken beyond that */
#define LAST_LOOKS   2 /* it may have ended in time, while the engine was stopped */

/* Most commands say little and are over before anybody could have looked at their pipes,
 * which are emptied at the end anyway. So the loop watches those of a command that one
 * waits for only once it has run for a while: one that fills a pipe before that waits so
 * long, once. Where many run at once each has its turn later: a millisecond for each. */
#define PATIENCE_MS      2
#define PATIENCE_MOST_MS 100
#define MANY             16

/* One descriptor on the loop. fd is -1 when it was closed; the handle may still be
 * closing. */
struct port {
    uv_poll_t uv;
    struct ab_proc *proc;
    int fd;
    bool open;   /* the handle exists */
    bool active; /* it is polling */
};

struct ab_proc {
    struct ab_loop *loop;
    int refs; /* holders, operations, and one for each handle */
    struct port in, out, err;
    struct ab_control *ctl; /* until it is over */
    uv_timer_t timer;
    bool timer_open;
    bool unwatched;       /* its pipes, yet */
    int overdue;          /* looks at I/O since its time was over */
    uint64_t deadline_ms; /* on the loop's clock; 0: none */
    struct ab_proc_stream streams[2];
    struct ab_buf input;
    size_t written;
    struct ab_script script; /* owns its fd: see struct ab_child */
    bool hold_stdin, interactive, tty;
    struct winsize size;    /* asked for; rows 0: it keeps the one it was made with */
    int null;               /* owns: where a flood goes, or -1 */
    struct ab_tally *tally; /* owns a reference, until it is over; or NULL */
    uint32_t leaf;
    bool told; /* pid 1 said that it is over */
    bool kept; /* and that it keeps its end of ctl for another command */
    struct ab_proc_result result;
    struct ab_list waiters;
};

struct waiter {
    struct ab_op op;
    struct ab_proc *proc; /* owns a reference */
    struct ab_list link;  /* in proc->waiters, or alone */
    int events;
    char *text; /* owns: AB_PROC_DATA is true only when stdout holds it, or NULL */
    size_t text_len, scanned; /* of stdout, without finding it */
    bool kill_on_cancel;
    uv_timer_t timer;
    bool timer_open;
};

static void proc_drop(struct ab_proc *p)
{
    if (--p->refs > 0)
        return;
    ab_buf_fini(&p->streams[0].buf);
    ab_buf_fini(&p->streams[1].buf);
    ab_buf_fini(&p->input);
    if (p->null >= 0)
        close(p->null);
    if (p->script.fd >= 0)
        close(p->script.fd);
    free(p);
}

static void on_port_closed(uv_handle_t *h)
{
    struct port *port = h->data;
    proc_drop(port->proc);
}

static void port_close(struct port *port)
{
    if (port->open) {
        port->open = port->active = false;
        uv_close((uv_handle_t *)&port->uv, on_port_closed);
    }
    if (port->fd >= 0)
        close(port->fd);
    port->fd = -1;
}

/* The handle is made when there is something to wait for. */
static bool port_open(struct port *port)
{
    if (port->open || port->fd < 0)
        return port->open;
    port->uv.data = port;
    if (uv_poll_init(&port->proc->loop->uv, &port->uv, port->fd) < 0) {
        port_close(port);
        return false;
    }
    port->open = true;
    port->proc->refs++;
    return true;
}

static void port_poll(struct port *port, int events, uv_poll_cb cb)
{
    if (!port->active && port_open(port)) {
        uv_poll_start(&port->uv, events, cb);
        port->active = true;
    }
}

static void port_pause(struct port *port)
{
    if (port->active)
        uv_poll_stop(&port->uv);
    port->active = false;
}

static void port_hold(struct ab_proc *p, struct port *port, int fd)
{
    port->proc = p;
    port->fd = fd;
}

/* ---- who waits ---- */

int ab_proc_events(const struct ab_proc *p)
{
    const struct ab_proc_stream *out = &p->streams[0], *err = &p->streams[1];
    bool drained = p->written == p->input.len;
    return (out->buf.len || out->eof ? AB_PROC_DATA : 0) |
           (err->buf.len || err->eof ? AB_PROC_ERRDATA : 0) |
           (drained ? AB_PROC_DRAINED : 0) | (p->result.over ? AB_PROC_EXIT : 0);
}

/* Also true when more would not fit, or nothing more will come. */
static bool holds_text(struct waiter *w)
{
    const struct ab_proc_stream *out = &w->proc->streams[0];
    size_t len = w->text_len, have = out->buf.len;
    if (out->eof || have >= out->buf.max)
        return true;
    if (have < len)
        return false;
    if (memmem(out->buf.data + w->scanned, have - w->scanned, w->text, len))
        return true;
    w->scanned = have - len + 1;
    return false;
}

static int waiter_events(struct waiter *w)
{
    int events = w->events & ab_proc_events(w->proc);
    return w->text && events & AB_PROC_DATA && !holds_text(w) ? events & ~AB_PROC_DATA
                                                              : events;
}

static void on_waiter_closed(uv_handle_t *h)
{
    struct waiter *w = h->data;
    ab_op_unref(&w->op);
}

/* Takes the waiter off the process and closes its timer; the op itself may live on. */
static void waiter_leave(struct waiter *w)
{
    ab_list_remove(&w->link);
    if (w->timer_open) {
        w->timer_open = false;
        uv_close((uv_handle_t *)&w->timer, on_waiter_closed);
    }
}

static void waiter_stop(struct ab_op *op)
{
    struct waiter *w = AB_CONTAINER(op, struct waiter, op);
    waiter_leave(w);
    if (w->kill_on_cancel)
        ab_proc_kill(w->proc);
}

static void waiter_fini(struct ab_op *op)
{
    struct waiter *w = AB_CONTAINER(op, struct waiter, op);
    free(w->text);
    proc_drop(w->proc);
}

static const struct ab_op_class waiter_class = {
    .name = "command", .stop = waiter_stop, .fini = waiter_fini, .soon = true};

static void waiter_done(struct waiter *w)
{
    waiter_leave(w);
    ab_op_done(&w->op);
}

static void wake(struct ab_proc *p)
{
    p->refs++;
    struct ab_list *it = p->waiters.next;
    while (it != &p->waiters) {
        struct waiter *w = AB_CONTAINER(it, struct waiter, link);
        it = it->next;
        if (waiter_events(w))
            waiter_done(w);
    }
    proc_drop(p);
}

static void on_waiter_timer(uv_timer_t *t)
{
    waiter_done(t->data);
}

static struct waiter *waiter_new(struct ab_proc *p, int events)
{
    struct waiter *w = ab_xcalloc(1, sizeof *w);
    ab_op_init(&w->op, &waiter_class, p->loop);
    w->proc = p;
    p->refs++;
    w->events = events;
    return w;
}

static struct ab_op *waiter_begin(struct waiter *w, uint64_t timeout_ms)
{
    struct ab_proc *p = w->proc;
    ab_list_append(&p->waiters, &w->link);
    bool now = waiter_events(w);
    if (now || timeout_ms) {
        w->timer.data = w;
        uv_timer_init(&p->loop->uv, &w->timer);
        uv_update_time(&p->loop->uv);
        uv_timer_start(&w->timer, on_waiter_timer, now ? 0 : timeout_ms, 0);
        w->timer_open = true;
        ab_op_ref(&w->op);
    }
    return &w->op;
}

struct ab_op *ab_proc_wait(struct ab_proc *p, int events, uint64_t timeout_ms,
                           bool kill_on_cancel)
{
    struct waiter *w = waiter_new(p, events);
    w->kill_on_cancel = kill_on_cancel;
    return waiter_begin(w, timeout_ms);
}

struct ab_op *ab_proc_wait_text(struct ab_proc *p, const char *text, size_t len,
                                uint64_t timeout_ms)
{
    struct waiter *w = waiter_new(p, AB_PROC_DATA | AB_PROC_EXIT);
    w->text = ab_xstrndup(text, len);
    w->text_len = len;
    return waiter_begin(w, timeout_ms);
}

struct ab_proc *ab_proc_of(const struct ab_op *op)
{
    return AB_CONTAINER(op, const struct waiter, op)->proc;
}

/* ---- stdin ---- */

static void feed(struct ab_proc *p);

static void on_writable(uv_poll_t *h, int status, int events)
{
    struct port *port = h->data;
    (void)status;
    (void)events;
    feed(port->proc);
}

static void forget_input(struct ab_proc *p)
{
    ab_buf_clear(&p->input);
    p->written = 0;
}

/* A command that does not read its stdin to the end is not an error: the rest is
 * forgotten. */
static void feed(struct ab_proc *p)
{
    if (p->in.fd < 0)
        return;
    while (p->written < p->input.len) {
        size_t left = p->input.len - p->written;
        ssize_t n =
            write(p->in.fd, p->input.data + p->written, left < CHUNK ? left : CHUNK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            port_poll(&p->in, UV_WRITABLE, on_writable);
            return;
        }
        if (n < 0) {
            forget_input(p);
            port_close(&p->in);
            wake(p);
            return;
        }
        p->written += (size_t)n;
    }
    forget_input(p);
    port_pause(&p->in);
    if (!p->hold_stdin)
        port_close(&p->in);
    wake(p);
}

int ab_proc_write(struct ab_proc *p, const void *data, size_t len)
{
    if (p->result.over || (p->in.fd < 0 && !(p->tty && p->hold_stdin)))
        return -1;
    if (p->script.fd >= 0) {
        if (ab_script_append(&p->script, data, len) < 0)
            return -1;
        data = "\n";
        len = 1;
    }
    ab_buf_put(&p->input, data, len);
    feed(p);
    return 0;
}

void ab_proc_close_stdin(struct ab_proc *p)
{
    p->hold_stdin = false;
    feed(p);
}

/* ---- stdout, stderr ---- */

static void keep(struct ab_proc_stream *s, const char *data, size_t len)
{
    size_t room = s->buf.max > s->buf.len ? s->buf.max - s->buf.len : 0;
    size_t take = len < room ? len : room;
    if (take)
        ab_buf_put(&s->buf, data, take);
    s->dropped += len - take;
}

/* Beyond the cap nothing is looked at: the pipe is emptied into /dev/null without
 * copying. Gives what read() would, or -2 where that cannot be done: the caller then
 * reads and drops, since a reader that closes would end the command. */
static ssize_t discard(struct ab_proc *p, struct port *port)
{
    if (p->tty)
        return -2;
    if (p->null < 0) {
        int errnum = AB_FAULT("child.null");
        p->null = errnum ? -1 : open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (p->null < 0)
            return -2;
        fcntl(port->fd, F_SETPIPE_SZ, FLOOD_PIPE); /* fewer turns; it may be refused */
    }
    ssize_t n = splice(port->fd, NULL, p->null, NULL, FLOOD_PIPE, SPLICE_F_NONBLOCK);
    return n < 0 && errno == EINVAL ? -2 : n;
}

/* Reads once; false when there is nothing now or nothing ever again. */
static bool read_some(struct ab_proc *p, struct port *port, struct ab_proc_stream *s,
                      size_t *total)
{
    char chunk[CHUNK];
    size_t want = sizeof chunk;
    if (p->interactive && s == &p->streams[0] && !p->result.over) {
        size_t room = s->buf.max - s->buf.len;
        want = room < want ? room : want;
        if (want == 0) {
            port_pause(port);
            return false;
        }
    }
    ssize_t n = -2;
    if (!p->interactive && s->buf.len == s->buf.max && (n = discard(p, port)) > 0) {
        s->dropped += (size_t)n;
        *total += (size_t)n;
        return true;
    }
    if (n == -2)
        n = read(port->fd, chunk, want);
    if (n > 0) {
        keep(s, chunk, (size_t)n);
        *total += (size_t)n;
        return true;
    }
    if (n < 0 && errno == EINTR)
        return true;
    if (n < 0 && errno == EAGAIN)
        return false;
    s->eof = true; /* a terminal says EIO when its last user is gone */
    port_close(port);
    return false;
}

static void on_readable(uv_poll_t *h, int status, int events)
{
    struct port *port = h->data;
    struct ab_proc *p = port->proc;
    size_t total = 0;
    (void)status;
    (void)events;
    struct ab_proc_stream *s = &p->streams[port == &p->err];
    p->refs++;
    /* A read that gave less than it might have emptied the pipe, as a rule. */
    for (size_t i = 1; i <= READS_A_TURN && port->fd >= 0 &&
                       read_some(p, port, s, &total) && total >= i * CHUNK;
         i++)
        ;
    wake(p);
    proc_drop(p);
}

struct ab_proc_stream *ab_proc_stream(struct ab_proc *p, bool err)
{
    return &p->streams[err];
}

void ab_proc_consume(struct ab_proc *p, bool err, size_t len)
{
    ab_buf_consume(&p->streams[err].buf, len);
    port_poll(err ? &p->err : &p->out, UV_READABLE, on_readable);
}

void ab_proc_stop_reading(struct ab_proc *p)
{
    p->interactive = false;
    port_poll(&p->out, UV_READABLE, on_readable);
    port_poll(&p->err, UV_READABLE, on_readable);
}

/* ---- the end ---- */

static void on_timer_closed(uv_handle_t *h)
{
    proc_drop(h->data);
}

static void drain(struct ab_proc *p, struct port *port, struct ab_proc_stream *s)
{
    size_t total = 0;
    while (port->fd >= 0 && total < DRAIN_MAX && read_some(p, port, s, &total))
        ;
    s->eof = true;
    port_close(port);
}

static void finish(struct ab_proc *p)
{
    if (p->result.over)
        return;
    p->result.over = true;
    p->loop->commands--;
    /* One to which no KILL was sent can be used again. */
    if (p->ctl)
        ab_control_close(p->ctl, p->kept && !p->result.killed ? p->tally : NULL);
    p->ctl = NULL;
    ab_tally_leave(p->tally, p->leaf, p->told ? AB_LEAF_OVER : AB_LEAF_GIVEN_UP);
    p->tally = NULL;
    if (p->interactive) /* its reader is slow, and gets what the pipe holds all the same
                         */
        p->streams[0].buf.max += DRAIN_MAX;
    drain(p, &p->out, &p->streams[0]);
    drain(p, &p->err, &p->streams[1]);
    port_close(&p->in);
    forget_input(p);
    if (p->timer_open) {
        p->timer_open = false;
        uv_close((uv_handle_t *)&p->timer, on_timer_closed);
    }
    wake(p);
    proc_drop(p);
}

static void send_control(struct ab_proc *p, const uint8_t *buf, long n)
{
    if (p->ctl)
        ab_control_send(p->ctl, buf, n);
}

static void watch_pipes(struct ab_proc *p)
{
    p->unwatched = false;
    port_poll(&p->out, UV_READABLE, on_readable);
    port_poll(&p->err, UV_READABLE, on_readable);
}

static void on_timer(uv_timer_t *t)
{
    struct ab_proc *p = t->data;
    uint64_t now = uv_now(&p->loop->uv);
    p->refs++;
    if (p->unwatched)
        watch_pipes(p);
    if (p->deadline_ms > now) {
        uv_timer_start(t, on_timer, p->deadline_ms - now, 0);
    } else if (!p->deadline_ms) {
        ; /* it may take as long as it wants */
    } else if (p->overdue++ < LAST_LOOKS) {
        uv_timer_start(t, on_timer, 1, 0);
    } else if (p->result.killed) {
        p->result.lost = true;
        finish(p);
    } else {
        p->result.timed_out = true;
        ab_proc_kill(p);
    }
    proc_drop(p);
}

/* A fiber may have computed since the loop looked at the clock. */
static void start_timer(struct ab_proc *p, uint64_t ms)
{
    uv_update_time(&p->loop->uv);
    if (!p->timer_open) {
        uv_timer_init(&p->loop->uv, &p->timer);
        p->timer.data = p;
        p->timer_open = true;
        p->refs++;
    }
    uv_timer_start(&p->timer, on_timer, ms, 0);
}

static void set_deadline(struct ab_proc *p, uint64_t ms)
{
    start_timer(p, ms);
    p->deadline_ms = uv_now(&p->loop->uv) + ms;
    p->overdue = 0;
}

static void begin_watching(struct ab_proc *p, uint64_t timeout_ms)
{
    uint64_t patience = p->loop->commands;
    if (patience < MANY)
        patience = PATIENCE_MS;
    if (patience > PATIENCE_MOST_MS)
        patience = PATIENCE_MOST_MS;
    p->unwatched = !p->interactive;
    if (timeout_ms)
        set_deadline(p, timeout_ms);
    if (p->interactive)
        watch_pipes(p);
    else if (!timeout_ms || timeout_ms > patience)
        start_timer(p, patience);
}

void ab_proc_kill(struct ab_proc *p)
{
    uint8_t buf[16];
    if (p->result.over || p->result.killed)
        return;
    p->result.killed = true;
    send_control(p, buf, ab_wire_put_bare(buf, sizeof buf, AB_WIRE_KILL));
    set_deadline(p, DEATH_MS);
}

static void set_size(struct ab_proc *p)
{
    if (p->out.fd >= 0 && p->size.ws_row)
        ioctl(p->out.fd, TIOCSWINSZ, &p->size);
}

/* The kernel tells the program with SIGWINCH. */
void ab_proc_resize(struct ab_proc *p, unsigned rows, unsigned cols)
{
    if (!p->tty)
        return;
    p->size =
        (struct winsize){.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};
    set_size(p);
}

static void take_exit(struct ab_proc *p, const uint8_t *buf, size_t len)
{
    struct ab_wire_exit m;
    struct ab_proc_result *r = &p->result;
    if (ab_wire_get_exit(buf, len, &m) < 0) {
        r->lost = true;
    } else {
        r->code = m.code;
        r->signal = m.signal;
        r->errnum = m.errnum;
        r->no_exec = m.flags & AB_WIRE_NO_EXEC;
        r->user_us = m.user_us;
        r->system_us = m.system_us;
        r->max_rss_bytes = m.max_rss_bytes;
        r->wall_us = m.wall_us;
        p->told = true;
        p->kept = p->tally && (m.flags & AB_WIRE_KEPT);
    }
    finish(p);
}

static void take_terminal(struct ab_proc *p, int *fds, int nfds)
{
    if (!p->tty || p->out.fd >= 0 || nfds != 1) {
        ab_wire_close_fds(fds, nfds);
        return;
    }
    port_hold(p, &p->in, fcntl(fds[0], F_DUPFD_CLOEXEC, 3));
    port_hold(p, &p->out, fds[0]);
    set_size(p);
    port_poll(&p->out, UV_READABLE, on_readable);
    feed(p);
}

static void on_control(void *user, const uint8_t *buf, long n, int *fds, int nfds)
{
    struct ab_proc *p = user;
    p->refs++;
    if (n > 0 && ab_wire_type(buf, (size_t)n) == AB_WIRE_STARTED) {
        take_terminal(p, fds, nfds);
    } else {
        ab_wire_close_fds(fds, nfds);
        if (n > 0 && ab_wire_type(buf, (size_t)n) == AB_WIRE_EXIT) {
            take_exit(p, buf, (size_t)n);
        } else {
            p->result.lost = true;
            finish(p);
        }
    }
    proc_drop(p);
}

struct ab_proc *ab_proc_start(struct ab_loop *loop, const struct ab_child *child,
                              const struct ab_proc_opts *opts)
{
    struct ab_proc *p = ab_xcalloc(1, sizeof *p);
    p->loop = loop;
    p->refs = 1;
    loop->commands++;
    p->hold_stdin = opts->hold_stdin;
    p->interactive = opts->interactive;
    p->tty = child->tty;
    p->tally = child->tally;
    p->leaf = child->leaf;
    p->null = -1;
    p->script.fd = child->script;
    p->result.code = -1;
    ab_list_init(&p->waiters);
    ab_buf_init(&p->streams[0].buf, opts->max_output_bytes);
    ab_buf_init(&p->streams[1].buf, opts->max_output_bytes);
    ab_buf_init(&p->input, 0);
    if (opts->input_len)
        ab_buf_put(&p->input, opts->input, opts->input_len);
    free(opts->input);
    port_hold(p, &p->in, child->in);
    port_hold(p, &p->out, child->out);
    port_hold(p, &p->err, child->err);
    p->streams[1].eof = child->err < 0;
    p->ctl = ab_control_open(loop, child, on_control, p);
    p->refs++; /* until it is over */
    if (p->ctl) {
        begin_watching(p, opts->timeout_ms);
        feed(p);
    } else {
        p->result.lost = true;
        finish(p);
    }
    return p;
}

/* Closing the control socket is the kill: nothing is left to wait for. */
void ab_proc_unref(struct ab_proc *p)
{
    if (!p)
        return;
    if (!p->result.over && ab_list_empty(&p->waiters))
        finish(p);
    proc_drop(p);
}

const struct ab_proc_result *ab_proc_result(const struct ab_proc *p)
{
    return &p->result;
}
