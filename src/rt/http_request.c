#include "rt/http_request.h"

#include <llhttp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FRAMING                                                            \
    16384 /* bytes of chunk sizes that a body may have beyond its own size \
           */

/* Where in a head the last byte was. */
enum place {
    PLACE_BLANK, /* before the request line */
    PLACE_BLANK_CR,
    PLACE_LINE,
    PLACE_CR,
    PLACE_START, /* of a line */
    PLACE_END_CR,
    PLACE_BODY,
    PLACE_OVER,
};

struct ab_web_parser {
    llhttp_t http;
    struct ab_web_request req;
    size_t head_bytes, body_bytes;
    size_t framing; /* bytes of a chunked body that are not its own */
    enum place place;
    bool blank; /* an empty line was skipped */
    bool head_done, complete;
    int status;
    const char *why;
};

static int refuse(struct ab_web_parser *p, int status, const char *why)
{
    p->status = status;
    p->why = why;
    return -1;
}

/* ---- what llhttp says ---- */

static int on_headers_complete(llhttp_t *http)
{
    struct ab_web_parser *p = http->data;
    p->head_done = true;
    http->upgrade = 0; /* no other protocol is spoken here: the request is as any other */
    return 0;
}

static int on_field(llhttp_t *http, const char *at, size_t len)
{
    struct ab_web_parser *p = http->data;
    (void)at;
    (void)len;
    return p->head_done ? refuse(p, 400, "trailers are not accepted") : 0;
}

static int on_body(llhttp_t *http, const char *at, size_t len)
{
    struct ab_web_parser *p = http->data;
    struct ab_err err;
    if (ab_buf_append(&p->req.body, at, len, &err) < 0)
        return refuse(p, 413, "the body is too large");
    return 0;
}

static int on_message_complete(llhttp_t *http)
{
    struct ab_web_parser *p = http->data;
    p->complete = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_header_field = on_field,
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

/* ---- life ---- */

static void begin(struct ab_web_parser *p)
{
    memset(&p->req, 0, sizeof p->req);
    ab_buf_init(&p->req.head, p->head_bytes);
    ab_buf_init(&p->req.body, p->body_bytes);
    llhttp_init(&p->http, HTTP_REQUEST, &settings);
    p->http.data = p;
    p->place = PLACE_BLANK;
    p->blank = p->head_done = p->complete = false;
    p->framing = 0;
}

struct ab_web_parser *ab_web_parser_new(size_t head_bytes, size_t body_bytes)
{
    struct ab_web_parser *p = ab_xcalloc(1, sizeof *p);
    p->head_bytes = head_bytes;
    p->body_bytes = body_bytes;
    begin(p);
    return p;
}

void ab_web_request_fini(struct ab_web_request *r)
{
    ab_buf_fini(&r->head);
    ab_buf_fini(&r->body);
    free(r->fields);
    r->fields = NULL;
    r->nfields = 0;
}

void ab_web_parser_free(struct ab_web_parser *p)
{
    if (!p)
        return;
    ab_web_request_fini(&p->req);
    free(p);
}

const struct ab_web_request *ab_web_parser_request(const struct ab_web_parser *p)
{
    return &p->req;
}

void ab_web_parser_take(struct ab_web_parser *p, struct ab_web_request *out)
{
    *out = p->req;
    begin(p);
}

int ab_web_parser_status(const struct ab_web_parser *p)
{
    return p->status;
}

const char *ab_web_parser_why(const struct ab_web_parser *p)
{
    return p->why;
}

/* ---- fields ---- */

static bool is(const char *text, size_t len, const char *word)
{
    return len == strlen(word) && !strncasecmp(text, word, len);
}

static bool is_token(const char *s, size_t len)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)s[i];
        bool alnum = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
        if (!alnum && (c == 0 || !strchr(marks, c)))
            return false;
    }
    return len > 0;
}

static unsigned count_fields(const struct ab_web_request *r, const char *name,
                             const char **value, size_t *len)
{
    unsigned n = 0;
    for (unsigned i = 0; i < r->nfields; i++) {
        const struct ab_web_field *f = &r->fields[i];
        if (!is(r->head.data + f->name, f->name_len, name))
            continue;
        n++;
        *value = r->head.data + f->value;
        *len = f->value_len;
    }
    return n;
}

const char *ab_web_request_field(const struct ab_web_request *r, const char *name,
                                 size_t *len)
{
    const char *value = NULL;
    return count_fields(r, name, &value, len) == 1 ? value : NULL;
}

/* The head is lines that end in CR LF, and the last one is empty: the scan has seen to
 * that. */
static int cut_fields(struct ab_web_parser *p)
{
    struct ab_web_request *r = &p->req;
    const char *head = r->head.data;
    const char *at = (const char *)memchr(head, '\n', r->head.len) + 1;
    struct ab_web_field fields[AB_WEB_FIELDS];
    unsigned n = 0;
    for (; *at != '\r'; n++) {
        const char *end = memchr(at, '\r', r->head.len - (size_t)(at - head));
        const char *colon = memchr(at, ':', (size_t)(end - at));
        if (!colon || !is_token(at, (size_t)(colon - at)))
            return refuse(p, 400, "a field without a proper name");
        if (n == AB_WEB_FIELDS)
            return refuse(p, 431, "too many fields");
        const char *from = colon + 1, *to = end;
        while (from < to && (*from == ' ' || *from == '\t'))
            from++;
        while (to > from && (to[-1] == ' ' || to[-1] == '\t'))
            to--;
        fields[n] = (struct ab_web_field){
            .name = (uint32_t)(at - head),
            .name_len = (uint32_t)(colon - at),
            .value = (uint32_t)(from - head),
            .value_len = (uint32_t)(to - from),
        };
        at = end + 2;
    }
    r->fields = ab_xcalloc(n ? n : 1, sizeof *r->fields);
    memcpy(r->fields, fields, n * sizeof *fields);
    r->nfields = n;
    return 0;
}

/* ---- the request line ---- */

static const char *const methods[] = {"GET",    "HEAD",    "POST",  "PUT",
                                      "DELETE", "OPTIONS", "PATCH", NULL};

static int check_target(struct ab_web_parser *p, const char *target, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)target[i];
        if (c <= ' ' || c >= 0x7f || c == '#')
            return refuse(p, 400,
                          "a character in the target that must be percent-encoded");
    }
    if (len > 0 && (target[0] == '/' || is(target, len, "*")))
        return 0;
    return refuse(p, 400, "the target is not a path");
}

/* "GET http://host/path" is what proxies are asked: the path is what counts. */
static void skip_authority(const char **target, size_t *len)
{
    static const char scheme[] = "http://";
    if (*len < sizeof scheme - 1 || strncasecmp(*target, scheme, sizeof scheme - 1) != 0)
        return;
    const char *from = *target + sizeof scheme - 1;
    const char *path = memchr(from, '/', *len - (sizeof scheme - 1));
    if (!path)
        return;
    *len -= (size_t)(path - *target);
    *target = path;
}

static int read_line(struct ab_web_parser *p)
{
    struct ab_web_request *r = &p->req;
    const char *line = r->head.data;
    size_t len = (size_t)((const char *)memchr(line, '\r', r->head.len) - line);
    const char *space = memchr(line, ' ', len);
    const char *end = memrchr(line, ' ', len);
    if (!space || end == space)
        return refuse(p, 400, "not a request line");
    size_t version = len - (size_t)(end + 1 - line);
    if (version != 8 || memcmp(end + 1, "HTTP/", 5) != 0)
        return refuse(p, 400, "not HTTP");
    if (memcmp(end + 6, "1.1", 3) != 0 && memcmp(end + 6, "1.0", 3) != 0)
        return refuse(p, 505, "only HTTP/1.1 and HTTP/1.0 are spoken here");
    r->old = end[8] == '0';
    for (int i = 0; methods[i] && !r->method; i++)
        if ((size_t)(space - line) == strlen(methods[i]) &&
            !memcmp(line, methods[i], (size_t)(space - line)))
            r->method = methods[i];
    if (!r->method)
        return refuse(p, 501, "no such method");
    const char *target = space + 1;
    size_t target_len = (size_t)(end - target);
    skip_authority(&target, &target_len);
    r->target = (uint32_t)(target - line);
    r->target_len = (uint32_t)target_len;
    return check_target(p, target, target_len);
}

/* ---- how long it is ---- */

static int read_length(struct ab_web_parser *p, const char *text, size_t len)
{
    uint64_t n = 0;
    if (len == 0 || len > 18)
        return refuse(p, 400, "a Content-Length that is no number");
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return refuse(p, 400, "a Content-Length that is no number");
        n = n * 10 + (uint64_t)(text[i] - '0');
    }
    p->req.length = n;
    return n <= p->body_bytes ? 0 : refuse(p, 413, "the body is too large");
}

static int check_framing(struct ab_web_parser *p)
{
    struct ab_web_request *r = &p->req;
    const char *value = NULL;
    size_t len = 0;
    unsigned codings = count_fields(r, "Transfer-Encoding", &value, &len);
    if (codings > 1)
        return refuse(p, 400, "Transfer-Encoding twice");
    if (codings == 1) {
        if (r->old)
            return refuse(p, 400, "Transfer-Encoding in HTTP/1.0");
        if (!is(value, len, "chunked"))
            return refuse(p, 501, "a Transfer-Encoding other than chunked");
        r->chunked = true;
    }
    unsigned lengths = count_fields(r, "Content-Length", &value, &len);
    if (lengths > 1)
        return refuse(p, 400, "Content-Length twice");
    if (lengths && codings)
        return refuse(p, 400, "Content-Length beside Transfer-Encoding");
    if (lengths && read_length(p, value, len) < 0)
        return -1;
    unsigned hosts = count_fields(r, "Host", &value, &len);
    if (hosts > 1 || (hosts == 0 && !r->old))
        return refuse(p, 400, hosts ? "Host twice" : "no Host");
    if (count_fields(r, "Expect", &value, &len) > 0) {
        if (!is(value, len, "100-continue"))
            return refuse(p, 417, "an expectation that cannot be met");
        r->wants_continue = !r->old;
    }
    return 0;
}

/* ---- bytes ---- */

static enum place blank(struct ab_web_parser *p, char c)
{
    if (c != '\r')
        return PLACE_START;
    if (p->blank)
        refuse(p, 400, "empty lines before a request");
    p->blank = true;
    return PLACE_BLANK_CR;
}

/* The next place; p->status is set when there is none. */
static enum place step(struct ab_web_parser *p, char c)
{
    switch (p->place) {
    case PLACE_BLANK_CR:
    case PLACE_CR:
    case PLACE_END_CR:
        if (c != '\n')
            refuse(p, 400, "a CR without LF");
        return p->place == PLACE_BLANK_CR ? PLACE_BLANK
               : p->place == PLACE_CR     ? PLACE_START
                                          : PLACE_BODY;
    case PLACE_START:
        if (c == ' ' || c == '\t') {
            refuse(p, 400, "a line that begins with a blank");
            return PLACE_START;
        }
        if (c == '\r')
            return PLACE_END_CR;
        break;
    default:
        if (c == '\r')
            return PLACE_CR;
    }
    if (c == '\n')
        refuse(p, 400, "a LF without CR");
    else if (((unsigned char)c < ' ' && c != '\t') || c == 0x7f)
        refuse(p, 400, "a control character");
    return PLACE_LINE;
}

/* Bytes up to and with the end of the head, or all of them. */
static size_t scan(struct ab_web_parser *p, const char *data, size_t len)
{
    size_t i = 0;
    while (i < len && p->place <= PLACE_BLANK_CR && !p->status) {
        enum place next = p->place == PLACE_BLANK ? blank(p, data[i]) : step(p, data[i]);
        p->place = next;
        if (next == PLACE_START)
            break; /* the byte is the first one of the head */
        i++;
    }
    size_t from = i;
    while (i < len && p->place < PLACE_BODY && !p->status) {
        p->place = step(p, data[i]);
        i++;
    }
    struct ab_err err;
    if (!p->status && ab_buf_append(&p->req.head, data + from, i - from, &err) < 0)
        refuse(p, 431, "the head is too large");
    return i;
}

static void run(struct ab_web_parser *p, const char *data, size_t len, size_t *used)
{
    llhttp_errno_t rc = llhttp_execute(&p->http, data, len);
    *used = len;
    if (rc == HPE_PAUSED && p->complete)
        *used = (size_t)(llhttp_get_error_pos(&p->http) - data);
    else if (rc != HPE_OK && !p->status)
        refuse(p, 400, p->head_done ? "the body is not well formed" : "not well formed");
}

/* The head as a whole goes through both, and they must agree. */
static int read_head(struct ab_web_parser *p)
{
    struct ab_web_request *r = &p->req;
    size_t used;
    if (read_line(p) < 0 || cut_fields(p) < 0 || check_framing(p) < 0)
        return -1;
    run(p, r->head.data, r->head.len, &used);
    if (p->status)
        return -1;
    bool body = r->chunked || r->length > 0;
    if (!p->head_done || used != r->head.len || p->complete == body ||
        r->chunked != ((p->http.flags & F_CHUNKED) != 0))
        return refuse(p, 400, "its end cannot be told");
    r->keep_alive = llhttp_should_keep_alive(&p->http);
    p->place = PLACE_BODY;
    return 0;
}

static void read_body(struct ab_web_parser *p, const char *data, size_t len, size_t *used)
{
    size_t before = p->req.body.len;
    run(p, data, len, used);
    p->framing += *used - (p->req.body.len - before);
    if (!p->status && p->framing > FRAMING + p->body_bytes)
        refuse(p, 400, "more chunk sizes than chunks");
}

enum ab_web_step ab_web_parse(struct ab_web_parser *p, const char *data, size_t len,
                              size_t *used)
{
    *used = 0;
    if (p->status)
        return AB_WEB_REFUSED;
    if (!p->head_done) {
        *used = scan(p, data, len);
        if (p->status || (p->place == PLACE_BODY && read_head(p) < 0))
            return AB_WEB_REFUSED;
        if (p->place != PLACE_BODY)
            return AB_WEB_MORE;
        return p->complete ? AB_WEB_REQUEST : AB_WEB_HEAD;
    }
    read_body(p, data, len, used);
    if (p->status)
        return AB_WEB_REFUSED;
    return p->complete ? AB_WEB_REQUEST : AB_WEB_MORE;
}
