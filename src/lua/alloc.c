#include "lua/alloc.h"

#include <stdlib.h>

enum { DEFAULT_FIBER_MB = 512 };

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

static void *shrink(struct ab_heap *heap, struct header *h, size_t osize, size_t nsize)
{
    struct ab_account *owner = h->owner;
    struct header *smaller = realloc(h, sizeof *h + nsize);
    credit(heap, owner, osize - nsize);
    return (smaller ? smaller : h) + 1; /* Lua assumes that shrinking cannot fail */
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
            free(h);
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
        exceeds(heap->bytes, nsize - osize, heap->limit_bytes))
        return NULL;
    h = realloc(h, sizeof *h + nsize);
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
