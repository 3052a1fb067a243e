/* http_multi.h - inside http*.c only: the client's state.
 *
 *   http_lib    the library, loaded late
 *   http_multi  one multi handle driven by the loop: sockets, its timer, finished transfers
 *   http_host   per host: how many run, who queues, the name's addresses
 *   http        one transfer: options, callbacks, deadlines, errors
 *
 * Order of a transfer: ab_http_start -> host admits -> host resolves -> transfer_launch (joins the
 * multi handle) -> curl's callbacks -> transfer_finish -> host_leave.
 * Nothing calls into the multi handle from one of its callbacks.
 */
#ifndef AB_RT_HTTP_MULTI_H
#define AB_RT_HTTP_MULTI_H

#include "rt/http.h"
#include "rt/http_lib.h"

struct socket_watch;

struct ab_http {
    struct ab_op op; /* so that the loop's sweep finds a client nobody freed */
    struct ab_http_lib lib;
    CURLM *multi;
    uv_timer_t timer;
    struct socket_watch **watches; /* by file descriptor */
    size_t watch_count;
    struct ab_list transfers; /* every one not over */
    struct ab_list hosts;
    bool closing;
};

/* One connect target: "name:port", or "unix:/path". */
struct ab_http_host {
    struct ab_list link; /* in http->hosts */
    struct ab_http *http; /* NULL once the client is gone while a lookup runs */
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

/* http_host.c */
struct ab_http_host *ab_http_host_get(struct ab_http *http, const char *name, const char *port,
                                      bool numeric);
void ab_http_host_enter(struct ab_http_host *host, struct ab_http_transfer *t);
void ab_http_host_leave(struct ab_http_host *host, struct ab_http_transfer *t);
void ab_http_hosts_fini(struct ab_http *http);

/* http.c, called by http_host.c and http_multi.c */
struct ab_list *ab_http_transfer_link(struct ab_http_transfer *t); /* in a host's list */
struct ab_http_transfer *ab_http_transfer_of_link(struct ab_list *link);
bool ab_http_transfer_may_enter(const struct ab_http_transfer *t, unsigned active);
bool ab_http_transfer_queued(const struct ab_http_transfer *t);
void ab_http_transfer_admitted(struct ab_http_transfer *t);
void ab_http_transfer_launch(struct ab_http_transfer *t);
void ab_http_transfer_fail(struct ab_http_transfer *t, const struct ab_err *err);
void ab_http_transfer_finish(struct ab_http_transfer *t, CURLcode code);
void ab_http_transfers_fini(struct ab_http *http);

/* http_multi.c, options that every transfer of this client sets on its handle */
void ab_http_multi_prepare(struct ab_http *http, CURL *easy);

#endif
