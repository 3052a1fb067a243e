#include "rt/control.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/wire.h"

struct ab_control {
    uv_poll_t uv;
    int fd;
    bool active; /* it is polling */
    ab_control_cb heard;
    void *user; /* NULL: it is kept */
};

static void on_closed(uv_handle_t *h)
{
    free(h->data);
}

static void unwatch(void *watch)
{
    struct ab_control *c = watch;
    uv_close((uv_handle_t *)&c->uv, on_closed);
}

static void on_readable(uv_poll_t *h, int status, int events)
{
    struct ab_control *c = h->data;
    uint8_t buf[AB_WIRE_MAX];
    int fds[AB_WIRE_FDS], nfds;
    (void)status;
    (void)events;
    if (!c->user) { /* the sandbox has ended; who uses it next finds that out */
        uv_poll_stop(h);
        c->active = false;
        return;
    }
    long n = ab_wire_recv(c->fd, buf, fds, &nfds, MSG_DONTWAIT);
    if (n != -EAGAIN)
        c->heard(c->user, buf, n, fds, nfds);
}

struct ab_control *ab_control_open(struct ab_loop *loop, const struct ab_child *child,
                                   ab_control_cb heard, void *user)
{
    struct ab_control *c = child->watch;
    if (!c) {
        c = ab_xcalloc(1, sizeof *c);
        c->fd = child->ctl;
        c->uv.data = c;
        if (uv_poll_init(&loop->uv, &c->uv, c->fd) < 0) {
            close(c->fd);
            free(c);
            return NULL;
        }
    }
    c->heard = heard;
    c->user = user;
    uv_ref((uv_handle_t *)&c->uv);
    if (!c->active)
        uv_poll_start(&c->uv, UV_READABLE, on_readable);
    c->active = true;
    return c;
}

void ab_control_send(struct ab_control *c, const uint8_t *buf, long n)
{
    if (n > 0)
        ab_wire_send(c->fd, buf, (size_t)n, NULL, 0, MSG_DONTWAIT);
}

void ab_control_close(struct ab_control *c, struct ab_tally *keep)
{
    if (keep && keep->kept < 0) {
        c->user = NULL;
        uv_unref((uv_handle_t *)&c->uv);
        keep->kept = c->fd;
        keep->watch = c;
        keep->unwatch = unwatch;
        return;
    }
    int fd = c->fd;
    unwatch(c);
    close(fd);
}
