/* pattern.h - Lua patterns with a budget of steps.
 *
 *     void *mem = malloc(ab_pattern_size(len));
 *     struct ab_pattern *p = ab_pattern_compile(mem, text, len);
 *     struct ab_match m = {.subject = s, .len = n, .budget = 20000000};
 *     int rc = ab_pattern_match(p, &m, start, &end, &err);      // 1, 0 or -1
 *
 * The meaning is that of Lua 5.4, down to the moment at which a malformed part is
 * noticed: when the matcher reaches it. A pattern has no nested repetition, so the list
 * of choices is never longer than the pattern, and matching uses no C stack.
 */
#ifndef AB_BASE_PATTERN_H
#define AB_BASE_PATTERN_H

#include "base/err.h"

#define AB_PATTERN_MAX_CAPTURES 32

struct ab_pattern;

struct ab_capture {
    size_t start;
    ptrdiff_t len; /* or one of the below */
};

#define AB_CAPTURE_OPEN     (-1)
#define AB_CAPTURE_POSITION (-2)

struct ab_match {
    const char *subject; /* borrowed */
    size_t len;
    int64_t budget;   /* steps left; goes on over several matches */
    int64_t pause_at; /* pauses when fewer are left; 0: never */
    bool paused;      /* the next call goes on where the last one stopped: */
    size_t pos;
    uint32_t item, choices;
    int level; /* captures of the last match */
    struct ab_capture captures[AB_PATTERN_MAX_CAPTURES];
};

/* What a match that pauses returns. Lower pause_at and call again with the same
 * arguments. */
enum { AB_PATTERN_PAUSED = 2 };

/* Bytes that a pattern of this length may need. */
size_t ab_pattern_size(size_t len);

/* Uses mem, of ab_pattern_size(len) bytes, aligned as malloc does it; borrows text. A
 * leading
 * `^` is for the caller to look at and leave out. */
struct ab_pattern *ab_pattern_compile(void *mem, const char *text, size_t len);

/* Moves a compiled pattern to other memory of the same size, with the state of a match
 * that is paused. */
struct ab_pattern *ab_pattern_move(void *mem, const struct ab_pattern *p, size_t len);

/* Matches at exactly `start`. -1: AB_EBADARG for a malformed pattern, AB_ELIMIT when the
 * budget is used up. */
int ab_pattern_match(const struct ab_pattern *p, struct ab_match *m, size_t start,
                     size_t *end, struct ab_err *err) AB_MUST_CHECK;

/* Finds the first match at or after *start, and stores where it begins and ends. */
int ab_pattern_search(const struct ab_pattern *p, struct ab_match *m, size_t *start,
                      size_t *end, struct ab_err *err) AB_MUST_CHECK;

#endif
