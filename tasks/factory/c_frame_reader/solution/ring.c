#include "ring.h"

#include <string.h>

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

void ring_init(struct ring *r, uint8_t *bytes, size_t size)
{
    *r = (struct ring){.bytes = bytes, .size = size};
}

size_t ring_write(struct ring *r, const uint8_t *from, size_t n)
{
    n = smaller(n, r->size - r->count);
    size_t end = (r->start + r->count) % r->size;
    size_t first = smaller(n, r->size - end);
    memcpy(r->bytes + end, from, first);
    memcpy(r->bytes, from + first, n - first);
    r->count += n;
    return n;
}

size_t ring_peek(const struct ring *r, size_t offset, uint8_t *to, size_t n)
{
    if (offset >= r->count)
        return 0;
    n = smaller(n, r->count - offset);
    size_t at = (r->start + offset) % r->size;
    size_t first = smaller(n, r->size - at);
    memcpy(to, r->bytes + at, first);
    memcpy(to + first, r->bytes, n - first);
    return n;
}

size_t ring_drop(struct ring *r, size_t n)
{
    n = smaller(n, r->count);
    r->start = (r->start + n) % r->size;
    r->count -= n;
    return n;
}

size_t ring_find(const struct ring *r, size_t offset, uint8_t value)
{
    while (offset < r->count && r->bytes[(r->start + offset) % r->size] != value)
        offset++;
    return smaller(offset, r->count);
}
