/* log.h - what the engine itself has to say: one line per event, on a sink.
 *
 * The sink is one of the three writable globals of the program: a process has one
 * standard error. Lines are made safe for a terminal (control characters are shown as
 * \xNN).
 */
#ifndef AB_BASE_LOG_H
#define AB_BASE_LOG_H

#include "base/ab.h"

enum ab_log_level {
    AB_LOG_DEBUG,
    AB_LOG_INFO,
    AB_LOG_WARN,
    AB_LOG_ERROR,
    AB_LOG_OFF,
};

/* Gets a complete line without its newline; must be callable from any thread. */
typedef void (*ab_log_sink)(enum ab_log_level level, const char *line, size_t len);

/* NULL restores the default, standard error. */
void ab_log_set_sink(ab_log_sink sink);

/* Lines below this level are dropped; AB_LOG_WARN at first. */
void ab_log_set_level(enum ab_log_level level);

void ab_log(enum ab_log_level level, const char *fmt, ...) AB_PRINTF(2, 3);
void ab_log_text(enum ab_log_level level, const char *text, size_t len);

/* "debug", "info", "warn", "error", "off"; -1 for any other name. */
int ab_log_level_of(const char *name);

#endif
