#include "rt/http_client.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Connections kept for reuse, with those in use: beyond it each that becomes free is
 * closed. Curl's own default, four for each handle, closes them under a thousand rollouts
 * whose models think. */
#define KEPT_CONNECTIONS 16384L

struct socket_watch {
    uv_poll_t poll;
    struct ab_http *http; /* borrowed */
    curl_socket_t fd;
};

static void harvest(struct ab_http *http)
{
    CURLMsg *msg;
    int left;
    while ((msg = http->lib.multi_info_read(http->multi, &left))) {
        struct ab_http_transfer *t = NULL;
        CURLcode code = msg->data.result;
        if (msg->msg != CURLMSG_DONE)
            continue;
        http->lib.easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &t);
        ab_http_transfer_finish(t, code);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct ab_http *http = timer->data;
    int running;
    http->lib.multi_socket_action(http->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    harvest(http);
}

static int on_set_timer(CURLM *multi, long ms, void *arg)
{
    struct ab_http *http = arg;
    (void)multi;
    if (http->closing)
        return 0;
    if (ms < 0)
        uv_timer_stop(&http->timer);
    else
        uv_timer_start(&http->timer, on_timer, (uint64_t)ms, 0);
    return 0;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct socket_watch *w = poll->data;
    struct ab_http *http = w->http;
    int flags = 0, running;
    if (status < 0) /* libuv reports POLLERR this way; curl finds out which error it is */
        flags = CURL_CSELECT_ERR;
    if (events & UV_READABLE)
        flags |= CURL_CSELECT_IN;
    if (events & UV_WRITABLE)
        flags |= CURL_CSELECT_OUT;
    http->lib.multi_socket_action(http->multi, w->fd, flags, &running);
    harvest(http);
}

static void on_watch_closed(uv_handle_t *handle)
{
    free(handle->data);
}

/* Before the descriptor is closed: libuv aborts when epoll meets a closed one. */
static void unwatch(struct ab_http *http, curl_socket_t fd)
{
    if ((size_t)fd >= http->watch_count || !http->watches[fd])
        return;
    struct socket_watch *w = http->watches[fd];
    http->watches[fd] = NULL;
    uv_poll_stop(&w->poll);
    uv_close((uv_handle_t *)&w->poll, on_watch_closed);
}

static struct socket_watch *watch(struct ab_http *http, curl_socket_t fd)
{
    size_t slot = (size_t)fd;
    if (slot >= http->watch_count) {
        size_t n = slot + 64;
        http->watches = ab_xrealloc(http->watches, n * sizeof *http->watches);
        memset(http->watches + http->watch_count, 0,
               (n - http->watch_count) * sizeof *http->watches);
        http->watch_count = n;
    }
    if (http->watches[slot])
        return http->watches[slot];
    struct socket_watch *w = ab_xcalloc(1, sizeof *w);
    if (uv_poll_init(&http->op.loop->uv, &w->poll, fd) < 0) {
        free(w);
        return NULL;
    }
    w->http = http;
    w->fd = fd;
    w->poll.data = w;
    http->watches[slot] = w;
    return w;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *unused)
{
    struct ab_http *http = arg;
    (void)easy;
    (void)unused;
    if (what == CURL_POLL_REMOVE || http->closing) {
        unwatch(http, fd);
        return 0;
    }
    int events = 0;
    if (what & CURL_POLL_IN)
        events |= UV_READABLE;
    if (what & CURL_POLL_OUT)
        events |= UV_WRITABLE;
    struct socket_watch *w = watch(http, fd);
    if (w) /* otherwise the transfer's deadline ends it; -1 here would end every transfer
            */
        uv_poll_start(&w->poll, events, on_poll);
    return 0;
}

/* A connection belongs to no transfer any more when it is closed, and curl asks the
 * handle that opened it: so each handle has this, and the client is the argument. */
static int on_close_socket(void *arg, curl_socket_t fd)
{
    unwatch(arg, fd);
    return close(fd);
}

void ab_http_multi_prepare(struct ab_http *http, CURL *easy)
{
    http->lib.easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close_socket);
    http->lib.easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, http);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct ab_http *http = handle->data;
    free(http->watches);
    http->watches = NULL;
    ab_op_unref(&http->op);
}

static void stop(struct ab_op *op)
{
    struct ab_http *http = AB_CONTAINER(op, struct ab_http, op);
    http->closing = true;
    ab_http_transfers_drop(http);
    ab_http_hosts_fini(http);
    http->lib.multi_cleanup(http->multi);
    http->lib.global_cleanup();
    uv_close((uv_handle_t *)&http->timer, on_timer_closed);
}

static const struct ab_op_class client_class = {
    .name = "http client",
    .stop = stop,
};

static CURLM *open_multi(struct ab_http *http)
{
    CURLM *multi = http->lib.multi_init();
    if (!multi)
        AB_BUG("out of memory (curl_multi_init)");
    http->lib.multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    http->lib.multi_setopt(multi, CURLMOPT_SOCKETDATA, http);
    http->lib.multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_set_timer);
    http->lib.multi_setopt(multi, CURLMOPT_TIMERDATA, http);
    http->lib.multi_setopt(multi, CURLMOPT_MAXCONNECTS, KEPT_CONNECTIONS);
    http->lib.multi_setopt(multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
    return multi;
}

struct ab_http *ab_http_new(struct ab_loop *loop, struct ab_err *err)
{
    struct ab_http_lib lib;
    if (ab_http_lib_load(&lib, err) < 0)
        return NULL;
    struct ab_http *http = ab_xcalloc(1, sizeof *http);
    http->lib = lib;
    ab_list_init(&http->transfers);
    ab_list_init(&http->hosts);
    ab_op_init(&http->op, &client_class, loop);
    ab_op_ref(&http->op); /* the loop's; dropped in on_timer_closed */
    uv_timer_init(&loop->uv, &http->timer);
    http->timer.data = http;
    http->multi = open_multi(http);
    return http;
}

void ab_http_free(struct ab_http *http)
{
    if (!http)
        return;
    ab_op_cancel(&http->op);
    ab_op_unref(&http->op);
}

void ab_http_forget(struct ab_http *http)
{
    if (!ab_list_empty(&http->transfers) || http->closing)
        return;
    http->lib.multi_cleanup(http->multi);
    uv_timer_stop(&http->timer);
    http->multi = open_multi(http);
}

int64_t ab_http_date(struct ab_http *http, const char *text)
{
    return http->lib.getdate(text, NULL);
}
