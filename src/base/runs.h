/* runs.h - runs of words: what two texts have in common when one was copied from the
 * other, case, blanks and punctuation aside.
 *
 * A word is a run of ASCII letters, digits, `_` and of bytes outside of ASCII. A text of
 * fewer words than a run has no runs.
 */
#ifndef AB_BASE_RUNS_H
#define AB_BASE_RUNS_H

#include "base/ab.h"
#include "base/sieve.h"

enum { AB_RUNS_MAX_WORDS = 64 };

struct ab_runs_found {
    size_t all, hits; /* runs of the text, and those that the sieve has */
    size_t words;     /* of the longest passage whose runs it has all */
    size_t from, to;  /* that passage: offsets, `to` after its last byte */
};

/* Adds the runs of `words` words; returns how many. */
size_t ab_runs_add(struct ab_sieve *s, const char *text, size_t len, unsigned words);

struct ab_runs_found ab_runs_look(const struct ab_sieve *s, const char *text, size_t len,
                                  unsigned words);

#endif
