/* loop.h - the event loop of one engine, and the list of everything in flight on it.
 *
 * The only header that shows libuv to other layers: the loop embeds uv_loop_t.
 */
#ifndef AB_RT_LOOP_H
#define AB_RT_LOOP_H

#include <stdbool.h>
#include <uv.h>

#include "base/err.h"
#include "base/list.h"

struct ab_loop {
    uv_loop_t uv;
    struct ab_list ops; /* every op alive, for the sweep and for leak reports */
    unsigned commands;  /* that run; see child.c */
    uv_idle_t busy;     /* see ab_loop_turn() */
    uv_work_t first;    /* see ab_work_ready() */
    bool pool;          /* its threads were started */
};

int ab_loop_init(struct ab_loop *loop, struct ab_err *err) AB_MUST_CHECK;

/* One turn: waits for something to happen, or, when the caller has work of its own, only
 * looks whether something has. Returns whether anything is left that can happen. */
bool ab_loop_turn(struct ab_loop *loop, bool has_work);

/* Drops what the waiters left behind, closes every handle. Returns ops swept. */
int ab_loop_fini(struct ab_loop *loop);

/* How many operations are alive. */
int ab_loop_count(const struct ab_loop *loop);

#endif
