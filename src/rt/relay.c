#include "rt/relay.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/hello.h"

#define PIECE 32768
#define TURNS 8 /* pieces before others get their turn */

struct side {
    int fd; /* owns; -1 when there is none */
    uv_poll_t poll;
    bool open;  /* the handle is */
    int events; /* what it waits for */
    bool ended; /* it said its last */
    bool told;  /* that the other did */
    uint8_t *held;
    size_t held_len, held_at; /* not yet written to it */
};

struct ab_relay {
    struct ab_list link;
    struct ab_loop *loop;
    const struct ab_relay_class *cls; /* NULL once it is over */
    void *arg;
    struct ab_relay_target to;
    struct side in, out;
    int tried; /* addresses */
    int handles;
    bool connected, greeted;
    bool failed;
    uint64_t began_ms, moved_ms;
};

void ab_relay_refuse(int fd)
{
    struct linger now = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(fd);
}

static void on_closed(uv_handle_t *h)
{
    struct ab_relay *r = h->data;
    if (--r->handles == 0 && !r->cls)
        free(r);
}

static void close_side(struct side *s, bool reset)
{
    if (s->open)
        uv_close((uv_handle_t *)&s->poll, on_closed);
    s->open = false;
    if (s->fd >= 0 && reset)
        ab_relay_refuse(s->fd);
    else if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
    free(s->held);
    s->held = NULL;
    s->held_len = 0;
}

static void over(struct ab_relay *r, bool reset)
{
    const struct ab_relay_class *cls = r->cls;
    r->cls = NULL;
    ab_list_remove(&r->link);
    close_side(&r->in, reset);
    close_side(&r->out, reset);
    bool failed = r->failed;
    void *arg = r->arg;
    if (r->handles == 0)
        free(r);
    if (cls)
        cls->over(arg, failed);
}

static void on_side(uv_poll_t *h, int status, int events);

static void wait_for(struct ab_relay *r, struct side *s, int events)
{
    if (s->fd < 0 || s->events == events)
        return;
    s->events = events;
    if (!s->open) {
        if (uv_poll_init(&r->loop->uv, &s->poll, s->fd) < 0)
            return; /* it is ended when its time is over */
        s->poll.data = r;
        uv_unref((uv_handle_t *)&s->poll);
        s->open = true;
        r->handles++;
    }
    if (events)
        uv_poll_start(&s->poll, events, on_side);
    else
        uv_poll_stop(&s->poll);
}

/* Writes what is held for s; -1 on error, 1 when something is left. */
static int flush(struct side *s)
{
    while (s->held_len > s->held_at) {
        ssize_t n =
            send(s->fd, s->held + s->held_at, s->held_len - s->held_at, MSG_NOSIGNAL);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? 1 : -1;
        s->held_at += (size_t)n;
    }
    free(s->held);
    s->held = NULL;
    s->held_len = s->held_at = 0;
    return 0;
}

static void hold(struct side *s, const uint8_t *data, size_t len)
{
    if (len == 0)
        return;
    s->held = ab_xrealloc(s->held, s->held_len + len);
    memcpy(s->held + s->held_len, data, len);
    s->held_len += len;
}

static int pass(struct ab_relay *r, struct side *to, const uint8_t *data, size_t len)
{
    r->moved_ms = uv_now(&r->loop->uv);
    if (!r->cls->carried(r->arg, len))
        return -1;
    ssize_t n = send(to->fd, data, len, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        return -1;
    size_t done = n < 0 ? 0 : (size_t)n;
    if (done < len)
        hold(to, data + done, len - done);
    return 0;
}

/* Nothing is held for `to` any more. */
static int end(struct side *from, struct side *to)
{
    from->ended = true;
    if (!to->told)
        shutdown(to->fd, SHUT_WR);
    to->told = true;
    return 0;
}

/* One direction, as far as it goes now; -1 when the connection is over. */
static int copy(struct ab_relay *r, struct side *from, struct side *to)
{
    uint8_t piece[PIECE];
    for (int turn = 0; turn < TURNS; turn++) {
        int rc = flush(to);
        if (rc != 0)
            return rc < 0 ? -1 : 0;
        if (from->ended)
            return end(from, to);
        ssize_t n = recv(from->fd, piece, sizeof piece, 0);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -1;
        if (n == 0) /* told at once: after its end nothing wakes this direction again */
            return end(from, to);
        if (pass(r, to, piece, (size_t)n) < 0)
            return -1;
    }
    return 0;
}

static void move(struct ab_relay *r)
{
    if (copy(r, &r->in, &r->out) < 0 || copy(r, &r->out, &r->in) < 0) {
        over(r, true);
        return;
    }
    if (r->in.told && r->out.told) {
        over(r, false);
        return;
    }
    bool in_full = r->in.held_len > 0, out_full = r->out.held_len > 0;
    wait_for(r, &r->in,
             (r->in.ended || out_full ? 0 : UV_READABLE) | (in_full ? UV_WRITABLE : 0));
    wait_for(r, &r->out,
             (r->out.ended || in_full ? 0 : UV_READABLE) | (out_full ? UV_WRITABLE : 0));
}

/* What a client sends first is kept until it may go on: 1 it may, 0 not yet, -1 never. */
static int greet(struct ab_relay *r)
{
    uint8_t data[4096];
    char server[256];
    ssize_t n = recv(r->in.fd, data, sizeof data, 0);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    hold(&r->out, data, (size_t)n);
    r->in.ended = n == 0;
    switch (ab_hello_read(r->out.held, r->out.held_len, server)) {
    case AB_HELLO_NAMED:
        return r->cls->may_greet(r->arg, server, r->to.port) ? 1 : -1;
    case AB_HELLO_MORE:
        return !r->in.ended ? 0 : r->out.held_len ? -1 : 1;
    case AB_HELLO_BROKEN:
        r->cls->may_greet(r->arg, "", r->to.port);
        return -1;
    default:
        return 1;
    }
}

static void dial(struct ab_relay *r);

static void dialled(struct ab_relay *r)
{
    int error = 0;
    socklen_t len = sizeof error;
    getsockopt(r->out.fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (error) {
        dial(r);
        return;
    }
    r->connected = true;
    r->moved_ms = uv_now(&r->loop->uv);
    /* A server that speaks first is heard while the client has said nothing yet. */
    wait_for(r, &r->out, UV_READABLE);
}

static void server_first(struct ab_relay *r)
{
    if (copy(r, &r->out, &r->in) < 0) {
        over(r, true);
        return;
    }
    wait_for(r, &r->out, r->out.ended || r->in.held_len ? 0 : UV_READABLE);
    wait_for(r, &r->in, UV_READABLE | (r->in.held_len ? UV_WRITABLE : 0));
}

/* Whatever happened: what can be done now is. */
static void go_on(struct ab_relay *r)
{
    if (!r->greeted) {
        int rc = greet(r);
        if (rc < 0) {
            over(r, true);
            return;
        }
        r->greeted = rc > 0;
    }
    if (r->connected && r->greeted)
        move(r);
    else if (r->connected)
        server_first(r);
    else
        wait_for(r, &r->in, r->greeted ? 0 : UV_READABLE);
}

static void on_side(uv_poll_t *h, int status, int events)
{
    struct ab_relay *r = h->data;
    (void)events;
    if (!r->cls)
        return;
    if (status < 0) /* libuv stopped watching: reading or writing tells the reason */
        (h == &r->in.poll ? &r->in : &r->out)->events = 0;
    if (h == &r->out.poll && !r->connected) {
        dialled(r);
        if (!r->cls || !r->connected)
            return;
    }
    go_on(r);
}

static bool is_connected(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    return poll(&p, 1, 0) == 1 && p.revents == POLLOUT;
}

/* The next address, until one can be tried; a near one answers at once. */
static void dial(struct ab_relay *r)
{
    struct side *s = &r->out;
    while (r->tried < r->to.count) {
        struct sockaddr_storage sa;
        int one = 1;
        const struct ab_addr *addr = &r->to.addrs[r->tried++];
        socklen_t len = ab_addr_to(addr, r->to.port, &sa);
        int fd = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
            continue;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (connect(fd, (struct sockaddr *)&sa, len) < 0 && errno != EINPROGRESS) {
            close(fd);
            continue;
        }
        if (s->open) { /* its handle watches a number: that is given to the new one */
            uv_poll_stop(&s->poll);
            dup3(fd, s->fd, O_CLOEXEC);
            close(fd);
        } else {
            s->fd = fd;
        }
        s->events = 0;
        if (is_connected(s->fd))
            dialled(r);
        else
            wait_for(r, s, UV_WRITABLE);
        return;
    }
    r->failed = true;
    over(r, true);
}

void ab_relay_start(struct ab_loop *loop, struct ab_list *list, int inside,
                    const struct ab_relay_target *to, const struct ab_relay_class *cls,
                    void *arg)
{
    struct ab_relay *r = ab_xcalloc(1, sizeof *r);
    int one = 1;
    r->loop = loop;
    r->cls = cls;
    r->arg = arg;
    r->to = *to;
    r->greeted = !to->by_name;
    r->in.fd = inside;
    r->out.fd = -1;
    r->began_ms = r->moved_ms = uv_now(&loop->uv);
    setsockopt(inside, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    ab_list_append(list, &r->link);
    r->handles = 1; /* ours, so that it is not freed under us */
    dial(r);
    if (r->cls)
        go_on(r);
    if (--r->handles == 0 && !r->cls)
        free(r);
}

void ab_relay_expire(struct ab_list *list, uint64_t now_ms, uint64_t setup_ms,
                     uint64_t idle_ms)
{
    for (struct ab_list *l = list->next, *next; l != list; l = next) {
        struct ab_relay *r = AB_CONTAINER(l, struct ab_relay, link);
        next = l->next;
        if (now_ms - r->moved_ms > idle_ms ||
            (!r->connected && now_ms - r->began_ms > setup_ms))
            over(r, true);
    }
}

void ab_relay_end(struct ab_list *list)
{
    while (!ab_list_empty(list)) {
        struct ab_relay *r = AB_CONTAINER(list->next, struct ab_relay, link);
        r->cls = NULL; /* nobody is told */
        over(r, true);
    }
}
