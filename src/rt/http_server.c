#include "rt/http_server.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "rt/http_conn.h"

#define TICK_MS 100
#define BACKLOG 511

/* ---- bells ---- */

struct ring {
    struct ab_op op;
    struct ab_web_bell *bell; /* NULL when it has let go */
};

static void on_stop(struct ab_op *op)
{
    struct ring *r = AB_CONTAINER(op, struct ring, op);
    if (!r->bell)
        return;
    r->bell->op = NULL;
    r->bell = NULL;
    ab_op_unref(op);
}

static const struct ab_op_class ring_class = {.name = "http_server", .stop = on_stop};

struct ab_op *ab_web_bell_wait(struct ab_web_bell *bell, struct ab_loop *loop, bool now)
{
    struct ring *r = ab_xcalloc(1, sizeof *r);
    ab_op_init(&r->op, &ring_class, loop);
    if (bell->op)
        AB_BUG("two wait at one bell");
    if (now) {
        ab_op_done(&r->op);
        return &r->op;
    }
    r->bell = bell;
    bell->op = &r->op;
    ab_op_ref(&r->op);
    return &r->op;
}

void ab_web_ring(struct ab_web_bell *bell)
{
    struct ab_op *op = bell->op;
    if (!op)
        return;
    AB_CONTAINER(op, struct ring, op)->bell = NULL;
    bell->op = NULL;
    ab_op_done(op);
    ab_op_unref(op);
}

/* ---- time ---- */

static void on_tick(uv_timer_t *t)
{
    struct ab_web *web = t->data;
    uint64_t now = uv_now(&web->loop->uv);
    struct ab_list *it = web->conns.next;
    while (it != &web->conns) {
        struct ab_web_conn *c = AB_CONTAINER(it, struct ab_web_conn, link);
        it = it->next;
        ab_web_conn_tick(c, now);
    }
    if (ab_list_empty(&web->conns)) {
        uv_timer_stop(t);
        web->ticking = false;
    }
}

void ab_web_need_ticks(struct ab_web *web)
{
    if (web->ticking)
        return;
    web->ticking = true;
    uv_timer_start(&web->tick, on_tick, TICK_MS, TICK_MS);
}

/* ---- connections ---- */

/* One that waits for its next request makes room; else the new one waits until somebody
 * leaves. */
void ab_web_accept(struct ab_web *web)
{
    web->waiting = web->stats.open >= web->spec.connections;
    if (!web->waiting)
        ab_web_conn_start(web);
    else if (!ab_list_empty(&web->idle))
        ab_web_conn_close(AB_CONTAINER(web->idle.next, struct ab_web_conn, idle));
}

static void on_connection(uv_stream_t *h, int status)
{
    struct ab_web *web = h->data;
    if (status == 0 && !web->stopped)
        ab_web_accept(web);
}

/* ---- where it listens ---- */

static int fail(struct ab_err *err, int rc, const struct ab_web_spec *spec)
{
    if (spec->path)
        return ab_err_sys(err, -rc, "cannot listen on unix:%.100s", spec->path);
    return ab_err_sys(err, -rc, "cannot listen on %.60s port %u", spec->host, spec->port);
}

/* A socket that nobody listens at any more is in the way; anything else stays. */
static void remove_stale(const char *path)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    struct stat st;
    if (strlen(path) >= sizeof sa.sun_path || lstat(path, &st) < 0 ||
        !S_ISSOCK(st.st_mode))
        return;
    memcpy(sa.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    if (connect(fd, (struct sockaddr *)&sa, sizeof sa) < 0 && errno == ECONNREFUSED)
        unlink(path);
    close(fd);
}

static int bind_unix(struct ab_web *web)
{
    const char *path = web->spec.path;
    struct sockaddr_un sa;
    if (strlen(path) >= sizeof sa.sun_path)
        return UV_ENAMETOOLONG;
    remove_stale(path);
    int rc = uv_pipe_bind(&web->uv.pipe, path);
    if (rc < 0)
        return rc;
    return chmod(path, S_IRUSR | S_IWUSR) < 0 ? -errno : 0; /* nobody connects yet */
}

static int bind_tcp(struct ab_web *web)
{
    struct sockaddr_storage sa;
    const char *host = web->spec.host;
    if (!strcmp(host, "localhost"))
        host = "127.0.0.1";
    if (uv_ip4_addr(host, web->spec.port, (struct sockaddr_in *)&sa) < 0 &&
        uv_ip6_addr(host, web->spec.port, (struct sockaddr_in6 *)&sa) < 0)
        return UV_EADDRNOTAVAIL;
    return uv_tcp_bind(&web->uv.tcp, (struct sockaddr *)&sa, 0);
}

static void copy_spec(struct ab_web *web, const struct ab_web_spec *spec)
{
    const char *from[] = {spec->path, spec->token, spec->cookie, spec->host};
    web->spec = *spec;
    for (int i = 0; i < 4; i++)
        web->strings[i] = from[i] ? ab_xstrndup(from[i], strlen(from[i])) : NULL;
    web->spec.path = web->strings[0];
    web->spec.token = web->strings[1];
    web->spec.cookie = web->strings[2];
    web->spec.host = web->strings[3];
    for (int i = 0; i < AB_WEB_OPEN && spec->open[i]; i++)
        web->spec.open[i] = web->opened[i] =
            ab_xstrndup(spec->open[i], strlen(spec->open[i]));
}

/* The engine needs descriptors too. */
static void bound_connections(struct ab_web *web)
{
    struct rlimit lim;
    if (getrlimit(RLIMIT_NOFILE, &lim) < 0 || lim.rlim_cur == RLIM_INFINITY)
        return;
    rlim_t most = lim.rlim_cur / 2;
    if (web->spec.connections > most)
        web->spec.connections = most ? (unsigned)most : 1;
}

/* ---- life ---- */

void ab_web_leave(struct ab_web *web)
{
    if (--web->users > 0)
        return;
    for (int i = 0; i < 4; i++)
        free(web->strings[i]);
    for (int i = 0; i < AB_WEB_OPEN; i++)
        free(web->opened[i]);
    free(web->piece);
    free(web);
}

static void on_handle_closed(uv_handle_t *h)
{
    ab_web_leave(h->data);
}

struct ab_web *ab_web_open(struct ab_loop *loop, const struct ab_web_spec *spec,
                           struct ab_err *err)
{
    struct ab_web *web = ab_xcalloc(1, sizeof *web);
    web->loop = loop;
    copy_spec(web, spec);
    bound_connections(web);
    ab_list_init(&web->conns);
    ab_list_init(&web->idle);
    ab_list_init(&web->ready);
    web->piece = ab_xcalloc(1, AB_WEB_PIECE);
    if (spec->path)
        uv_pipe_init(&loop->uv, &web->uv.pipe, 0);
    else
        uv_tcp_init(&loop->uv, &web->uv.tcp);
    uv_timer_init(&loop->uv, &web->tick);
    web->uv.handle.data = web->tick.data = web;
    web->users = 2;
    int rc = spec->path ? bind_unix(web) : bind_tcp(web);
    if (rc == 0)
        rc = uv_listen(&web->uv.stream, BACKLOG, on_connection);
    if (rc == 0)
        return web;
    fail(err, rc, spec);
    ab_web_close(web);
    return NULL;
}

void ab_web_stop(struct ab_web *web)
{
    if (web->stopped)
        return;
    web->stopped = true;
    uv_close(&web->uv.handle, on_handle_closed);
    while (!ab_list_empty(&web->idle))
        ab_web_conn_close(AB_CONTAINER(web->idle.next, struct ab_web_conn, idle));
    ab_web_ring(&web->bell);
}

void ab_web_close(struct ab_web *web)
{
    if (!web || web->closed)
        return;
    web->closed = true;
    ab_web_stop(web);
    while (!ab_list_empty(&web->conns))
        ab_web_conn_close(AB_CONTAINER(web->conns.next, struct ab_web_conn, link));
    struct ab_web_exchange *ex;
    while ((ex = ab_web_next(web)))
        ab_web_release(ex);
    uv_close((uv_handle_t *)&web->tick, on_handle_closed);
}

void ab_web_stats(const struct ab_web *web, struct ab_web_stats *out)
{
    *out = web->stats;
}

bool ab_web_stopped(const struct ab_web *web)
{
    return web->stopped;
}

void ab_web_print_address(const struct sockaddr_storage *sa, char *out, size_t size)
{
    char host[64] = "?";
    if (sa->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;
        uv_ip6_name(in6, host, sizeof host);
        snprintf(out, size, "[%s]:%u", host, ntohs(in6->sin6_port));
    } else {
        const struct sockaddr_in *in4 = (const struct sockaddr_in *)sa;
        uv_ip4_name(in4, host, sizeof host);
        snprintf(out, size, "%s:%u", host, ntohs(in4->sin_port));
    }
}

void ab_web_address(const struct ab_web *web, char *out, size_t size)
{
    struct sockaddr_storage sa = {.ss_family = AF_INET};
    int len = sizeof sa;
    if (web->spec.path) {
        snprintf(out, size, "unix:%s", web->spec.path);
        return;
    }
    uv_tcp_getsockname(&web->uv.tcp, (struct sockaddr *)&sa, &len);
    ab_web_print_address(&sa, out, size);
}

struct ab_op *ab_web_wait(struct ab_web *web)
{
    return ab_web_bell_wait(&web->bell, web->loop,
                            web->stopped || !ab_list_empty(&web->ready));
}

bool ab_web_has_waiter(const struct ab_web *web)
{
    return web->bell.op != NULL;
}

struct ab_web_exchange *ab_web_next(struct ab_web *web)
{
    if (ab_list_empty(&web->ready))
        return NULL;
    struct ab_list *first = web->ready.next;
    ab_list_remove(first);
    return AB_CONTAINER(first, struct ab_web_exchange, link);
}
