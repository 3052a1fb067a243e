/* http.h - HTTP/1.1 client on the loop.
 *
 *     struct ab_http *http = ab_http_new(loop, &err);             one per loop
 *     struct ab_http_transfer *t = ab_http_start(http, &spec, &err);
 *     op = ab_http_wait(t, AB_HTTP_END);                          suspend; then look at
 * `t` ab_http_close(t);                                           aborts when still
 * running
 *
 * A response with any status is a success. A transfer fails with AB_ENETWORK (could not
 * resolve, connect, agree on TLS, or was cut off; ab_http_phase tells which), AB_ETIMEOUT
 * (the message names the deadline), AB_ETOOBIG (body cap), AB_EPROTOCOL.
 *
 * Names are resolved once per host however many transfers start together, and kept for a
 * minute. Nothing of libcurl shows here.
 */
#ifndef AB_RT_HTTP_H
#define AB_RT_HTTP_H

#include "rt/op.h"

struct ab_http;
struct ab_http_transfer;

struct ab_http_spec {
    const char *method; /* borrowed, as all strings here, until ab_http_start returns */
    const char *url;    /* http or https */
    const char *const *headers; /* "Name: value" */
    size_t header_count;
    const char *body; /* borrowed until the transfer is over; NULL for none */
    size_t body_bytes;
    const char *unix_socket; /* connect there; the URL's host is only a name */
    const char *proxy;       /* NULL: none. The environment is not looked at */
    const char *ca_file;     /* NULL: the system's */
    const char *ca_pem;      /* PEM text, as found inside a kubeconfig */
    const char *cert_pem;    /* client certificate and its key */
    const char *key_pem;
    bool insecure;           /* do not verify the server's certificate */
    bool once;               /* do not keep the connection for the next transfer */
    bool stream;             /* hand out the body in pieces; pauses when nobody reads */
    bool bare;               /* only connect; see ab_http_bare_send() */
    uint64_t max_body_bytes; /* 0: no cap */
    uint64_t connect_ms;     /* name, connection, TLS. 0 in these four: no deadline */
    uint64_t first_byte_ms;  /* from the request's start to the response's */
    uint64_t idle_ms;        /* silence inside the response */
    uint64_t total_ms;       /* all of it, from when it leaves the queue */
    long max_redirects;      /* 0: a redirect is a response like any other */
    unsigned host_limit; /* transfers at once to this host; the rest queue. 0: no limit */
};

struct ab_http_timing {
    double queue_s; /* waited because of the host limit; the others count from its end */
    double dns_s, connect_s, tls_s, first_byte_s,
        total_s; /* since the start; 0: not reached */
};

enum ab_http_event {
    AB_HTTP_HEAD,  /* status and headers are in, or the transfer is over */
    AB_HTTP_CHUNK, /* there are body bytes to take, or the transfer is over */
    AB_HTTP_END,   /* the transfer is over */
};

/* Loads libcurl; NULL with AB_EUNSUPPORTED when that fails. Freed by ab_http_free, or by
 * the loop's sweep: then its transfers end as cancelled, and are still closed by their
 * owners. */
struct ab_http *ab_http_new(struct ab_loop *loop, struct ab_err *err) AB_MUST_CHECK;
void ab_http_free(struct ab_http *http);

/* Closes the connections kept for reuse; nothing while a transfer is not over. */
void ab_http_forget(struct ab_http *http);

/* Seconds since 1970 of an HTTP date, or -1. */
int64_t ab_http_date(struct ab_http *http, const char *text);

/* Gives a transfer; NULL (AB_EBADARG) when the spec itself is unusable. */
struct ab_http_transfer *ab_http_start(struct ab_http *http,
                                       const struct ab_http_spec *spec,
                                       struct ab_err *err) AB_MUST_CHECK;
void ab_http_close(struct ab_http_transfer *t);

/* Is that event there already? Then do not wait for it. */
bool ab_http_ready(const struct ab_http_transfer *t, enum ab_http_event event);

/* An operation that is done when the event is there. One at a time. Cancelling it aborts
 * the transfer. */
struct ab_op *ab_http_wait(struct ab_http_transfer *t, enum ab_http_event event);
bool ab_http_waiting(const struct ab_http_transfer *t);

/* What arrived. All borrowed, valid until the next call on the transfer. */
int ab_http_status(const struct ab_http_transfer *t); /* 0: no response */
const char *ab_http_head(const struct ab_http_transfer *t,
                         size_t *bytes); /* header lines */
const char *ab_http_body(const struct ab_http_transfer *t, size_t *bytes);
const char *ab_http_url(const struct ab_http_transfer *t); /* after redirects */
const char *ab_http_ip(const struct ab_http_transfer *t);
const char *ab_http_phase(
    const struct ab_http_transfer *t); /* where it is, or where it failed */
struct ab_http_timing ab_http_timing(const struct ab_http_transfer *t);

/* NULL while the transfer runs and after a complete response. */
const struct ab_err *ab_http_error(const struct ab_http_transfer *t);

/* A bare connection is there at AB_HTTP_HEAD, or the transfer has failed. From then on it
 * has no deadlines, and the two ends are the caller's. Both calls give what was moved (0
 * from recv is the end of the stream), AB_HTTP_AGAIN when one must wait for the
 * descriptor, or -1. What was read ahead below is not seen by waiting: call recv first.
 */
#define AB_HTTP_AGAIN (-2)
long ab_http_bare_send(struct ab_http_transfer *t, const void *data, size_t len,
                       struct ab_err *err) AB_MUST_CHECK;
long ab_http_bare_recv(struct ab_http_transfer *t, void *data, size_t room,
                       struct ab_err *err) AB_MUST_CHECK;

/* A descriptor to wait on; -1 when the connection is gone. Gives. */
int ab_http_bare_fd(struct ab_http_transfer *t, struct ab_err *err) AB_MUST_CHECK;

/* The bytes seen through ab_http_body are used up: drop them and let more come. */
void ab_http_consume(struct ab_http_transfer *t);

#endif
