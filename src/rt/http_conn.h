/* http_conn.h - what the three files of the HTTP server share: http_server.c listens and
 * keeps time, http_conn.c reads, http_answer.c writes. Nobody else includes this. */
#ifndef AB_RT_HTTP_CONN_H
#define AB_RT_HTTP_CONN_H

#include "rt/http_server.h"

#define AB_WEB_AHEAD  65536 /* bytes kept of what a client sends before its answer */
#define AB_WEB_PIECE  65536 /* read at once */
#define AB_WEB_HIGH   65536 /* bytes on their way out before a writer waits */
#define AB_WEB_LOW    16384
#define AB_WEB_LINGER 2000 /* ms for a client to read why it was refused */

/* Somebody who waits: a place that holds one op. */
struct ab_web_bell {
    struct ab_op *op; /* owns the loop's reference, or NULL */
};

struct ab_web {
    struct ab_loop *loop;
    struct ab_web_spec spec;
    char *strings[4]; /* own: path, token, cookie, host */
    char *opened[AB_WEB_OPEN];
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
    uv_timer_t tick;
    int users; /* handles that are not closed yet and exchanges: the last one frees */
    bool stopped, closed, ticking;
    bool waiting; /* a connection could not be accepted */
    struct ab_list conns;
    struct ab_list idle;  /* of them, the longest first */
    struct ab_list ready; /* exchanges to hand out */
    struct ab_web_bell bell;
    struct ab_web_stats stats;
    char *piece; /* owns; every read goes through it */
    char date[40];
    uint64_t date_s;
};

enum ab_web_state {
    AB_WEB_IDLE,
    AB_WEB_IN_HEAD,
    AB_WEB_IN_BODY,
    AB_WEB_ANSWERING,
    AB_WEB_FLUSHING,  /* answered, and not all of it has gone out */
    AB_WEB_LINGERING, /* all is said; the client may still be reading it */
    AB_WEB_CLOSING,
};

struct ab_web_conn {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
    struct ab_web *web;
    struct ab_list link, idle;
    struct ab_web_parser *parser; /* owns; NULL between requests */
    struct ab_web_exchange *ex;   /* while answering; not counted */
    struct ab_buf ahead;          /* what came before the answer was complete */
    size_t held;                  /* of web->stats.held */
    uint64_t due_ms;              /* 0: no deadline */
    uint64_t moved_ms;            /* when something last went out */
    size_t queued;                /* what was on its way out then */
    enum ab_web_state state;
    bool reading, ended, admitted;
};

struct ab_web_exchange {
    struct ab_web_conn *conn; /* NULL when it is over */
    struct ab_web *web;
    struct ab_list link; /* in web->ready, or alone */
    struct ab_web_request
        *req; /* owns; NULL once an answer of unknown length has begun */
    const char *method;
    size_t held;
    struct ab_web_bell bell;
    void (*on_gone)(void *arg);
    void *arg;
    bool keep_alive, old, begun, gone, chunked, bodiless, by_query;
};

/* ---- http_server.c ---- */
void ab_web_ring(struct ab_web_bell *bell);
struct ab_op *ab_web_bell_wait(struct ab_web_bell *bell, struct ab_loop *loop, bool now);
void ab_web_leave(struct ab_web *web);
void ab_web_accept(struct ab_web *web); /* tries again what was put off */
void ab_web_need_ticks(struct ab_web *web);
void ab_web_print_address(const struct sockaddr_storage *sa, char *out, size_t size);

/* ---- http_conn.c ---- */
void ab_web_conn_start(struct ab_web *web);
void ab_web_conn_close(struct ab_web_conn *c);
void ab_web_conn_tick(struct ab_web_conn *c, uint64_t now_ms);
/* The answer is out, or on its way. */
void ab_web_conn_answered(struct ab_web_conn *c, bool keep);
void ab_web_conn_flushed(struct ab_web_conn *c);

/* ---- http_answer.c ---- */
void ab_web_send(struct ab_web_conn *c, const uv_buf_t *bufs, unsigned n);
/* A whole answer that the server gives by itself. */
void ab_web_say(struct ab_web_conn *c, int status, const char *why);
void ab_web_exchange_over(struct ab_web_exchange *ex, bool gone);

#endif
