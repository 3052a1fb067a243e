/* ring.h - bytes in a circle. The caller owns the memory. */
#ifndef RING_H
#define RING_H

#include <stddef.h>
#include <stdint.h>

struct ring {
    uint8_t *bytes;
    size_t size;  /* of `bytes`; all of them can be used */
    size_t start; /* where the first byte is */
    size_t count;
};

/* An empty ring over `size` bytes (at least 1). */
void ring_init(struct ring *r, uint8_t *bytes, size_t size);

/* Appends as many of `n` bytes as there is room for and returns how many. */
size_t ring_write(struct ring *r, const uint8_t *from, size_t n);

/* Copies up to `n` bytes, beginning with the one at `offset`, to `to`; they stay in the ring. Returns how many there were. */
size_t ring_peek(const struct ring *r, size_t offset, uint8_t *to, size_t n);

/* Drops up to `n` bytes at the beginning and returns how many. */
size_t ring_drop(struct ring *r, size_t n);

/* The offset of the first byte with this value at or behind `offset`; r->count when there is none. */
size_t ring_find(const struct ring *r, size_t offset, uint8_t value);

#endif
