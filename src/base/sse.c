#include "base/sse.h"

#include <string.h>

void ab_sse_init(struct ab_sse *sse, size_t max_bytes)
{
    *sse = (struct ab_sse){.retry_ms = -1};
    ab_buf_init(&sse->line, max_bytes);
    ab_buf_init(&sse->data, max_bytes);
    ab_buf_init(&sse->name, max_bytes);
    ab_buf_init(&sse->id, max_bytes);
}

void ab_sse_fini(struct ab_sse *sse)
{
    ab_buf_fini(&sse->line);
    ab_buf_fini(&sse->data);
    ab_buf_fini(&sse->name);
    ab_buf_fini(&sse->id);
}

/* The end of an event: 1 when it counts. */
static int give(struct ab_sse *sse, struct ab_sse_event *event)
{
    sse->given = true;
    if (!sse->has_data)
        return 0;
    bool named = sse->name.len > 0;
    *event = (struct ab_sse_event){
        .name = named ? sse->name.data : "message",
        .name_len = named ? sse->name.len : 7,
        .data = sse->data.len ? sse->data.data : "",
        .data_len = sse->data.len,
        .id = sse->id.len ? sse->id.data : "",
        .id_len = sse->id.len,
        .retry_ms = sse->retry_ms,
    };
    return 1;
}

static void forget_given(struct ab_sse *sse)
{
    if (!sse->given)
        return;
    sse->given = false;
    sse->has_data = false;
    ab_buf_clear(&sse->data);
    ab_buf_clear(&sse->name);
}

static bool is(const char *field, size_t len, const char *name)
{
    return strlen(name) == len && memcmp(field, name, len) == 0;
}

static int replace(struct ab_buf *b, const char *value, size_t len, struct ab_err *err)
{
    ab_buf_clear(b);
    return ab_buf_append(b, value, len, err);
}

static void set_retry(struct ab_sse *sse, const char *s, size_t len)
{
    int64_t ms = 0;
    if (len == 0 || len > 15)
        return;
    for (size_t i = 0; i < len; i++) {
        if (s[i] < '0' || s[i] > '9')
            return;
        ms = ms * 10 + (s[i] - '0');
    }
    sse->retry_ms = ms;
}

/* A line that is not empty. */
static int on_field(struct ab_sse *sse, const char *line, size_t len, struct ab_err *err)
{
    const char *colon = memchr(line, ':', len);
    size_t field = colon ? (size_t)(colon - line) : len;
    const char *value = colon ? colon + 1 : line + len;
    size_t n = (size_t)(line + len - value);
    if (n > 0 && *value == ' ') {
        value++;
        n--;
    }
    if (is(line, field, "data")) {
        if (sse->has_data && ab_buf_append(&sse->data, "\n", 1, err) < 0)
            return -1;
        sse->has_data = true;
        return ab_buf_append(&sse->data, value, n, err);
    }
    if (is(line, field, "event"))
        return replace(&sse->name, value, n, err);
    if (is(line, field, "id") && !memchr(value, '\0', n))
        return replace(&sse->id, value, n, err);
    if (is(line, field, "retry"))
        set_retry(sse, value, n);
    return 0;
}

/* The first three bytes may come one by one. Returns how many of data to pass over. */
static size_t skip_mark(struct ab_sse *sse, const char *data, size_t len)
{
    static const char mark[] = "\xef\xbb\xbf";
    size_t have = sse->line.len, i = 0;
    while (i < len && have + i < 3 && data[i] == mark[have + i])
        i++;
    if (have + i == 3) {
        ab_buf_clear(&sse->line);
        sse->started = true;
        return i;
    }
    sse->started = i < len;
    return 0;
}

/* The first CR or LF. */
static const char *line_end(const char *s, size_t len)
{
    const char *lf = memchr(s, '\n', len);
    const char *cr = memchr(s, '\r', lf ? (size_t)(lf - s) : len);
    return cr ? cr : lf;
}

/* Takes one line from the chunk, or what there is of it. 1: a whole line. */
static int take_line(struct ab_sse *sse, const char **data, size_t *len,
                     const char **line, size_t *line_len, struct ab_err *err)
{
    const char *end = line_end(*data, *len);
    size_t n = end ? (size_t)(end - *data) : *len;
    *line = *data;
    *line_len = n;
    /* The cap holds for a line that needs no copy too: what is refused must not depend on
     * the chunks. */
    bool too_long = sse->line.max && n > sse->line.max;
    if (!end || sse->line.len > 0 || too_long) {
        if (ab_buf_append(&sse->line, *data, n, err) < 0)
            return ab_err_wrap(err, "line of an event stream");
        *line = sse->line.data;
        *line_len = sse->line.len;
    }
    n += end != NULL;
    *data += n;
    *len -= n;
    if (end)
        sse->after_cr = *end == '\r';
    return end != NULL;
}

int ab_sse_next(struct ab_sse *sse, const char **data, size_t *len,
                struct ab_sse_event *event, struct ab_err *err)
{
    forget_given(sse);
    if (!sse->started) {
        size_t skip = skip_mark(sse, *data, *len);
        *data += skip;
        *len -= skip;
    }
    while (*len > 0) {
        const char *line;
        size_t n;
        if (sse->after_cr && **data == '\n') {
            ++*data;
            --*len;
        }
        sse->after_cr = false;
        int rc = *len ? take_line(sse, data, len, &line, &n, err) : 0;
        if (rc <= 0)
            return rc;
        rc = n > 0 ? on_field(sse, line, n, err) : give(sse, event);
        ab_buf_clear(&sse->line);
        if (rc < 0)
            return ab_err_wrap(err, "event stream");
        if (rc > 0)
            return 1;
        forget_given(sse);
    }
    return 0;
}

int ab_sse_finish(struct ab_sse *sse, struct ab_sse_event *event, bool *cut)
{
    forget_given(sse);
    *cut = sse->line.len > 0;
    ab_buf_clear(&sse->line);
    return give(sse, event);
}
