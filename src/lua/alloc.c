#include "lua/alloc.h"

#include <stdlib.h>
#include <string.h>

enum { DEFAULT_FIBER_MB = 512 };

/* Small blocks come in steps of 16 bytes, cut from chunks: a Lua heap is a million of
 * them, and malloc's own book-keeping would be a quarter of it. AddressSanitizer sees
 * only what malloc gives. */
#ifdef __SANITIZE_ADDRESS__
enum { STEP = 16, SMALL_BYTES = 0, CHUNK_BYTES = 65536 };
#else
enum { STEP = 16, SMALL_BYTES = STEP * AB_HEAP_CLASSES, CHUNK_BYTES = 65536 };
#endif

/* In front of every block. Eight bytes keep the alignment that Lua's own structures need.
 */
struct header {
    struct ab_account *owner;
};

void ab_heap_init(struct ab_heap *heap)
{
    *heap = (struct ab_heap){.fiber_limit_bytes = (size_t)DEFAULT_FIBER_MB << 20};
    heap->engine.fibers = 1;
    heap->charged = &heap->engine;
}

struct ab_account *ab_account_new(const struct ab_heap *heap)
{
    struct ab_account *a = ab_xcalloc(1, sizeof *a);
    a->fibers = 1;
    a->limit_bytes = heap ? heap->fiber_limit_bytes : 0;
    return a;
}

void ab_account_ref(struct ab_account *account)
{
    account->fibers++;
}

static void drop_unused(struct ab_account *account)
{
    if (account->fibers == 0 && account->bytes == 0)
        free(account);
}

void ab_account_unref(struct ab_account *account)
{
    account->fibers--;
    drop_unused(account);
}

static void credit(struct ab_heap *heap, struct ab_account *owner, size_t size)
{
    heap->bytes -= size;
    owner->bytes -= size;
}

static void debit(struct ab_heap *heap, struct ab_account *owner, size_t size)
{
    heap->bytes += size;
    owner->bytes += size;
}

static bool exceeds(size_t used, size_t more, size_t limit)
{
    return limit && (more > limit || used > limit - more);
}

/* 0 for a block of malloc's; size includes the header. */
static size_t class_of(size_t size)
{
    return size <= SMALL_BYTES ? (size + STEP - 1) / STEP : 0;
}

/* Cuts a new chunk into blocks of the class. False when there is no memory. */
static bool cut_chunk(struct ab_heap *heap, size_t cls)
{
    char *chunk = malloc(CHUNK_BYTES);
    if (!chunk)
        return false;
    *(void **)(void *)chunk = heap->chunks;
    heap->chunks = chunk;
    /* The first block starts 8 bytes into a step, so that what Lua gets, behind the
     * header, is aligned as malloc would. */
    size_t size = cls * STEP;
    for (char *at = chunk + sizeof(void *); at + size <= chunk + CHUNK_BYTES;
         at += size) {
        *(void **)(void *)at = heap->free[cls - 1];
        heap->free[cls - 1] = at;
    }
    return true;
}

static struct header *take(struct ab_heap *heap, size_t size)
{
    size_t cls = class_of(size);
    if (cls == 0)
        return malloc(size);
    void **first = &heap->free[cls - 1];
    if (!*first && !cut_chunk(heap, cls))
        return NULL;
    struct header *h = *first;
    *first = *(void **)h;
    /* The next block was freed long ago and is in no cache: reading its link would wait
     * for memory then. */
    __builtin_prefetch(*first, 1);
    return h;
}

static void give_back(struct ab_heap *heap, struct header *h, size_t size)
{
    size_t cls = class_of(size);
    if (cls == 0) {
        free(h);
        return;
    }
    *(void **)h = heap->free[cls - 1];
    heap->free[cls - 1] = h;
}

/* Sizes include the header. NULL leaves the old block as it is. */
static struct header *resize(struct ab_heap *heap, struct header *h, size_t old,
                             size_t size)
{
    if (class_of(old) == class_of(size))
        return class_of(size) ? h : realloc(h, size);
    struct header *moved = take(heap, size);
    if (!moved)
        return NULL;
    memcpy(moved, h, old < size ? old : size);
    give_back(heap, h, old);
    return moved;
}

void ab_heap_fini(struct ab_heap *heap)
{
    while (heap->chunks) {
        void *chunk = heap->chunks;
        heap->chunks = *(void **)chunk;
        free(chunk);
    }
}

static void *shrink(struct ab_heap *heap, struct header *h, size_t osize, size_t nsize)
{
    struct ab_account *owner = h->owner;
    struct header *smaller = resize(heap, h, sizeof *h + osize, sizeof *h + nsize);
    if (!smaller)
        AB_BUG("out of memory"); /* Lua assumes that shrinking cannot fail */
    credit(heap, owner, osize - nsize);
    return smaller + 1;
}

void *ab_heap_alloc(void *ud, void *ptr, size_t osize, size_t nsize)
{
    struct ab_heap *heap = ud;
    struct header *h = ptr ? (struct header *)ptr - 1 : NULL;
    if (!h)
        osize = 0; /* a type tag then */
    if (nsize == 0) {
        if (h) {
            struct ab_account *owner = h->owner;
            give_back(heap, h, sizeof *h + osize);
            credit(heap, owner, osize);
            drop_unused(owner);
        }
        return NULL;
    }
    if (h && nsize <= osize)
        return shrink(heap, h, osize, nsize);

    struct ab_account *payer = heap->charged, *owner = h ? h->owner : NULL;
    size_t more = owner == payer ? nsize - osize : nsize;
    if (exceeds(payer->bytes, more, payer->limit_bytes) ||
        exceeds(heap->bytes, nsize - osize, heap->limit_bytes)) {
        heap->refused = true;
        return NULL;
    }
    h = h ? resize(heap, h, sizeof *h + osize, sizeof *h + nsize)
          : take(heap, sizeof *h + nsize);
    if (!h)
        return NULL;
    h->owner = payer;
    if (owner)
        credit(heap, owner, osize);
    debit(heap, payer, nsize);
    if (owner && owner != payer)
        drop_unused(owner);
    return h + 1;
}
