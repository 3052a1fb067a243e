/* frame.h - frames in a stream of bytes:
 *
 *     0x7e | type (1 byte) | length (2 bytes, the high one first) | payload | check (2 bytes, the high one first)
 *
 * The check is CRC-16/CCITT-FALSE (polynomial 0x1021, begins with 0xffff, nothing reflected, nothing at the end) over type, length
 * and payload; of the nine characters "123456789" it is 0x29b1. Bytes in a frame may have any value, 0x7e too.
 */
#ifndef FRAME_H
#define FRAME_H

#include "ring.h"

enum { FRAME_MARK = 0x7e, FRAME_MAX_PAYLOAD = 512, FRAME_OVERHEAD = 6 };

struct frame {
    uint8_t type;
    uint16_t length;
    uint8_t payload[FRAME_MAX_PAYLOAD];
};

enum frame_result {
    FRAME_NONE,  /* more bytes are needed */
    FRAME_GOOD,  /* *out is a frame; it is no longer in the ring */
};

struct frame_stats {
    unsigned long good;
    unsigned long bad;     /* marks that did not begin a good frame */
    unsigned long skipped; /* bytes dropped that were in no good frame, with the marks counted as bad */
};

/* The check of `n` bytes that follow those of which `crc` is the check (0xffff at the beginning). */
uint16_t frame_crc(uint16_t crc, const uint8_t *bytes, size_t n);

/* Takes the next frame out of a ring of at least FRAME_MAX_PAYLOAD + FRAME_OVERHEAD bytes. Bytes before a mark are dropped. A mark whose
 * length is over FRAME_MAX_PAYLOAD, or whose check is wrong, is dropped alone, and the search goes on with the byte behind it: a good
 * frame may begin inside of what looked like a longer one. A frame that may still become good is waited for. `*out` is written only
 * with FRAME_GOOD. With FRAME_NONE nothing is left in the ring but a beginning that may still become a frame. */
enum frame_result frame_next(struct ring *r, struct frame *out, struct frame_stats *stats);

/* Writes a whole frame to `to`, which has `room` bytes. Returns its size, or 0 when the length is over FRAME_MAX_PAYLOAD or there is
 * not enough room; then nothing is written. */
size_t frame_write(const struct frame *f, uint8_t *to, size_t room);

#endif
