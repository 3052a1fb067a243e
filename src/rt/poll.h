/* poll.h - waits until a descriptor is ready. */
#ifndef AB_RT_POLL_H
#define AB_RT_POLL_H

#include "rt/op.h"

/* Starts an operation that is done once fd is ready for `events` (UV_READABLE,
 * UV_WRITABLE, UV_DISCONNECT). Level-triggered and one-shot: start another one to wait
 * again. op->err tells when the descriptor cannot be polled. fd is borrowed: keep it open
 * until the op is done or cancelled; two operations may not poll the same fd at once.
 * Caller owns the returned reference. */
struct ab_op *ab_poll_start(struct ab_loop *loop, int fd, int events);

/* The same for a descriptor that others may wait for as well, or close meanwhile: polls
 * one of its own. */
struct ab_op *ab_poll_shared(struct ab_loop *loop, int fd, int events);

/* The events that were seen, valid when done. */
int ab_poll_events(const struct ab_op *op);

#endif
