/* http_client.h - inside http*.c only: the state they share.
 *
 *   http_lib     the library, loaded late
 *   http_multi   the multi handles, driven by the loop: sockets, timers, the finished
 *   http_host    per host: how many run, who queues, the name's addresses
 *   http_options what the caller asked for, as options of curl
 *   http_error   what curl's codes mean to the one who asked
 *   http         one transfer: callbacks, deadlines
 *   http_bare    one whose connection is handed over
 *
 *        start --> queued --> resolving --> connecting --> asking <--> answering --> over
 *                  (host)      (host)       (curl from here on)
 *
 * Any state may go straight to over: deadline, close, failure.
 * Nothing calls into a multi handle from one of its callbacks.
 */
#ifndef AB_RT_HTTP_CLIENT_H
#define AB_RT_HTTP_CLIENT_H

#include "base/buf.h"
#include "rt/http.h"
#include "rt/http_lib.h"

struct socket_watch;

/* A multi handle, which keeps connections, and its timer. */
struct ab_http_multi {
    struct ab_http *http; /* holds a reference, until the timer is closed */
    struct ab_http_multi *next;
    CURLM *handle;
    uv_timer_t timer;
    unsigned running; /* transfers that it has */
};

struct ab_http {
    struct ab_op op; /* so that the loop's sweep finds a client nobody freed */
    struct ab_http_lib lib;
    struct ab_http_multi *multis;  /* owns */
    struct socket_watch **watches; /* owns; by file descriptor */
    size_t watch_count;
    struct ab_list transfers; /* every one not over */
    struct ab_list hosts;
    bool closing;
};

/* One connect target: name and port, or a Unix socket's path. */
struct ab_http_host {
    struct ab_list link;      /* in http->hosts */
    struct ab_http *http;     /* NULL once the client is gone while a lookup runs */
    struct ab_list queue;     /* transfers not admitted yet, oldest first */
    struct ab_list resolving; /* transfers admitted, waiting for the name */
    unsigned users;           /* transfers that point here */
    unsigned active;          /* of them, admitted and not over */
    bool numeric;             /* nothing to resolve */
    bool looking_up;
    uv_getaddrinfo_t lookup;
    char *addresses; /* owns; "a,b,c" or NULL */
    uint64_t expires_ms;
    char *name; /* owns */
    char *port; /* owns */
};

enum transfer_state {
    AB_HTTP_QUEUED,
    AB_HTTP_RESOLVING,
    AB_HTTP_CONNECTING,
    AB_HTTP_ASKING,
    AB_HTTP_ANSWERING,
    AB_HTTP_OVER
};

struct ab_http_transfer {
    struct ab_http *http;      /* NULL when over */
    struct ab_http_host *host; /* NULL when over */
    struct ab_list link;       /* in http->transfers */
    struct ab_list host_link;  /* in host->queue or host->resolving */
    enum transfer_state state;
    bool stream;
    bool bare;
    bool paused; /* a stream nobody reads */
    bool head_done;
    bool redirected; /* this head is a redirect's, not the answer's */
    bool closed;     /* by its owner; freed when the timer is closed too */
    bool timer_closed;
    CURL *easy;
    struct ab_http_multi *multi; /* borrowed: which has it; or NULL */
    struct curl_slist *headers;  /* owns */
    struct curl_slist *resolve;  /* owns */
    struct wait *waiter;         /* borrowed; NULL when nobody waits */
    uv_timer_t timer;
    uint64_t connect_ms, first_byte_ms, idle_ms, total_ms; /* lengths; 0: none */
    uint64_t total_at, phase_at; /* loop time: end of all, start of the phase */
    uint64_t started_ns, admitted_ns, launched_ns;
    unsigned host_limit;
    long redirects_left;
    uint64_t body_bytes, max_body_bytes;
    struct ab_buf head, body;
    int status;
    int open_errno; /* why no socket could be made */
    const char *phase;
    struct ab_err err; /* set early by the callback that makes curl stop */
    struct ab_http_timing timing;
    char *url; /* owns; after redirects */
    char ip[48];
    char detail[CURL_ERROR_SIZE];
};

/* http_host.c */
struct ab_http_host *ab_http_host_get(struct ab_http *http, const char *name,
                                      const char *port, bool numeric);
void ab_http_host_enter(struct ab_http_host *host, struct ab_http_transfer *t);
void ab_http_host_leave(struct ab_http_host *host, struct ab_http_transfer *t);
void ab_http_hosts_fini(struct ab_http *http);

/* http.c */
void ab_http_transfer_admitted(struct ab_http_transfer *t);
void ab_http_transfer_launch(struct ab_http_transfer *t);
void ab_http_transfer_fail(struct ab_http_transfer *t, const struct ab_err *err);
void ab_http_transfer_finish(struct ab_http_transfer *t, CURLcode code);
void ab_http_transfers_drop(struct ab_http *http); /* all fail; nobody is woken */

/* http_options.c: finds the transfer's host and fills its handle. */
int ab_http_options_apply(struct ab_http_transfer *t, const struct ab_http_spec *spec,
                          struct ab_err *err) AB_MUST_CHECK;

/* http_error.c: why the transfer failed; may set its phase. Gives -1. */
int ab_http_explain(struct ab_http_transfer *t, CURLcode code, struct ab_err *err);

/* http_multi.c: options that tie a handle to this client; a socket of a connection; it
 * joins one that has room, and leaves it. */
void ab_http_multi_prepare(struct ab_http *http, CURL *easy);
void ab_http_multi_opened(struct ab_http *http, curl_socket_t fd);
int ab_http_multi_join(struct ab_http_transfer *t, struct ab_err *err) AB_MUST_CHECK;
void ab_http_multi_leave(struct ab_http_transfer *t);

#endif
