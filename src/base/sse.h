/* sse.h - server-sent events, fed by chunks cut anywhere.
 *
 *     struct ab_sse sse;
 *     struct ab_sse_event event;
 *     ab_sse_init(&sse, 16 << 20);
 *     for each chunk (data, len):
 *         while ((rc = ab_sse_next(&sse, &data, &len, &event, &err)) > 0)
 *             ...                       // the event is borrowed until the next call
 *         if (rc < 0) ...               // AB_ETOOBIG: the stream is lost
 *     ab_sse_fini(&sse);
 *
 * As the HTML standard has it: lines end in CR, LF or CRLF, a byte order mark at the
 * start and comments are passed over, an event ends with an empty line, and counts only
 * if it has data.
 */
#ifndef AB_BASE_SSE_H
#define AB_BASE_SSE_H

#include "base/buf.h"

struct ab_sse_event {
    const char *name; /* borrowed; "message" when the server gave none */
    size_t name_len;
    const char *data; /* borrowed; several data lines are joined by LF */
    size_t data_len;
    const char *id; /* borrowed; the last one the stream gave, perhaps empty */
    size_t id_len;
    int64_t retry_ms; /* the last one the stream gave, or -1 */
};

struct ab_sse {
    struct ab_buf line, data, name, id; /* own */
    int64_t retry_ms;
    bool has_data;
    bool given;    /* the event in data and name was returned: forget it */
    bool after_cr; /* a LF that comes next belongs to the CR before it */
    bool started;  /* the byte order mark is behind us */
};

/* max_bytes caps one line and the data of one event. */
void ab_sse_init(struct ab_sse *sse, size_t max_bytes);
void ab_sse_fini(struct ab_sse *sse);

/* Takes bytes from the front of the chunk. 1: an event; call again with what is left of
 * the chunk. 0: the chunk is used up. -1 with AB_ETOOBIG. */
int ab_sse_next(struct ab_sse *sse, const char **data, size_t *len,
                struct ab_sse_event *event, struct ab_err *err) AB_MUST_CHECK;

/* At the end of the stream. 1: an event whose lines are whole but whose empty line is
 * missing, which the standard drops and some servers send. 0: none. *cut tells whether
 * the stream ended inside a line, which is dropped. */
int ab_sse_finish(struct ab_sse *sse, struct ab_sse_event *event, bool *cut);

#endif
