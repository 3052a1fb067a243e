#include "lua/alloc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { DEFAULT_FIBER_MB = 512 };

/* Small blocks come in steps of 16 bytes, cut from chunks: a Lua heap is a million of
 * them, and malloc's own book-keeping would be a quarter of it. AddressSanitizer sees
 * only what malloc gives. */
#ifdef __SANITIZE_ADDRESS__
enum { STEP = 16, SMALL_BYTES = 0, CHUNK_BYTES = 65536 };
#else
enum { STEP = 16, SMALL_BYTES = STEP * AB_HEAP_CLASSES, CHUNK_BYTES = 65536 };
#endif

/* Collecting garbage visits every object of a heap in no order: once it is larger than
 * what the processor keeps translations for, looking up its pages takes longer than the
 * rest. So beyond the first few megabytes chunks are cut from huge pages, where the
 * kernel has some. */
enum { PLAIN_CHUNKS = 128, ARENA_BYTES = 2 << 20 };

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

/* An arena starts where a huge page does, so more is mapped than is used; pages that
 * nobody touches take no memory. */
static char *map_arena(struct ab_heap *heap)
{
    char *map = mmap(NULL, 2 * ARENA_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    char *arena = map + (ARENA_BYTES - (uintptr_t)map % ARENA_BYTES) % ARENA_BYTES;
    if (arena > map)
        munmap(map, (size_t)(arena - map));
    munmap(arena + ARENA_BYTES, (size_t)(map + ARENA_BYTES - arena));
    madvise(arena, ARENA_BYTES, MADV_HUGEPAGE); /* may be refused */
    *(void **)(void *)arena = heap->arenas;
    heap->arenas = arena;
    heap->arena_used = 0; /* no block begins where the link is */
    return arena;
}

static char *new_chunk(struct ab_heap *heap)
{
    char *chunk;
    if (heap->chunk_count < PLAIN_CHUNKS) {
        chunk = malloc(CHUNK_BYTES);
        if (!chunk)
            return NULL;
        *(void **)(void *)chunk = heap->chunks;
        heap->chunks = chunk;
    } else {
        if ((!heap->arenas || heap->arena_used == ARENA_BYTES) && !map_arena(heap))
            return NULL;
        chunk = (char *)heap->arenas + heap->arena_used;
        heap->arena_used += CHUNK_BYTES;
    }
    heap->chunk_count++;
    return chunk;
}

/* Cuts a new chunk into blocks of the class. False when there is no memory. */
static bool cut_chunk(struct ab_heap *heap, size_t cls)
{
    char *chunk = new_chunk(heap);
    if (!chunk)
        return false;
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
    while (heap->arenas) {
        void *arena = heap->arenas;
        heap->arenas = *(void **)arena;
        munmap(arena, ARENA_BYTES);
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
