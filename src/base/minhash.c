#include "base/minhash.h"

#include <stdlib.h>
#include <string.h>

enum { RUN = 3, FIRST_CAP = 64, MIN_BITS = 10, MAX_BITS = 26 };

static uint64_t mix(uint64_t h)
{
    h = (h ^ (h >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ (h >> 27)) * UINT64_C(0x94d049bb133111eb);
    return h ^ (h >> 31);
}

/* ---- runs ---- */

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* The different runs of a text, sorted. A shorter text is one run, told apart by its
 * length. */
static uint32_t *runs_of(const char *text, size_t len, size_t *count)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t n = len < RUN ? len > 0 : len - RUN + 1;
    uint32_t *runs = ab_xcalloc(n ? n : 1, sizeof *runs);
    if (len > 0 && len < RUN)
        runs[0] = (uint32_t)len << 24 | (uint32_t)p[0] << 8 | (len > 1 ? p[1] : 0);
    for (size_t i = 0; len >= RUN && i < n; i++)
        runs[i] = (uint32_t)p[i] << 16 | (uint32_t)p[i + 1] << 8 | p[i + 2];
    qsort(runs, n, sizeof *runs, by_value);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || runs[i] != runs[i - 1])
            runs[kept++] = runs[i];
    *count = kept;
    return runs;
}

double ab_jaccard(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t a_count, b_count, i = 0, j = 0, both = 0;
    uint32_t *x = runs_of(a, a_len, &a_count), *y = runs_of(b, b_len, &b_count);
    while (i < a_count && j < b_count) {
        both += x[i] == y[j];
        uint32_t low = x[i] < y[j] ? x[i] : y[j];
        i += x[i] == low;
        j += y[j] == low;
    }
    size_t all = a_count + b_count - both;
    free(x);
    free(y);
    return all ? (double)both / (double)all : 1.0;
}

/* ---- sketches ---- */

void ab_sketch_of(struct ab_sketch *out, const char *text, size_t len)
{
    uint32_t least[AB_SKETCH];
    memset(least, 0xff, sizeof least);
    size_t count;
    uint32_t *runs = runs_of(text, len, &count);
    for (size_t i = 0; i < count; i++) {
        /* All hash functions from two of a run: h1 + k * h2. */
        uint64_t h = mix(UINT64_C(0x9e3779b97f4a7c15) * (runs[i] + 1));
        uint32_t at = (uint32_t)h, step = (uint32_t)(h >> 32) | 1;
        for (unsigned k = 0; k < AB_SKETCH; k++, at += step) {
            uint32_t value = (at ^ (at >> 15)) * UINT32_C(0x85ebca6b);
            least[k] = value < least[k] ? value : least[k];
        }
    }
    free(runs);
    for (unsigned k = 0; k < AB_SKETCH; k++)
        out->least[k] = (uint16_t)(least[k] ^ (least[k] >> 16));
}

double ab_sketch_likeness(const struct ab_sketch *a, const struct ab_sketch *b)
{
    unsigned same = 0;
    for (unsigned k = 0; k < AB_SKETCH; k++)
        same += a->least[k] == b->least[k];
    return (double)same / AB_SKETCH;
}

/* ---- the index ---- */

void ab_minhash_init(struct ab_minhash *m, unsigned rows)
{
    *m = (struct ab_minhash){.rows = rows, .bands = AB_SKETCH / rows, .bits = MIN_BITS};
    m->heads = ab_xcalloc((size_t)1 << m->bits, sizeof *m->heads);
}

void ab_minhash_fini(struct ab_minhash *m)
{
    free(m->sketches);
    free(m->heads);
    free(m->next);
    free(m->seen);
    *m = (struct ab_minhash){0};
}

static uint32_t *head_of(const struct ab_minhash *m, const struct ab_sketch *s,
                         unsigned band)
{
    uint64_t h = band + 1;
    for (unsigned r = 0; r < m->rows; r++)
        h = mix(h * UINT64_C(0x9e3779b97f4a7c15) + s->least[band * m->rows + r]);
    return &m->heads[h >> (64 - m->bits)];
}

static void link_in(struct ab_minhash *m, uint32_t number)
{
    for (unsigned band = 0; band < m->bands; band++) {
        uint32_t *head = head_of(m, &m->sketches[number], band);
        size_t entry = (size_t)number * m->bands + band;
        m->next[entry] = *head;
        *head = (uint32_t)entry + 1;
    }
}

/* Twice the room for sketches; and heads enough that chains stay short. */
static void grow(struct ab_minhash *m)
{
    m->cap = m->cap ? m->cap * 2 : FIRST_CAP;
    m->sketches = ab_xrealloc(m->sketches, m->cap * sizeof *m->sketches);
    m->next = ab_xrealloc(m->next, (size_t)m->cap * m->bands * sizeof *m->next);
    m->seen = ab_xrealloc(m->seen, m->cap * sizeof *m->seen);
    unsigned bits = m->bits;
    while (bits < MAX_BITS && ((size_t)1 << bits) < (size_t)m->cap * m->bands)
        bits++;
    if (bits == m->bits)
        return;
    free(m->heads);
    m->bits = bits;
    m->heads = ab_xcalloc((size_t)1 << bits, sizeof *m->heads);
    for (uint32_t i = 0; i < m->count; i++)
        link_in(m, i);
}

uint32_t ab_minhash_add(struct ab_minhash *m, const struct ab_sketch *s)
{
    if (m->count == m->cap)
        grow(m);
    m->sketches[m->count] = *s;
    m->seen[m->count] = 0;
    link_in(m, m->count);
    return m->count++;
}

static void keep(struct ab_near *out, size_t *count, size_t max, struct ab_near one)
{
    size_t at = *count;
    while (at > 0 && out[at - 1].likeness < one.likeness)
        at--;
    if (at >= max)
        return;
    size_t end = *count < max ? *count : max - 1;
    memmove(&out[at + 1], &out[at], (end - at) * sizeof *out);
    out[at] = one;
    *count = end + 1;
}

size_t ab_minhash_near(struct ab_minhash *m, const struct ab_sketch *s, double least,
                       struct ab_near *out, size_t max)
{
    size_t count = 0;
    m->question++;
    for (unsigned band = 0; band < m->bands; band++) {
        for (uint32_t at = *head_of(m, s, band); at; at = m->next[at - 1]) {
            uint32_t number = (at - 1) / m->bands;
            if (m->seen[number] == m->question)
                continue;
            m->seen[number] = m->question;
            double likeness = ab_sketch_likeness(s, &m->sketches[number]);
            if (likeness >= least)
                keep(out, &count, max, (struct ab_near){number, likeness});
        }
    }
    return count;
}
