/* http_server.h - an HTTP/1.1 server: listens, reads whole requests, sends answers.
 *
 *     struct ab_web *web = ab_web_open(loop, &spec, &err);
 *     struct ab_op *op = ab_web_wait(web);              // done: a request is there
 *     struct ab_web_exchange *ex = ab_web_next(web);    // gives, or NULL
 *     ab_web_answer(ex, 200, fields, nfields, body, len);
 *     ab_web_release(ex);
 *
 * A request is handed out when it is complete, one at a time on a connection; what the
 * client sends meanwhile is kept for later. A client that leaves before its answer is
 * complete is noticed at once: on_gone is called. The answer is one piece, or begun and
 * written to: ab_web_drained() is done when what was written has gone out but for a
 * little, so that a slow client slows its writer and nobody else.
 *
 * Every wait for a client has a deadline and everything that it sends a cap. What is
 * refused is answered with its status, the connection is closed after it, and nobody
 * else hears of it.
 */
#ifndef AB_RT_HTTP_SERVER_H
#define AB_RT_HTTP_SERVER_H

#include "rt/http_request.h"
#include "rt/op.h"

#define AB_WEB_OPEN 8

struct ab_web_spec {
    const char *path;   /* of a Unix socket, or NULL: */
    const char *host;   /* an address, or "localhost" */
    uint16_t port;      /* 0: any */
    const char *token;  /* what a client must show, or NULL */
    const char *cookie; /* the name of a cookie that may hold it too, or NULL */
    const char *open[AB_WEB_OPEN]; /* paths that need no token; NULL ends the list */
    size_t head_bytes, body_bytes;
    size_t held_bytes; /* of all bodies that are held at once */
    unsigned connections;
    uint64_t idle_ms;  /* between requests */
    uint64_t head_ms;  /* from the first byte of a request to the end of its head */
    uint64_t body_ms;  /* from there to the end of its body */
    uint64_t stall_ms; /* a client that takes nothing of its answer */
};

struct ab_web_stats {
    uint64_t accepted, requests, refused, gone;
    unsigned open;      /* connections */
    unsigned answering; /* requests handed out and not yet answered */
    size_t held;        /* bytes of bodies */
};

struct ab_web_pair {
    const char *name, *value;
    size_t name_len, value_len;
};

struct ab_web;
struct ab_web_exchange;

/* Copies what the spec points to. Gives, or NULL. */
struct ab_web *ab_web_open(struct ab_loop *loop, const struct ab_web_spec *spec,
                           struct ab_err *err);

/* Accepts no more and closes what is idle; what is being answered goes on, and its
 * connection is closed after it. */
void ab_web_stop(struct ab_web *web);

/* Closes everything; what waits is done. NULL is fine. */
void ab_web_close(struct ab_web *web);

void ab_web_stats(const struct ab_web *web, struct ab_web_stats *out);

/* "127.0.0.1:8080", "[::1]:8080", "unix:/run/x.sock". */
void ab_web_address(const struct ab_web *web, char *out, size_t size);

/* Gives: done when a request is there, or when the server was stopped. One at a time. */
struct ab_op *ab_web_wait(struct ab_web *web);
bool ab_web_has_waiter(const struct ab_web *web);
struct ab_web_exchange *ab_web_next(struct ab_web *web); /* gives, or NULL */
bool ab_web_stopped(const struct ab_web *web);

/* ---- one request and its answer ---- */

const struct ab_web_request *ab_web_exchange_request(const struct ab_web_exchange *ex);
void ab_web_peer(const struct ab_web_exchange *ex, char *out, size_t size);
/* The client showed its token in the query, so that the next answer may set a cookie. */
bool ab_web_by_query(const struct ab_web_exchange *ex);

/* Called at most once, from the loop; NULL takes it back. */
void ab_web_on_gone(struct ab_web_exchange *ex, void (*on_gone)(void *arg), void *arg);
bool ab_web_is_gone(const struct ab_web_exchange *ex);
bool ab_web_is_over(const struct ab_web_exchange *ex); /* answered, or gone */
bool ab_web_has_begun(const struct ab_web_exchange *ex);

/* The whole answer. Fields are checked: -1 with AB_EBADARG for one that is no field, or
 * that the server writes itself. To a client that is gone it is nothing. */
int ab_web_answer(struct ab_web_exchange *ex, int status,
                  const struct ab_web_pair *fields, unsigned nfields, const char *body,
                  size_t len, struct ab_err *err) AB_MUST_CHECK;

/* An answer whose length is not known: begun, written, finished. Once it is begun, the
 * request has no fields and no body any more. */
int ab_web_begin(struct ab_web_exchange *ex, int status, const struct ab_web_pair *fields,
                 unsigned nfields, struct ab_err *err) AB_MUST_CHECK;
void ab_web_write(struct ab_web_exchange *ex, const char *data, size_t len);
void ab_web_finish(struct ab_web_exchange *ex);

/* Whether more may be written without waiting. */
bool ab_web_may_write(const struct ab_web_exchange *ex);
/* Gives: done when it may, or when the client is gone. One at a time. */
struct ab_op *ab_web_drained(struct ab_web_exchange *ex);
bool ab_web_has_writer(const struct ab_web_exchange *ex);

/* Lets go. An answer that was not completed is cut off, so that the client can tell. */
void ab_web_release(struct ab_web_exchange *ex);

#endif
