#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const names[] = {"debug", "info", "warn", "error", "off"};

static struct {
    _Atomic(ab_log_sink) sink;
    atomic_int level;
} logger = {.level = AB_LOG_WARN};

/* One write for one line, so that lines of several threads do not mix. */
static void to_stderr(enum ab_log_level level, const char *line, size_t len)
{
    char prefix[32];
    int n = snprintf(prefix, sizeof prefix, "agentbox: %s%s",
                     level == AB_LOG_INFO ? "" : names[level],
                     level == AB_LOG_INFO ? "" : ": ");
    char *all = ab_xcalloc(1, (size_t)n + len + 1);
    memcpy(all, prefix, (size_t)n);
    memcpy(all + n, line, len);
    all[(size_t)n + len] = '\n';
    for (size_t at = 0; at < (size_t)n + len + 1;) {
        ssize_t w = write(STDERR_FILENO, all + at, (size_t)n + len + 1 - at);
        if (w <= 0)
            break;
        at += (size_t)w;
    }
    free(all);
}

void ab_log_set_sink(ab_log_sink sink)
{
    atomic_store(&logger.sink, sink);
}

void ab_log_set_level(enum ab_log_level level)
{
    atomic_store(&logger.level, level);
}

static bool is_plain(unsigned char c)
{
    return (c >= 0x20 && c != 0x7f) || c == '\t' || c == '\n';
}

void ab_log_text(enum ab_log_level level, const char *text, size_t len)
{
    if ((int)level < atomic_load(&logger.level))
        return;
    char *line = ab_xcalloc(4, len + 1);
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (is_plain(c))
            line[n++] = text[i];
        else
            n += (size_t)snprintf(line + n, 5, "\\x%02x", c);
    }
    ab_log_sink sink = atomic_load(&logger.sink);
    (sink ? sink : to_stderr)(level, line, n);
    free(line);
}

void ab_log(enum ab_log_level level, const char *fmt, ...)
{
    char small[512];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    if ((size_t)n < sizeof small) {
        ab_log_text(level, small, (size_t)n);
        return;
    }
    char *big = ab_xcalloc(1, (size_t)n + 1);
    va_start(ap, fmt);
    vsnprintf(big, (size_t)n + 1, fmt, ap);
    va_end(ap);
    ab_log_text(level, big, (size_t)n);
    free(big);
}

int ab_log_level_of(const char *name)
{
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}
