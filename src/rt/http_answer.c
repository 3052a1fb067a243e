#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

#include "rt/http_conn.h"

struct out {
    uv_write_t req;
    char data[];
};

/* ---- bytes ---- */

static void on_written(uv_write_t *req, int status)
{
    struct ab_web_conn *c = req->handle->data;
    free(AB_CONTAINER(req, struct out, req));
    if (c->state == AB_WEB_CLOSING)
        return;
    if (status < 0) {
        ab_web_conn_close(c);
        return;
    }
    size_t queued = uv_stream_get_write_queue_size(&c->uv.stream);
    if (c->ex && queued <= AB_WEB_LOW)
        ab_web_ring(&c->ex->bell);
    if (queued == 0)
        ab_web_conn_flushed(c);
}

/* What the socket does not take at once is copied. */
void ab_web_send(struct ab_web_conn *c, const uv_buf_t *bufs, unsigned n)
{
    size_t total = 0, sent = 0, at = 0;
    if (c->state == AB_WEB_CLOSING)
        return;
    for (unsigned i = 0; i < n; i++)
        total += bufs[i].len;
    if (uv_stream_get_write_queue_size(&c->uv.stream) == 0) {
        int rc = uv_try_write(&c->uv.stream, bufs, n);
        if (rc < 0 && rc != UV_EAGAIN) {
            ab_web_conn_close(c);
            return;
        }
        sent = rc > 0 ? (size_t)rc : 0;
    }
    if (sent == total)
        return;
    struct out *out = ab_xcalloc(1, sizeof *out + (total - sent));
    for (unsigned i = 0; i < n; i++) {
        size_t skip = sent < bufs[i].len ? sent : bufs[i].len;
        memcpy(out->data + at, bufs[i].base + skip, bufs[i].len - skip);
        at += bufs[i].len - skip;
        sent -= skip;
    }
    uv_buf_t rest = uv_buf_init(out->data, (unsigned)at);
    if (uv_write(&out->req, &c->uv.stream, &rest, 1, on_written) < 0) {
        free(out);
        ab_web_conn_close(c);
    }
}

/* ---- the head of an answer ---- */

static const char *reason(int status)
{
    static const struct {
        int status;
        const char *text;
    } reasons[] = {
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {206, "Partial Content"},
        {301, "Moved Permanently"},
        {302, "Found"},
        {303, "See Other"},
        {304, "Not Modified"},
        {307, "Temporary Redirect"},
        {308, "Permanent Redirect"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {416, "Range Not Satisfiable"},
        {417, "Expectation Failed"},
        {421, "Misdirected Request"},
        {422, "Unprocessable Content"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].status == status)
            return reasons[i].text;
    return "";
}

static const char *date(struct ab_web *web)
{
    uv_timeval64_t now;
    uv_gettimeofday(&now);
    if ((uint64_t)now.tv_sec == web->date_s)
        return web->date;
    static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t t = (time_t)now.tv_sec;
    struct tm tm;
    gmtime_r(&t, &tm);
    web->date_s = (uint64_t)now.tv_sec;
    snprintf(web->date, sizeof web->date, "%s, %02d %s %04d %02d:%02d:%02d GMT",
             days[tm.tm_wday], tm.tm_mday % 100, months[tm.tm_mon],
             (tm.tm_year + 1900) % 10000, tm.tm_hour % 100, tm.tm_min % 100,
             tm.tm_sec % 100);
    return web->date;
}

static bool is_name(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (s[i] <= ' ' || s[i] == ':' || s[i] == 0x7f)
            return false;
    return len > 0;
}

static int put_field(struct ab_buf *out, const struct ab_web_pair *p, struct ab_err *err)
{
    static const char *const ours[] = {"Content-Length", "Transfer-Encoding",
                                       "Connection", "Date", NULL};
    if (!is_name(p->name, p->name_len))
        return ab_err_set(err, AB_EBADARG, "a field needs a proper name");
    for (int i = 0; ours[i]; i++)
        if (p->name_len == strlen(ours[i]) && !strncasecmp(p->name, ours[i], p->name_len))
            return ab_err_set(err, AB_EBADARG, "the server writes %s itself", ours[i]);
    for (size_t i = 0; i < p->value_len; i++) {
        unsigned char c = (unsigned char)p->value[i];
        if ((c < ' ' && c != '\t') || c == 0x7f)
            return ab_err_set(err, AB_EBADARG, "field %.*s: a control character",
                              p->name_len < 60 ? (int)p->name_len : 60, p->name);
    }
    ab_buf_put(out, p->name, p->name_len);
    ab_buf_put(out, ": ", 2);
    ab_buf_put(out, p->value, p->value_len);
    ab_buf_put(out, "\r\n", 2);
    return 0;
}

static void put_text(struct ab_buf *out, const char *text)
{
    ab_buf_put(out, text, strlen(text));
}

static void put_status(struct ab_web *web, struct ab_buf *out, int status, bool keep)
{
    char line[160];
    int n = snprintf(line, sizeof line, "HTTP/1.1 %d %s\r\nDate: %s\r\n%s", status,
                     reason(status), date(web), keep ? "" : "Connection: close\r\n");
    ab_buf_put(out, line, (size_t)n);
}

static void put_length(struct ab_buf *out, size_t len)
{
    char line[48];
    int n = snprintf(line, sizeof line, "Content-Length: %zu\r\n", len);
    ab_buf_put(out, line, (size_t)n);
}

static bool keeps(const struct ab_web_exchange *ex)
{
    return ex->keep_alive && !ex->web->stopped;
}

static int put_head(struct ab_web_exchange *ex, struct ab_buf *out, int status, bool keep,
                    const struct ab_web_pair *fields, unsigned n, struct ab_err *err)
{
    ab_buf_init(out, 0);
    if (ex->begun)
        return ab_err_set(err, AB_EBADARG, "the request has been answered");
    if (status < 200 || status > 599)
        return ab_err_set(err, AB_EBADARG, "status %d is none of an answer", status);
    ex->bodiless = status == 204 || status == 304 || !strcmp(ex->method, "HEAD");
    put_status(ex->web, out, status, keep);
    if (keep && ex->old)
        put_text(out, "Connection: keep-alive\r\n");
    for (unsigned i = 0; i < n; i++)
        if (put_field(out, &fields[i], err) < 0) {
            ab_buf_fini(out);
            return -1;
        }
    return 0;
}

/* ---- answers ---- */

static void forget_request(struct ab_web_exchange *ex)
{
    if (ex->req)
        ab_web_request_fini(ex->req);
    free(ex->req);
    ex->req = NULL;
    ex->web->stats.held -= ex->held;
    ex->held = 0;
}

void ab_web_say(struct ab_web_conn *c, int status, const char *why)
{
    struct ab_buf out;
    char body[128];
    int n = snprintf(body, sizeof body, "%s\n", why);
    ab_buf_init(&out, 0);
    c->web->stats.refused++;
    put_status(c->web, &out, status, false);
    if (status == 401)
        put_text(&out, "WWW-Authenticate: Bearer\r\n");
    if (status == 503)
        put_text(&out, "Retry-After: 1\r\n");
    put_text(&out, "Content-Type: text/plain; charset=utf-8\r\n");
    put_length(&out, (size_t)n);
    put_text(&out, "\r\n");
    ab_buf_put(&out, body, (size_t)n);
    uv_buf_t buf = uv_buf_init(out.data, (unsigned)out.len);
    ab_web_send(c, &buf, 1);
    ab_buf_fini(&out);
    ab_web_conn_answered(c, false);
}

static void complete(struct ab_web_exchange *ex, bool keep)
{
    struct ab_web_conn *c = ex->conn;
    ab_web_exchange_over(ex, false);
    if (c)
        ab_web_conn_answered(c, keep);
}

int ab_web_answer(struct ab_web_exchange *ex, int status,
                  const struct ab_web_pair *fields, unsigned nfields, const char *body,
                  size_t len, struct ab_err *err)
{
    struct ab_buf head;
    bool keep = keeps(ex);
    if (put_head(ex, &head, status, keep, fields, nfields, err) < 0)
        return -1;
    ex->begun = true;
    if (status != 204 && status != 304)
        put_length(&head, len);
    put_text(&head, "\r\n");
    uv_buf_t bufs[] = {uv_buf_init(head.data, (unsigned)head.len),
                       uv_buf_init((char *)(uintptr_t)body, (unsigned)len)};
    if (ex->conn)
        ab_web_send(ex->conn, bufs, ex->bodiless || len == 0 ? 1 : 2);
    ab_buf_fini(&head);
    complete(ex, keep);
    return 0;
}

int ab_web_begin(struct ab_web_exchange *ex, int status, const struct ab_web_pair *fields,
                 unsigned nfields, struct ab_err *err)
{
    struct ab_buf head;
    bool keep = keeps(ex) && !ex->old; /* HTTP/1.0: the end is the connection's */
    if (put_head(ex, &head, status, keep, fields, nfields, err) < 0)
        return -1;
    ex->begun = true;
    ex->keep_alive = keep;
    ex->chunked = !ex->old && !ex->bodiless;
    put_text(&head, ex->chunked ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n");
    uv_buf_t buf = uv_buf_init(head.data, (unsigned)head.len);
    if (ex->conn)
        ab_web_send(ex->conn, &buf, 1);
    ab_buf_fini(&head);
    forget_request(ex); /* streams are many and long */
    return 0;
}

void ab_web_write(struct ab_web_exchange *ex, const char *data, size_t len)
{
    char size[24];
    if (!ex->conn || ex->bodiless || len == 0)
        return;
    int n = snprintf(size, sizeof size, "%zx\r\n", len);
    uv_buf_t bufs[] = {uv_buf_init(size, (unsigned)n),
                       uv_buf_init((char *)(uintptr_t)data, (unsigned)len),
                       uv_buf_init((char[]){'\r', '\n'}, 2)};
    if (ex->chunked)
        ab_web_send(ex->conn, bufs, 3);
    else
        ab_web_send(ex->conn, bufs + 1, 1);
}

void ab_web_finish(struct ab_web_exchange *ex)
{
    uv_buf_t buf = uv_buf_init((char[]){'0', '\r', '\n', '\r', '\n'}, 5);
    if (!ex->conn || !ex->begun)
        return;
    if (ex->chunked)
        ab_web_send(ex->conn, &buf, 1);
    complete(ex, keeps(ex));
}

bool ab_web_may_write(const struct ab_web_exchange *ex)
{
    return !ex->conn ||
           uv_stream_get_write_queue_size(&ex->conn->uv.stream) <= AB_WEB_HIGH;
}

struct ab_op *ab_web_drained(struct ab_web_exchange *ex)
{
    return ab_web_bell_wait(&ex->bell, ex->web->loop, ab_web_may_write(ex));
}

bool ab_web_has_writer(const struct ab_web_exchange *ex)
{
    return ex->bell.op != NULL;
}

/* ---- life ---- */

void ab_web_exchange_over(struct ab_web_exchange *ex, bool gone)
{
    void (*on_gone)(void *) = ex->on_gone;
    if (ex->conn) {
        ex->conn->ex = NULL;
        ex->web->stats.answering--;
    }
    ex->conn = NULL;
    ex->gone = ex->gone || gone;
    ex->on_gone = NULL;
    if (gone && on_gone)
        on_gone(ex->arg);
    ab_web_ring(&ex->bell);
}

void ab_web_release(struct ab_web_exchange *ex)
{
    struct ab_web *web = ex->web;
    ex->on_gone = NULL;
    if (ex->conn) {
        struct ab_web_conn *c = ex->conn;
        ab_web_exchange_over(ex, false);
        ab_web_conn_close(c);
    }
    ab_list_remove(&ex->link);
    forget_request(ex);
    free(ex);
    ab_web_leave(web);
}

void ab_web_on_gone(struct ab_web_exchange *ex, void (*on_gone)(void *arg), void *arg)
{
    ex->on_gone = on_gone;
    ex->arg = arg;
    if (!ex->gone || !on_gone)
        return;
    ex->on_gone = NULL;
    on_gone(arg);
}

bool ab_web_is_gone(const struct ab_web_exchange *ex)
{
    return ex->gone;
}

bool ab_web_is_over(const struct ab_web_exchange *ex)
{
    return !ex->conn;
}

bool ab_web_has_begun(const struct ab_web_exchange *ex)
{
    return ex->begun;
}

bool ab_web_by_query(const struct ab_web_exchange *ex)
{
    return ex->by_query;
}

const struct ab_web_request *ab_web_exchange_request(const struct ab_web_exchange *ex)
{
    static const struct ab_web_request none;
    return ex->req ? ex->req : &none;
}

void ab_web_peer(const struct ab_web_exchange *ex, char *out, size_t size)
{
    struct sockaddr_storage sa = {.ss_family = AF_INET};
    int len = sizeof sa;
    snprintf(out, size, "unix");
    if (ex->conn && !ex->web->spec.path &&
        uv_tcp_getpeername(&ex->conn->uv.tcp, (struct sockaddr *)&sa, &len) == 0)
        ab_web_print_address(&sa, out, size);
}
