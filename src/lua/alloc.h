/* alloc.h - the Lua heap, and who pays for what.
 *
 * One heap per engine. Every block remembers the account that was charged for it, so an
 * account's figure is exact: it falls when the block is freed, whoever's turn it is then.
 * A block that grows moves to the account that made it grow. An allocation that would
 * lift an account or the heap over its ceiling is refused; Lua then collects garbage,
 * tries again, and raises "not enough memory" in the running fiber alone.
 */
#ifndef AB_LUA_ALLOC_H
#define AB_LUA_ALLOC_H

#include "base/ab.h"

/* What a fiber, or a fiber and its children, may use. Freed when no fiber and no block is
 * left. */
struct ab_account {
    size_t bytes;
    size_t limit_bytes;    /* 0: none */
    uint64_t cpu_ns;       /* counted only while cpu_limit_ns is set */
    uint64_t cpu_limit_ns; /* 0: none */
    int fibers;
    bool shared; /* set by a limit: children pay into it too */
};

enum { AB_HEAP_CLASSES = 16 };

struct ab_heap {
    size_t bytes;
    size_t limit_bytes;         /* 0: none */
    struct ab_account engine;   /* what no fiber pays for */
    struct ab_account *charged; /* borrowed; never NULL */
    bool refused; /* set when an allocation met a ceiling: Lua has collected everything */
    size_t fiber_limit_bytes;    /* for new accounts */
    void *free[AB_HEAP_CLASSES]; /* small blocks by size: lists of what was freed */
    void *chunks;                /* owns; what they are cut from: the first ones, */
    void *arenas;                /* owns; and whole huge pages, the newest first */
    size_t arena_used;           /* bytes of the newest one */
    size_t chunk_count;
};

void ab_heap_init(struct ab_heap *heap);

/* After lua_close. Small blocks are cut from chunks that are kept until here. */
void ab_heap_fini(struct ab_heap *heap);

/* A lua_Alloc; ud is the heap. */
void *ab_heap_alloc(void *ud, void *ptr, size_t osize, size_t nsize);

/* Gives an account with the heap's default ceiling and one fiber. */
struct ab_account *ab_account_new(const struct ab_heap *heap);
void ab_account_ref(struct ab_account *account);
void ab_account_unref(struct ab_account *account);

#endif
