/* minhash.h - which of many texts are nearly the same as a given one, without comparing
 * it with each (MinHash signatures in bands).
 *
 * A text is the set of its runs of three bytes; how alike two are is the share of runs
 * that they have in common (Jaccard). A sketch of AB_SKETCH numbers estimates that to
 * within about 0.03. Sketches are cut into bands of `rows` numbers; only texts that share
 * a band are looked at. Ask for a likeness of 0.8 with 8 rows, of 0.6 with 4, of 0.4 with
 * 2: what is that alike is then missed less than once in a thousand.
 */
#ifndef AB_BASE_MINHASH_H
#define AB_BASE_MINHASH_H

#include "base/ab.h"

enum { AB_SKETCH = 256 };

struct ab_sketch {
    uint16_t
        least[AB_SKETCH]; /* of every hash function, the low half of its least value */
};

struct ab_minhash {
    struct ab_sketch *sketches; /* owns; in the order in which they were added */
    uint32_t *heads; /* owns; by the hash of a band, 1 + the entry, 0 for none */
    uint32_t *next;  /* owns; count * bands entries: the one before in the chain */
    uint32_t *seen;  /* owns; the question in which a sketch was looked at last */
    uint32_t count, cap, question;
    unsigned rows, bands, bits; /* 2^bits heads */
};

/* How alike two texts are, exactly: 0..1. Two empty ones are the same; a text of fewer
 * than three bytes is one run. */
double ab_jaccard(const char *a, size_t a_len, const char *b, size_t b_len);

void ab_sketch_of(struct ab_sketch *out, const char *text, size_t len);
double ab_sketch_likeness(const struct ab_sketch *a, const struct ab_sketch *b);

/* rows: 1, 2, 4, 8 or 16 */
void ab_minhash_init(struct ab_minhash *m, unsigned rows);
void ab_minhash_fini(struct ab_minhash *m);

/* Adds a sketch; its number is the count of those before it. */
uint32_t ab_minhash_add(struct ab_minhash *m, const struct ab_sketch *s);

struct ab_near {
    uint32_t number;
    double likeness; /* as estimated */
};

/* Those that are at least that alike, as far as the bands tell, the nearest first; at
 * most `max` of them. Returns how many. */
size_t ab_minhash_near(struct ab_minhash *m, const struct ab_sketch *s, double least,
                       struct ab_near *out, size_t max);

#endif
