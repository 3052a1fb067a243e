/* http_request.h - the bytes of a connection cut into HTTP requests, strictly.
 *
 * No socket and no clock: what comes in is bytes, in pieces of any size. Whatever two
 * programs could read differently is refused: a bare LF, a folded field, Content-Length
 * twice or beside Transfer-Encoding, a coding other than chunked, trailers, no Host or
 * two. Fields are cut here, and the request is taken only where llhttp sees the same end
 * of it.
 *
 *     struct ab_web_parser *p = ab_web_parser_new(&limits);
 *     switch (ab_web_parse(p, data, len, &used)) ...
 */
#ifndef AB_RT_HTTP_REQUEST_H
#define AB_RT_HTTP_REQUEST_H

#include "base/buf.h"

#define AB_WEB_FIELDS 100 /* in a request */

struct ab_web_field {
    uint32_t name, name_len; /* where in the head */
    uint32_t value, value_len;
};

struct ab_web_request {
    struct ab_buf head; /* the request line and the fields, as they came */
    struct ab_buf body; /* whole */
    const char *method; /* "GET", ...: static */
    uint32_t target, target_len;
    struct ab_web_field *fields; /* owns */
    unsigned nfields;
    uint64_t length; /* of the body as announced; 0 when it is chunked */
    bool chunked;
    bool old;        /* HTTP/1.0: knows no chunks */
    bool keep_alive; /* another request may follow on the connection */
    bool wants_continue;
};

enum ab_web_step {
    AB_WEB_MORE,    /* all bytes are used up, and the request is not complete */
    AB_WEB_HEAD,    /* the head is there and a body is to come: said once */
    AB_WEB_REQUEST, /* it is complete; the rest of the bytes belongs to the next one */
    AB_WEB_REFUSED, /* nothing that follows can be understood */
};

struct ab_web_parser;

/* Gives. */
struct ab_web_parser *ab_web_parser_new(size_t head_bytes, size_t body_bytes);
void ab_web_parser_free(struct ab_web_parser *p); /* NULL is fine */

enum ab_web_step ab_web_parse(struct ab_web_parser *p, const char *data, size_t len,
                              size_t *used);

/* After AB_WEB_HEAD and AB_WEB_REQUEST: borrowed. */
const struct ab_web_request *ab_web_parser_request(const struct ab_web_parser *p);

/* After AB_WEB_REQUEST: moves it out, and the parser begins with the next one. */
void ab_web_parser_take(struct ab_web_parser *p, struct ab_web_request *out);

/* After AB_WEB_REFUSED: the HTTP status to answer with, and why. */
int ab_web_parser_status(const struct ab_web_parser *p);
const char *ab_web_parser_why(const struct ab_web_parser *p);

void ab_web_request_fini(struct ab_web_request *r);

/* The only field of that name (any case), NULL when there is none. Borrowed, not ended
 * by a NUL. */
const char *ab_web_request_field(const struct ab_web_request *r, const char *name,
                                 size_t *len);

#endif
