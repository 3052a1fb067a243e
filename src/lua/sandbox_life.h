/* sandbox_life.h - the parts of a sandbox's life that take time, on the loop.
 *
 * A sandbox whose creation was given up is brought to its end all the same: only when its
 * pidfd has come can it be reaped. So cancelling these operations stops nobody but the
 * waiter.
 */
#ifndef AB_LUA_SANDBOX_LIFE_H
#define AB_LUA_SANDBOX_LIFE_H

#include "rt/op.h"
#include "sandbox/sandbox.h"

/* Done when the sandbox is ready, or failed (op->err) and everything of it is gone; it
 * fails when it is not ready after ms. Takes sb. Caller owns the returned reference. */
struct ab_op *ab_life_create(struct ab_loop *loop, struct ab_sandbox *sb, uint64_t ms);

/* Gives the sandbox of a creation that is done without error; once. */
struct ab_sandbox *ab_life_take(struct ab_op *op);

/* Kills; done when its last process is reaped and its cgroups are removed. Takes sb and
 * frees it. With want_layer its changes stay, for ab_life_take_layer(). */
struct ab_op *ab_life_close(struct ab_loop *loop, struct ab_sandbox *sb, bool want_layer);
struct ab_layer *ab_life_take_layer(struct ab_op *op);

#endif
