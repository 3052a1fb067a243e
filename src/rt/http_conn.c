#include "rt/http_conn.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void feed(struct ab_web_conn *c, const char *data, size_t len);

/* ---- states ---- */

static void enter(struct ab_web_conn *c, enum ab_web_state state)
{
    struct ab_web *web = c->web;
    uint64_t now = uv_now(&web->loop->uv);
    const uint64_t time[] = {
        [AB_WEB_IDLE] = web->spec.idle_ms,
        [AB_WEB_IN_HEAD] = web->spec.head_ms,
        [AB_WEB_IN_BODY] = web->spec.body_ms,
        [AB_WEB_ANSWERING] = 0,
        [AB_WEB_FLUSHING] = 0,
        [AB_WEB_LINGERING] = AB_WEB_LINGER,
        [AB_WEB_CLOSING] = 0,
    };
    c->state = state;
    c->due_ms = time[state] ? now + time[state] : 0;
    ab_list_remove(&c->idle);
    if (state == AB_WEB_IDLE)
        ab_list_append(&web->idle, &c->idle);
}

static void on_closed(uv_handle_t *h)
{
    struct ab_web_conn *c = h->data;
    struct ab_web *web = c->web;
    ab_buf_fini(&c->ahead);
    free(c);
    web->stats.open--;
    if (web->waiting && !web->stopped)
        ab_web_accept(web);
    ab_web_leave(web);
}

static void drop_parser(struct ab_web_conn *c)
{
    ab_web_parser_free(c->parser);
    c->parser = NULL;
    c->web->stats.held -= c->held;
    c->held = 0;
}

void ab_web_conn_close(struct ab_web_conn *c)
{
    if (c->state == AB_WEB_CLOSING)
        return;
    enter(c, AB_WEB_CLOSING);
    ab_list_remove(&c->link);
    drop_parser(c);
    if (c->ex) {
        c->web->stats.gone++;
        ab_web_exchange_over(c->ex, true);
    }
    uv_close(&c->uv.handle, on_closed);
}

void ab_web_conn_tick(struct ab_web_conn *c, uint64_t now_ms)
{
    size_t queued = uv_stream_get_write_queue_size(&c->uv.stream);
    if (queued == 0 || queued != c->queued)
        c->moved_ms = now_ms;
    c->queued = queued;
    if (queued > 0 && now_ms - c->moved_ms >= c->web->spec.stall_ms) {
        ab_web_conn_close(c);
        return;
    }
    if (c->due_ms == 0 || now_ms < c->due_ms)
        return;
    if (c->state == AB_WEB_IN_HEAD || c->state == AB_WEB_IN_BODY)
        ab_web_say(c, 408, "the request took too long");
    else
        ab_web_conn_close(c);
}

/* ---- reading ---- */

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    struct ab_web_conn *c = h->data;
    (void)suggested;
    *buf = uv_buf_init(c->web->piece, AB_WEB_PIECE);
}

static void keep_ahead(struct ab_web_conn *c, const char *data, size_t len)
{
    ab_buf_put(&c->ahead, data, len);
    if (c->ahead.len < AB_WEB_AHEAD)
        return;
    uv_read_stop(&c->uv.stream);
    c->reading = false;
}

static void on_read(uv_stream_t *h, ssize_t n, const uv_buf_t *buf)
{
    struct ab_web_conn *c = h->data;
    if (n == 0 || c->state == AB_WEB_CLOSING)
        return;
    if (n < 0 && n == UV_EOF && c->state == AB_WEB_FLUSHING)
        c->ended = true; /* it may still take what is on its way */
    else if (n < 0)
        ab_web_conn_close(c);
    else if (c->state == AB_WEB_ANSWERING || c->state == AB_WEB_FLUSHING)
        keep_ahead(c, buf->base, (size_t)n);
    else if (c->state != AB_WEB_LINGERING)
        feed(c, buf->base, (size_t)n);
}

static void read_on(struct ab_web_conn *c)
{
    if (c->reading || c->ended)
        return;
    c->reading = uv_read_start(&c->uv.stream, on_alloc, on_read) == 0;
    if (!c->reading)
        ab_web_conn_close(c);
}

/* ---- who may ---- */

/* Takes the same time wherever the difference is. */
static bool same(const char *a, size_t alen, const char *b)
{
    size_t blen = strlen(b);
    unsigned char differs = alen != blen;
    for (size_t i = 0; i < alen; i++)
        differs |= (unsigned char)(a[i] ^ b[blen ? i % blen : 0]);
    return differs == 0;
}

static bool bearer(const struct ab_web *web, const struct ab_web_request *r)
{
    size_t len;
    const char *value = ab_web_request_field(r, "Authorization", &len);
    if (!value || len < 7 || strncasecmp(value, "Bearer ", 7) != 0)
        return false;
    return same(value + 7, len - 7, web->spec.token);
}

/* Whether one of the NAME=VALUE in the text, which `mark` separates, is the token's. */
static bool pair(const char *text, size_t len, char mark, const char *name,
                 const char *token)
{
    const char *end = text + len;
    size_t name_len = strlen(name);
    while (text < end) {
        const char *stop = memchr(text, mark, (size_t)(end - text));
        if (!stop)
            stop = end;
        while (text < stop && *text == ' ')
            text++;
        if ((size_t)(stop - text) > name_len && !memcmp(text, name, name_len) &&
            text[name_len] == '=' &&
            same(text + name_len + 1, (size_t)(stop - text) - name_len - 1, token))
            return true;
        text = stop + 1;
    }
    return false;
}

static bool by_query(const struct ab_web *web, const struct ab_web_request *r)
{
    const char *target = r->head.data + r->target;
    const char *query = memchr(target, '?', r->target_len);
    if (!query || !web->spec.cookie)
        return false;
    query++;
    return pair(query, r->target_len - (size_t)(query - target), '&', "token",
                web->spec.token);
}

static bool is_open(const struct ab_web *web, const struct ab_web_request *r)
{
    const char *target = r->head.data + r->target;
    const char *query = memchr(target, '?', r->target_len);
    size_t len = query ? (size_t)(query - target) : r->target_len;
    for (int i = 0; web->spec.open[i]; i++)
        if (len == strlen(web->spec.open[i]) && !memcmp(target, web->spec.open[i], len))
            return true;
    return false;
}

static bool authorized(const struct ab_web *web, const struct ab_web_request *r)
{
    size_t len;
    if (!web->spec.token || is_open(web, r) || bearer(web, r) || by_query(web, r))
        return true;
    const char *cookies =
        web->spec.cookie ? ab_web_request_field(r, "Cookie", &len) : NULL;
    return cookies && pair(cookies, len, ';', web->spec.cookie, web->spec.token);
}

/* What is decided when the head is there, before a body is waited for. */
static bool admit(struct ab_web_conn *c)
{
    struct ab_web *web = c->web;
    const struct ab_web_request *r = ab_web_parser_request(c->parser);
    if (!authorized(web, r)) {
        ab_web_say(c, 401, "a token is needed: Authorization: Bearer TOKEN");
        return false;
    }
    if (r->length > web->spec.held_bytes - web->stats.held) {
        ab_web_say(c, 503, "too many large requests at once");
        return false;
    }
    return c->admitted = true;
}

static bool count_body(struct ab_web_conn *c)
{
    struct ab_web *web = c->web;
    size_t now = ab_web_parser_request(c->parser)->body.len;
    web->stats.held += now - c->held;
    c->held = now;
    if (web->stats.held <= web->spec.held_bytes)
        return true;
    ab_web_say(c, 503, "too many large requests at once");
    return false;
}

/* ---- requests ---- */

static void hand_out(struct ab_web_conn *c)
{
    struct ab_web *web = c->web;
    struct ab_web_exchange *ex = ab_xcalloc(1, sizeof *ex);
    ex->req = ab_xcalloc(1, sizeof *ex->req);
    ab_web_parser_take(c->parser, ex->req);
    ex->method = ex->req->method;
    ex->keep_alive = ex->req->keep_alive;
    ex->old = ex->req->old;
    ex->conn = c;
    ex->web = web;
    web->users++;
    ex->held = c->held;
    c->held = 0;
    drop_parser(c);
    ex->by_query = web->spec.token && by_query(web, ex->req);
    c->ex = ex;
    c->admitted = false;
    web->stats.requests++;
    web->stats.answering++;
    ab_list_init(&ex->link);
    ab_list_append(&web->ready, &ex->link);
    enter(c, AB_WEB_ANSWERING);
    ab_web_ring(&web->bell);
}

static void expect_body(struct ab_web_conn *c)
{
    static const char yes[] = "HTTP/1.1 100 Continue\r\n\r\n";
    uv_buf_t buf = uv_buf_init((char *)yes, sizeof yes - 1);
    enter(c, AB_WEB_IN_BODY);
    if (ab_web_parser_request(c->parser)->wants_continue)
        ab_web_send(c, &buf, 1);
}

static void feed(struct ab_web_conn *c, const char *data, size_t len)
{
    size_t used;
    if (!c->parser)
        c->parser = ab_web_parser_new(c->web->spec.head_bytes, c->web->spec.body_bytes);
    if (c->state == AB_WEB_IDLE)
        enter(c, AB_WEB_IN_HEAD);
    while (c->state == AB_WEB_IN_HEAD || c->state == AB_WEB_IN_BODY) {
        enum ab_web_step step = ab_web_parse(c->parser, data, len, &used);
        data += used;
        len -= used;
        if (step == AB_WEB_REFUSED) {
            ab_web_say(c, ab_web_parser_status(c->parser), ab_web_parser_why(c->parser));
            return;
        }
        if (!count_body(c) || step == AB_WEB_MORE)
            return;
        if (!c->admitted && !admit(c))
            return;
        if (step == AB_WEB_HEAD)
            expect_body(c);
        else
            hand_out(c);
    }
    if (len > 0 && c->state == AB_WEB_ANSWERING)
        keep_ahead(c, data, len);
}

static void next_request(struct ab_web_conn *c)
{
    struct ab_buf ahead = c->ahead;
    if (c->ended || (c->web->stopped && ahead.len == 0)) {
        ab_web_conn_close(c);
        return;
    }
    enter(c, AB_WEB_IDLE);
    ab_buf_init(&c->ahead, 0);
    read_on(c);
    if (ahead.len && c->state == AB_WEB_IDLE)
        feed(c, ahead.data, ahead.len);
    ab_buf_fini(&ahead);
}

/* ---- the end of an answer ---- */

static void on_shutdown(uv_shutdown_t *req, int status)
{
    struct ab_web_conn *c = req->handle->data;
    free(req);
    if (status < 0)
        ab_web_conn_close(c);
    else if (c->state == AB_WEB_LINGERING)
        enter(c, AB_WEB_LINGERING); /* only now its time begins */
}

/* A connection closed while bytes of the client are unread is reset, and the client
 * might never see its answer: so we say that we are done, and wait until it is. */
static void linger(struct ab_web_conn *c)
{
    drop_parser(c);
    ab_buf_fini(&c->ahead);
    if (c->ended) {
        ab_web_conn_close(c);
        return;
    }
    enter(c, AB_WEB_LINGERING);
    c->due_ms = 0;
    read_on(c);
    if (c->state == AB_WEB_CLOSING)
        return;
    uv_shutdown_t *req = ab_xcalloc(1, sizeof *req);
    if (uv_shutdown(req, &c->uv.stream, on_shutdown) < 0) {
        free(req);
        ab_web_conn_close(c);
    }
}

void ab_web_conn_flushed(struct ab_web_conn *c)
{
    if (c->state == AB_WEB_FLUSHING)
        next_request(c);
}

void ab_web_conn_answered(struct ab_web_conn *c, bool keep)
{
    if (c->state == AB_WEB_CLOSING)
        return;
    if (!keep || c->web->stopped) {
        enter(c, AB_WEB_FLUSHING); /* bytes on their way have their own deadline */
        linger(c);
    } else if (uv_stream_get_write_queue_size(&c->uv.stream) > 0) {
        enter(c, AB_WEB_FLUSHING);
    } else {
        next_request(c);
    }
}

/* ---- the beginning ---- */

void ab_web_conn_start(struct ab_web *web)
{
    struct ab_web_conn *c = ab_xcalloc(1, sizeof *c);
    c->web = web;
    ab_list_init(&c->idle);
    ab_buf_init(&c->ahead, 0);
    if (web->spec.path)
        uv_pipe_init(&web->loop->uv, &c->uv.pipe, 0);
    else
        uv_tcp_init(&web->loop->uv, &c->uv.tcp);
    c->uv.handle.data = c;
    web->users++;
    web->stats.open++;
    web->stats.accepted++;
    c->moved_ms = uv_now(&web->loop->uv);
    ab_list_append(&web->conns, &c->link);
    enter(c, AB_WEB_IDLE);
    if (uv_accept(&web->uv.stream, &c->uv.stream) < 0) {
        ab_web_conn_close(c);
        return;
    }
    if (!web->spec.path)
        uv_tcp_nodelay(&c->uv.tcp, 1);
    ab_web_need_ticks(web);
    read_on(c);
}
