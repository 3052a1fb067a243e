#include "rt/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "rt/http_client.h"

#define MAX_HEAD_BYTES     (256u << 10)
#define KEPT_BYTES         (64u << 10)  /* of a stream's buffer, between chunks */
#define STREAM_WATER_BYTES (256u << 10) /* a stream with this much unread is paused */

struct wait {
    struct ab_op op;
    struct ab_http_transfer *t; /* NULL when it is over for the waiter */
    enum ab_http_event event;
};

/* ---- the one who waits ---- */

static void wake(struct ab_http_transfer *t)
{
    struct wait *w = t->waiter;
    if (!w || !ab_http_ready(t, w->event))
        return;
    t->waiter = NULL;
    w->t = NULL;
    if (t->state == AB_HTTP_OVER && t->err.code != AB_OK)
        *ab_op_error(&w->op) = t->err;
    ab_op_done(&w->op);
}

static void stop_waiting(struct ab_op *op)
{
    struct wait *w = AB_CONTAINER(op, struct wait, op);
    struct ab_http_transfer *t = w->t;
    const struct ab_err cancelled = {.code = AB_ECANCELLED, .msg = "cancelled"};
    if (!t)
        return;
    t->waiter = NULL;
    w->t = NULL;
    ab_http_transfer_fail(t, &cancelled);
}

static const struct ab_op_class wait_class = {
    .name = "http",
    .stop = stop_waiting,
};

struct ab_op *ab_http_wait(struct ab_http_transfer *t, enum ab_http_event event)
{
    if (t->waiter || ab_http_ready(t, event))
        AB_BUG("wait for HTTP event %d", (int)event);
    struct wait *w = ab_xcalloc(1, sizeof *w);
    ab_op_init(&w->op, &wait_class, t->http->op.loop);
    w->t = t;
    w->event = event;
    t->waiter = w;
    return &w->op;
}

/* ---- the end ---- */

static void free_when_done(struct ab_http_transfer *t)
{
    if (!t->closed || !t->timer_closed)
        return;
    ab_buf_fini(&t->head);
    ab_buf_fini(&t->body);
    free(t->url);
    free(t);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct ab_http_transfer *t = handle->data;
    t->timer_closed = true;
    free_when_done(t);
}

static double seconds(struct ab_http_transfer *t, CURLINFO what)
{
    curl_off_t us = 0;
    t->http->lib.easy_getinfo(t->easy, what, &us);
    return (double)us / 1e6;
}

/* Curl's clock starts when it gets the transfer; ours when it left the queue. */
static void take_facts(struct ab_http_transfer *t)
{
    if (!t->admitted_ns)
        return;
    t->timing.total_s = (double)(uv_hrtime() - t->admitted_ns) / 1e9;
    if (!t->multi)
        return;
    double before = (double)(t->launched_ns - t->admitted_ns) / 1e9;
    double connect = seconds(t, CURLINFO_CONNECT_TIME_T);
    double tls = seconds(t, CURLINFO_APPCONNECT_TIME_T);
    double first = seconds(t, CURLINFO_STARTTRANSFER_TIME_T);
    t->timing.connect_s = connect > 0 ? before + connect : 0;
    t->timing.tls_s = tls > 0 ? before + tls : 0;
    t->timing.first_byte_s = first > 0 ? before + first : 0;
}

static void take_address(struct ab_http_transfer *t)
{
    char *url = NULL, *ip = NULL;
    t->http->lib.easy_getinfo(t->easy, CURLINFO_EFFECTIVE_URL, &url);
    t->http->lib.easy_getinfo(t->easy, CURLINFO_PRIMARY_IP, &ip);
    free(t->url);
    t->url = ab_xstrndup(url ? url : "", url ? strlen(url) : 0);
    snprintf(t->ip, sizeof t->ip, "%s", ip ? ip : "");
}

static void end(struct ab_http_transfer *t)
{
    struct ab_http *http = t->http;
    struct ab_http_host *host = t->host;
    take_facts(t);
    take_address(t);
    ab_http_multi_leave(t);
    http->lib.easy_cleanup(t->easy);
    http->lib.slist_free_all(t->headers);
    http->lib.slist_free_all(t->resolve);
    t->easy = NULL;
    t->headers = t->resolve = NULL;
    ab_list_remove(&t->link);
    ab_http_host_leave(host, t);
    t->http = NULL;
    t->host = NULL;
    t->state = AB_HTTP_OVER;
    uv_close((uv_handle_t *)&t->timer, on_timer_closed);
    wake(t);
}

void ab_http_transfer_fail(struct ab_http_transfer *t, const struct ab_err *err)
{
    if (t->state == AB_HTTP_OVER)
        return;
    t->err = *err;
    end(t);
}

void ab_http_transfers_drop(struct ab_http *http)
{
    const struct ab_err gone = {.code = AB_ECANCELLED,
                                .msg = "the HTTP client was closed"};
    while (!ab_list_empty(&http->transfers)) {
        struct ab_http_transfer *t =
            AB_CONTAINER(http->transfers.next, struct ab_http_transfer, link);
        if (t->waiter)
            t->waiter->op.on_done = NULL; /* the fiber may be gone before the client is */
        ab_http_transfer_fail(t, &gone);
    }
}

void ab_http_close(struct ab_http_transfer *t)
{
    const struct ab_err closed = {.code = AB_ECANCELLED, .msg = "the stream was closed"};
    if (!t)
        return;
    ab_http_transfer_fail(t, &closed);
    t->closed = true;
    free_when_done(t);
}

/* The handle stays with the client: the connection goes with it. */
static void hand_over(struct ab_http_transfer *t)
{
    t->state = AB_HTTP_ANSWERING;
    t->phase = "connected";
    t->idle_ms = t->total_at = 0;
    t->head_done = true;
    uv_timer_stop(&t->timer);
    wake(t);
}

void ab_http_transfer_finish(struct ab_http_transfer *t, CURLcode code)
{
    if (t->bare && code == CURLE_OK) {
        hand_over(t);
        return;
    }
    if (code != CURLE_OK && t->err.code == AB_OK)
        ab_http_explain(t, code, &t->err);
    if (code == CURLE_OK && !t->head_done)
        ab_err_set(&t->err, AB_EPROTOCOL, "%.100s answered without a status",
                   t->host->name);
    end(t);
}

/* ---- deadlines ---- */

/* The next one to pass, in loop time, and its name. */
static uint64_t next_deadline(const struct ab_http_transfer *t, const char **what)
{
    uint64_t length = 0, at = UINT64_MAX;
    *what = "no";
    if (t->state == AB_HTTP_RESOLVING || t->state == AB_HTTP_CONNECTING) {
        *what = "connect";
        length = t->connect_ms;
    } else if (t->state == AB_HTTP_ASKING) {
        *what = "first byte";
        length = t->first_byte_ms;
    } else if (t->state == AB_HTTP_ANSWERING && !t->paused) {
        *what = "silence";
        length = t->idle_ms;
    }
    if (length)
        at = t->phase_at + length;
    if (t->total_at && t->total_at < at) {
        *what = "total";
        at = t->total_at;
    }
    return at;
}

static void on_deadline(uv_timer_t *timer);

/* Called when a phase begins; a byte that arrives only moves phase_at, the timer finds
 * out. */
static void arm(struct ab_http_transfer *t)
{
    const char *what;
    uint64_t now = uv_now(&t->http->op.loop->uv);
    uint64_t at = next_deadline(t, &what);
    if (at == UINT64_MAX)
        uv_timer_stop(&t->timer);
    else
        uv_timer_start(&t->timer, on_deadline, at > now ? at - now : 0, 0);
}

static void on_deadline(uv_timer_t *timer)
{
    struct ab_http_transfer *t = timer->data;
    const char *what;
    struct ab_err err;
    uint64_t now = uv_now(timer->loop), at = next_deadline(t, &what);
    if (at > now) {
        arm(t);
        return;
    }
    uint64_t length = strcmp(what, "total") == 0 ? t->total_ms : now - t->phase_at;
    ab_err_set(&err, AB_ETIMEOUT, "%s deadline passed after %.1f s (%.100s, phase %s)",
               what, (double)length / 1e3, t->host->name, t->phase);
    ab_http_transfer_fail(t, &err);
}

static void enter_phase(struct ab_http_transfer *t, enum transfer_state state,
                        const char *phase)
{
    t->state = state;
    t->phase = phase;
    t->phase_at = uv_now(&t->http->op.loop->uv);
    arm(t);
}

/* ---- curl's callbacks ---- */

static int on_connected(void *arg, char *ip, char *local_ip, int port, int local_port)
{
    struct ab_http_transfer *t = arg;
    (void)ip, (void)local_ip, (void)port, (void)local_port;
    enter_phase(t, AB_HTTP_ASKING, "send");
    return CURL_PREREQFUNC_OK;
}

static void end_of_head(struct ab_http_transfer *t)
{
    if ((t->status >= 100 && t->status < 200) || t->redirected)
        return;
    t->head_done = true;
    take_address(t);
    wake(t);
}

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 ||
           status == 308;
}

static void note_header(struct ab_http_transfer *t, const char *line, size_t n)
{
    if (n > 12 && strncasecmp(line, "HTTP/", 5) == 0) {
        ab_buf_clear(&t->head);
        t->status = atoi(line + strcspn(line, " "));
        t->redirected = false;
    } else if (is_redirect(t->status) && t->redirects_left > 0 && n > 9 &&
               strncasecmp(line, "Location:", 9) == 0) {
        t->redirected = true;
        t->redirects_left--;
    }
}

static size_t on_header(char *line, size_t size, size_t n, void *arg)
{
    struct ab_http_transfer *t = arg;
    n *= size;
    if (t->head_done) /* a trailer */
        return n;
    if (t->state != AB_HTTP_ANSWERING)
        enter_phase(t, AB_HTTP_ANSWERING, "receive");
    t->phase_at = uv_now(&t->http->op.loop->uv);
    note_header(t, line, n);
    if (ab_buf_append(&t->head, line, n, &t->err) < 0)
        return 0;
    if (n <= 2 && (line[0] == '\r' || line[0] == '\n'))
        end_of_head(t);
    return n;
}

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
    struct ab_http_transfer *t = arg;
    n *= size;
    if (t->stream && t->body.len >= STREAM_WATER_BYTES) {
        t->paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    t->phase_at = uv_now(&t->http->op.loop->uv);
    if (t->max_body_bytes && t->body_bytes + n > t->max_body_bytes) {
        ab_err_set(&t->err, AB_ETOOBIG, "the body exceeds %llu bytes",
                   (unsigned long long)t->max_body_bytes);
        return 0;
    }
    ab_buf_put(&t->body, data, n);
    t->body_bytes += n;
    wake(t);
    return n;
}

/* ---- the beginning ---- */

void ab_http_transfer_admitted(struct ab_http_transfer *t)
{
    t->admitted_ns = uv_hrtime();
    t->timing.queue_s = (double)(t->admitted_ns - t->started_ns) / 1e9;
    t->total_at = t->total_ms ? uv_now(&t->http->op.loop->uv) + t->total_ms : 0;
    enter_phase(t, AB_HTTP_RESOLVING, "resolve");
}

void ab_http_transfer_launch(struct ab_http_transfer *t)
{
    struct ab_http *http = t->http;
    struct ab_err err;
    t->launched_ns = uv_hrtime();
    t->timing.dns_s = (double)(t->launched_ns - t->admitted_ns) / 1e9;
    if (!t->host->numeric) {
        struct ab_buf line;
        ab_buf_init(&line, 0);
        ab_buf_put(&line, t->host->name, strlen(t->host->name));
        ab_buf_putc(&line, ':');
        ab_buf_put(&line, t->host->port, strlen(t->host->port));
        ab_buf_putc(&line, ':');
        ab_buf_put(&line, t->host->addresses, strlen(t->host->addresses));
        t->resolve = http->lib.slist_append(NULL, line.data);
        ab_buf_fini(&line);
        http->lib.easy_setopt(t->easy, CURLOPT_RESOLVE, t->resolve);
    }
    /* The connect deadline goes on from where the lookup began. */
    t->state = AB_HTTP_CONNECTING;
    t->phase = "connect";
    if (ab_http_multi_join(t, &err) < 0)
        ab_http_transfer_fail(t, &err);
}

static void set_callbacks(struct ab_http_transfer *t)
{
    const struct ab_http_lib *lib = &t->http->lib;
    lib->easy_setopt(t->easy, CURLOPT_PREREQFUNCTION, on_connected);
    lib->easy_setopt(t->easy, CURLOPT_PREREQDATA, t);
    lib->easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, on_header);
    lib->easy_setopt(t->easy, CURLOPT_HEADERDATA, t);
    lib->easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, on_body);
    lib->easy_setopt(t->easy, CURLOPT_WRITEDATA, t);
}

struct ab_http_transfer *ab_http_start(struct ab_http *http,
                                       const struct ab_http_spec *spec,
                                       struct ab_err *err)
{
    struct ab_http_transfer *t = ab_xcalloc(1, sizeof *t);
    uv_update_time(&http->op.loop->uv); /* a script may have computed for long */
    t->http = http;
    t->started_ns = uv_hrtime();
    t->stream = spec->stream;
    t->bare = spec->bare;
    t->connect_ms = spec->connect_ms;
    t->first_byte_ms = spec->first_byte_ms;
    t->idle_ms = spec->idle_ms;
    t->total_ms = spec->total_ms;
    t->host_limit = spec->host_limit;
    t->redirects_left = spec->max_redirects;
    t->max_body_bytes = spec->max_body_bytes;
    t->phase = "queue";
    ab_buf_init(&t->head, MAX_HEAD_BYTES);
    ab_buf_init(&t->body, 0);
    ab_list_init(&t->link);
    ab_list_init(&t->host_link);
    if (ab_http_options_apply(t, spec, err) < 0) {
        http->lib.slist_free_all(t->headers);
        http->lib.easy_cleanup(t->easy);
        free(t);
        return NULL;
    }
    set_callbacks(t);
    uv_timer_init(&http->op.loop->uv, &t->timer);
    t->timer.data = t;
    ab_list_append(&http->transfers, &t->link);
    arm(t);
    ab_http_host_enter(t->host, t);
    return t;
}

/* ---- what arrived ---- */

bool ab_http_ready(const struct ab_http_transfer *t, enum ab_http_event event)
{
    if (t->state == AB_HTTP_OVER)
        return true;
    return event == AB_HTTP_HEAD ? t->head_done
                                 : event == AB_HTTP_CHUNK && t->body.len > 0;
}

bool ab_http_waiting(const struct ab_http_transfer *t)
{
    return t->waiter != NULL;
}

int ab_http_status(const struct ab_http_transfer *t)
{
    return t->head_done ? t->status : 0;
}

const char *ab_http_head(const struct ab_http_transfer *t, size_t *bytes)
{
    *bytes = t->head.len;
    return t->head.data ? t->head.data : "";
}

const char *ab_http_body(const struct ab_http_transfer *t, size_t *bytes)
{
    *bytes = t->body.len;
    return t->body.data ? t->body.data : "";
}

const char *ab_http_url(const struct ab_http_transfer *t)
{
    return t->url ? t->url : "";
}

const char *ab_http_ip(const struct ab_http_transfer *t)
{
    return t->ip;
}

const char *ab_http_phase(const struct ab_http_transfer *t)
{
    return t->phase;
}

struct ab_http_timing ab_http_timing(const struct ab_http_transfer *t)
{
    return t->timing;
}

const struct ab_err *ab_http_error(const struct ab_http_transfer *t)
{
    return t->state == AB_HTTP_OVER && t->err.code != AB_OK ? &t->err : NULL;
}

void ab_http_consume(struct ab_http_transfer *t)
{
    if (t->body.cap > KEPT_BYTES)
        ab_buf_fini(&t->body);
    else
        ab_buf_clear(&t->body);
    if (t->state == AB_HTTP_OVER || !t->paused)
        return;
    t->paused = false;
    t->phase_at = uv_now(&t->http->op.loop->uv);
    arm(t);
    CURLcode code =
        t->http->lib.easy_pause(t->easy, CURLPAUSE_CONT); /* may call on_body */
    if (code != CURLE_OK)
        ab_http_transfer_finish(t, code);
}
