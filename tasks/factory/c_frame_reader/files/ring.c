#include "ring.h"

void ring_init(struct ring *r, uint8_t *bytes, size_t size)
{
    *r = (struct ring){.bytes = bytes, .size = size};
}

size_t ring_write(struct ring *r, const uint8_t *from, size_t n)
{
    (void)r;
    (void)from;
    return n;
}

size_t ring_peek(const struct ring *r, size_t offset, uint8_t *to, size_t n)
{
    (void)r;
    (void)offset;
    (void)to;
    (void)n;
    return 0;
}

size_t ring_drop(struct ring *r, size_t n)
{
    (void)r;
    (void)n;
    return 0;
}

size_t ring_find(const struct ring *r, size_t offset, uint8_t value)
{
    (void)offset;
    (void)value;
    return r->count;
}
