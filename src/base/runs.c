#include "base/runs.h"

/* The last words of a text, the oldest first from `at` on. */
struct window {
    uint64_t hashes[AB_RUNS_MAX_WORDS];
    size_t starts[AB_RUNS_MAX_WORDS];
    unsigned words, at;
    size_t seen, next; /* words so far; where to go on */
    size_t end;        /* after the last word */
};

static bool is_word(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           c == '_' || c >= 0x80;
}

/* Takes the next word in; false at the end of the text. */
static bool next_word(struct window *w, const char *text, size_t len)
{
    size_t i = w->next;
    while (i < len && !is_word((unsigned char)text[i]))
        i++;
    if (i == len)
        return false;
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    size_t start = i;
    for (; i < len && is_word((unsigned char)text[i]); i++) {
        unsigned char c = (unsigned char)text[i];
        h = (h ^ (c >= 'A' && c <= 'Z' ? c + 32u : c)) * UINT64_C(0x100000001b3);
    }
    w->hashes[w->at] = h;
    w->starts[w->at] = start;
    w->at = (w->at + 1) % w->words;
    w->seen++;
    w->next = w->end = i;
    return true;
}

/* The run that the window shows, in order. */
static size_t run_of(const struct window *w, uint64_t out[AB_RUNS_MAX_WORDS])
{
    for (unsigned i = 0; i < w->words; i++)
        out[i] = w->hashes[(w->at + i) % w->words];
    return w->words * sizeof *out;
}

size_t ab_runs_add(struct ab_sieve *s, const char *text, size_t len, unsigned words)
{
    struct window w = {.words = words};
    uint64_t run[AB_RUNS_MAX_WORDS];
    size_t count = 0;
    while (next_word(&w, text, len)) {
        if (w.seen < words)
            continue;
        size_t bytes = run_of(&w, run);
        ab_sieve_add(s, (const char *)run, bytes);
        count++;
    }
    return count;
}

struct ab_runs_found ab_runs_look(const struct ab_sieve *s, const char *text, size_t len,
                                  unsigned words)
{
    struct window w = {.words = words};
    struct ab_runs_found out = {0};
    uint64_t run[AB_RUNS_MAX_WORDS];
    size_t row = 0, from = 0;
    while (next_word(&w, text, len)) {
        if (w.seen < words)
            continue;
        out.all++;
        size_t bytes = run_of(&w, run);
        if (!ab_sieve_has(s, (const char *)run, bytes)) {
            row = 0;
            continue;
        }
        out.hits++;
        if (row++ == 0)
            from = w.starts[w.at];
        if (row + words - 1 > out.words) {
            out.words = row + words - 1;
            out.from = from;
            out.to = w.end;
        }
    }
    return out;
}
