/* signal.h - waits for a signal of the process. */
#ifndef AB_RT_SIGNAL_H
#define AB_RT_SIGNAL_H

#include "rt/op.h"

/* Starts an operation that is done when the signal arrives; it keeps the
 * loop alive until then. Caller owns the returned reference. */
struct ab_op *ab_signal_start(struct ab_loop *loop, int signum);

/* Is somebody waiting for it with ab_signal_start? */
bool ab_signal_awaited(const struct ab_loop *loop, int signum);

#endif
