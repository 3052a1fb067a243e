/* frames.h - what the engine and the guest say to each other over one stream of bytes.
 *
 * A frame: payload length (u32), channel (u32), type (u8), payload; little endian. A
 * channel is one command, one file request or one copy; the engine numbers them, and one
 * number is not used twice at a time. The frames' payloads are in lua/stdlib/docker/
 * frames.lua beside the code that makes and takes them; this side's are in guest.c.
 *
 *     engine ──EXEC──► guest      then STDIN, STDIN_END, KILL, RESIZE, CREDIT, FLOOD
 *     guest ──OUT, ERR──► engine  at most what the engine has room for
 *     guest ──TAKEN──► engine     bytes of STDIN that the command has read
 *     guest ──EXIT──► engine      the last one of its channel
 *     engine ──a file request──► guest, DATA and REPLY back
 *
 * A frame that cannot be understood ends the guest: the other side is the engine, so
 * either it is gone or one of us has a bug.
 */
#ifndef AB_GUEST_FRAMES_H
#define AB_GUEST_FRAMES_H

#include "base/buf.h"

#define AB_FRAME_PROTOCOL 1
#define AB_FRAME_HEAD     9
#define AB_FRAME_MAX      (4u << 20)

enum ab_frame_type {
    AB_FRAME_HELLO = 1,
    AB_FRAME_EXEC,
    AB_FRAME_STDIN,
    AB_FRAME_STDIN_END,
    AB_FRAME_TAKEN,
    AB_FRAME_KILL,
    AB_FRAME_RESIZE,
    AB_FRAME_CREDIT,
    AB_FRAME_FLOOD, /* nobody reads any more: keep the head, drop the rest */
    AB_FRAME_OUT,
    AB_FRAME_ERR,
    AB_FRAME_EXIT,
    AB_FRAME_PING,
    AB_FRAME_PURGE,
    AB_FRAME_READ,
    AB_FRAME_WRITE,
    AB_FRAME_STAT,
    AB_FRAME_LIST,
    AB_FRAME_MKDIR,
    AB_FRAME_REMOVE,
    AB_FRAME_RENAME,
    AB_FRAME_PACK,
    AB_FRAME_UNPACK,
    AB_FRAME_DATA,
    AB_FRAME_REPLY,
};

struct ab_frame {
    uint8_t type;
    uint32_t channel;
    const uint8_t *data; /* borrowed from the input, until the next ab_frames_take() */
    size_t len;
};

struct ab_frames {
    int in, out; /* owns; not blocking */
    struct ab_buf inq, outq;
    size_t used; /* bytes of inq that were taken */
};

void ab_frames_init(struct ab_frames *f, int in, int out);

/* Reads what is there; false at the end of the stream. */
bool ab_frames_fill(struct ab_frames *f);

/* 1: *out is the next frame. 0: there is none yet. -1: this is no frame. */
int ab_frames_take(struct ab_frames *f, struct ab_frame *out);

/* Appends to what is to be written. head and tail are one payload. */
void ab_frames_put(struct ab_frames *f, enum ab_frame_type type, uint32_t channel,
                   const void *head, size_t head_len, const void *tail, size_t tail_len);

/* Writes what the stream takes now; false when nobody reads it any more. */
bool ab_frames_flush(struct ab_frames *f);

/* Waits until no more than `left` bytes are to be written. */
bool ab_frames_settle(struct ab_frames *f, size_t left);

/* ---- payloads ---- */

struct ab_cursor {
    const uint8_t *p;
    size_t left;
    bool bad; /* something was missing: every value since is 0 or "" */
};

uint64_t ab_take_int(struct ab_cursor *c, size_t bytes);
const char *ab_take_text(struct ab_cursor *c); /* up to and with its NUL; borrowed */

/* Appends the low `bytes` of v. */
void ab_put_int(struct ab_buf *b, uint64_t v, size_t bytes);

#endif
