#include "frame.h"

#include <string.h>

uint16_t frame_crc(uint16_t crc, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        crc = (uint16_t)(crc ^ bytes[i] << 8);
        for (int bit = 0; bit < 8; bit++)
            crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
    }
    return crc;
}

enum look { LOOK_WAIT, LOOK_BAD, LOOK_GOOD };

/* Looks at the mark at the beginning of the ring. */
static enum look look(const struct ring *r, struct frame *out)
{
    uint8_t bytes[FRAME_MAX_PAYLOAD + FRAME_OVERHEAD];
    size_t have = ring_peek(r, 0, bytes, sizeof bytes);
    if (have < 4)
        return LOOK_WAIT;
    size_t length = (size_t)bytes[2] << 8 | bytes[3];
    if (length > FRAME_MAX_PAYLOAD)
        return LOOK_BAD;
    if (have < length + FRAME_OVERHEAD)
        return LOOK_WAIT;
    unsigned check = (unsigned)bytes[4 + length] << 8 | bytes[5 + length];
    if (frame_crc(0xffff, bytes + 1, length + 3) != check)
        return LOOK_BAD;
    out->type = bytes[1];
    out->length = (uint16_t)length;
    memcpy(out->payload, bytes + 4, length);
    return LOOK_GOOD;
}

enum frame_result frame_next(struct ring *r, struct frame *out, struct frame_stats *stats)
{
    for (;;) {
        stats->skipped += ring_drop(r, ring_find(r, 0, FRAME_MARK));
        if (r->count == 0)
            return FRAME_NONE;
        switch (look(r, out)) {
        case LOOK_WAIT:
            return FRAME_NONE;
        case LOOK_BAD:
            stats->bad++;
            stats->skipped += ring_drop(r, 1);
            break;
        case LOOK_GOOD:
            stats->good++;
            ring_drop(r, (size_t)out->length + FRAME_OVERHEAD);
            return FRAME_GOOD;
        }
    }
}

size_t frame_write(const struct frame *f, uint8_t *to, size_t room)
{
    size_t length = f->length;
    if (length > FRAME_MAX_PAYLOAD || room < length + FRAME_OVERHEAD)
        return 0;
    to[0] = FRAME_MARK;
    to[1] = f->type;
    to[2] = (uint8_t)(length >> 8);
    to[3] = (uint8_t)length;
    memcpy(to + 4, f->payload, length);
    uint16_t check = frame_crc(0xffff, to + 1, length + 3);
    to[4 + length] = (uint8_t)(check >> 8);
    to[5 + length] = (uint8_t)check;
    return length + FRAME_OVERHEAD;
}
