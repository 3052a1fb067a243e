#include "rt/http_client.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Connections kept for reuse, with those in use: beyond it each that becomes free is
 * closed. Curl's own default, four for each handle, closes them under a thousand rollouts
 * whose models think. */
#define KEPT_CONNECTIONS 16384L

/* Transfers of one multi handle. For each new one curl looks at all connections to that
 * host that it keeps, those in use too: among two thousand a request took half as long
 * again. */
#define MULTI_TRANSFERS 128

/* A socket on the loop. That of a connection stays there between two transfers, but holds
 * nobody up: taking it off and putting it on takes seven system calls. */
struct socket_watch {
    uv_poll_t poll;
    struct ab_http_multi *multi; /* borrowed */
    curl_socket_t fd;
    bool is_connection; /* else curl closes it without a word, */
    ino_t ino;          /* as some versions do with one that is not connected yet */
    bool open;          /* the handle exists */
    bool resting;       /* no transfer has it */
    int events;         /* asked for; 0: none */
};

static void harvest(struct ab_http_multi *m)
{
    const struct ab_http_lib *lib = &m->http->lib;
    CURLMsg *msg;
    int left;
    while ((msg = lib->multi_info_read(m->handle, &left))) {
        struct ab_http_transfer *t = NULL;
        CURLcode code = msg->data.result;
        if (msg->msg != CURLMSG_DONE)
            continue;
        lib->easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &t);
        ab_http_transfer_finish(t, code);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct ab_http_multi *m = timer->data;
    int running;
    m->http->lib.multi_socket_action(m->handle, CURL_SOCKET_TIMEOUT, 0, &running);
    harvest(m);
}

static int on_set_timer(CURLM *multi, long ms, void *arg)
{
    struct ab_http_multi *m = arg;
    (void)multi;
    if (m->http->closing)
        return 0;
    if (ms < 0)
        uv_timer_stop(&m->timer);
    else
        uv_timer_start(&m->timer, on_timer, (uint64_t)ms, 0);
    return 0;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct socket_watch *w = poll->data;
    struct ab_http_multi *m = w->multi;
    int flags = 0, running;
    if (w->resting || status < 0) { /* it was closed, which curl finds out when it wants
                                     * it; and after POLLERR libuv watches no more */
        uv_poll_stop(poll);
        w->events = 0;
    }
    if (w->resting)
        return;
    if (status < 0)
        flags = CURL_CSELECT_ERR;
    if (events & UV_READABLE)
        flags |= CURL_CSELECT_IN;
    if (events & UV_WRITABLE)
        flags |= CURL_CSELECT_OUT;
    m->http->lib.multi_socket_action(m->handle, w->fd, flags, &running);
    harvest(m);
}

static void on_watch_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static struct socket_watch *watch_of(const struct ab_http *http, curl_socket_t fd)
{
    return (size_t)fd < http->watch_count ? http->watches[fd] : NULL;
}

/* Before the descriptor is closed: libuv aborts when epoll meets a closed one. */
static void unwatch(struct ab_http *http, curl_socket_t fd)
{
    struct socket_watch *w = watch_of(http, fd);
    if (!w)
        return;
    http->watches[fd] = NULL;
    if (w->open) {
        uv_poll_stop(&w->poll);
        uv_close((uv_handle_t *)&w->poll, on_watch_closed);
    } else {
        free(w);
    }
}

static struct socket_watch *new_watch(struct ab_http *http, curl_socket_t fd)
{
    size_t slot = (size_t)fd;
    if (slot >= http->watch_count) {
        size_t n = slot + 64;
        http->watches = ab_xrealloc(http->watches, n * sizeof *http->watches);
        memset(http->watches + http->watch_count, 0,
               (n - http->watch_count) * sizeof *http->watches);
        http->watch_count = n;
    }
    struct socket_watch *w = ab_xcalloc(1, sizeof *w);
    w->fd = fd;
    http->watches[slot] = w;
    return w;
}

void ab_http_multi_opened(struct ab_http *http, curl_socket_t fd)
{
    struct stat st;
    unwatch(http, fd);
    if (fstat(fd, &st) < 0)
        return;
    struct socket_watch *w = new_watch(http, fd);
    w->is_connection = true;
    w->ino = st.st_ino;
}

/* Its number may be another file's by now, which another thread has opened. */
static bool is_open(const struct socket_watch *w)
{
    struct stat st;
    return fstat(w->fd, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_ino == w->ino;
}

static void rest(struct ab_http *http, struct socket_watch *w)
{
    if (!w->is_connection || !is_open(w)) {
        unwatch(http, w->fd);
        return;
    }
    if (w->open && !w->resting)
        uv_unref((uv_handle_t *)&w->poll);
    w->resting = w->open;
}

static void watch(struct ab_http_multi *m, struct socket_watch *w, int events)
{
    w->multi = m;
    if (!w->open && uv_poll_init(&m->http->op.loop->uv, &w->poll, w->fd) < 0)
        return; /* the transfer's deadline ends it; -1 to curl would end every transfer */
    w->poll.data = w;
    w->open = true;
    if (w->resting)
        uv_ref((uv_handle_t *)&w->poll);
    w->resting = false;
    if (w->events != events)
        uv_poll_start(&w->poll, events, on_poll);
    w->events = events;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *unused)
{
    struct ab_http_multi *m = arg;
    struct socket_watch *w = watch_of(m->http, fd);
    (void)easy;
    (void)unused;
    if (m->http->closing) {
        unwatch(m->http, fd);
    } else if (what == CURL_POLL_REMOVE) {
        if (w)
            rest(m->http, w);
    } else {
        int events = (what & CURL_POLL_IN ? UV_READABLE : 0) |
                     (what & CURL_POLL_OUT ? UV_WRITABLE : 0);
        watch(m, w ? w : new_watch(m->http, fd), events);
    }
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

/* ---- which one ---- */

static struct ab_http_multi *open_multi(struct ab_http *http)
{
    const struct ab_http_lib *lib = &http->lib;
    struct ab_http_multi *m = ab_xcalloc(1, sizeof *m);
    m->handle = lib->multi_init();
    if (!m->handle)
        AB_BUG("out of memory (curl_multi_init)");
    lib->multi_setopt(m->handle, CURLMOPT_SOCKETFUNCTION, on_socket);
    lib->multi_setopt(m->handle, CURLMOPT_SOCKETDATA, m);
    lib->multi_setopt(m->handle, CURLMOPT_TIMERFUNCTION, on_set_timer);
    lib->multi_setopt(m->handle, CURLMOPT_TIMERDATA, m);
    lib->multi_setopt(m->handle, CURLMOPT_MAXCONNECTS, KEPT_CONNECTIONS);
    lib->multi_setopt(m->handle, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
    uv_timer_init(&http->op.loop->uv, &m->timer);
    m->timer.data = m;
    m->http = http;
    ab_op_ref(&http->op);
    return m;
}

/* The first with room, so that those that were opened first keep the connections that
 * are used. */
int ab_http_multi_join(struct ab_http_transfer *t, struct ab_err *err)
{
    struct ab_http_multi **at = &t->http->multis;
    while (*at && (*at)->running >= MULTI_TRANSFERS)
        at = &(*at)->next;
    if (!*at)
        *at = open_multi(t->http);
    CURLMcode rc = t->http->lib.multi_add_handle((*at)->handle, t->easy);
    if (rc != CURLM_OK)
        return ab_err_set(err, AB_EPROTOCOL, "curl_multi_add_handle: %d", (int)rc);
    t->multi = *at;
    t->multi->running++;
    return 0;
}

void ab_http_multi_leave(struct ab_http_transfer *t)
{
    if (!t->multi)
        return;
    t->http->lib.multi_remove_handle(t->multi->handle, t->easy);
    t->multi->running--;
    t->multi = NULL;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct ab_http_multi *m = handle->data;
    ab_op_unref(&m->http->op);
    free(m);
}

static void close_multis(struct ab_http *http)
{
    while (http->multis) {
        struct ab_http_multi *m = http->multis;
        http->multis = m->next;
        http->lib.multi_cleanup(m->handle);
        uv_close((uv_handle_t *)&m->timer, on_timer_closed);
    }
}

/* ---- the client ---- */

static void stop(struct ab_op *op)
{
    struct ab_http *http = AB_CONTAINER(op, struct ab_http, op);
    http->closing = true;
    ab_http_transfers_drop(http);
    ab_http_hosts_fini(http);
    close_multis(http);
    http->lib.global_cleanup();
    free(http->watches);
    http->watches = NULL;
    http->watch_count = 0;
}

static const struct ab_op_class client_class = {
    .name = "http client",
    .stop = stop,
};

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
    if (ab_list_empty(&http->transfers) && !http->closing)
        close_multis(http);
}

int64_t ab_http_date(struct ab_http *http, const char *text)
{
    return http->lib.getdate(text, NULL);
}
