/* state.h - one engine: a loop, a Lua state, and the fibers that run on both.
 *
 *     struct ab_state s;
 *     if (ab_state_init(&s, &err) < 0) ...
 *     status = ab_state_main(&s, argc, argv);
 *     ab_state_fini(&s);
 *
 * Several engines may live in one process, one per thread.
 */
#ifndef AB_LUA_STATE_H
#define AB_LUA_STATE_H

#include "lua/fiber.h"

struct ab_state {
    struct ab_loop loop;
    struct ab_heap heap;
    struct ab_sched sched;
    struct ab_watchdog *wd; /* owns */
    uv_signal_t interrupt, terminate, hangup;
    int interrupts;
    lua_State *L; /* owns */
};

/* Leaves nothing behind when it fails. */
int ab_state_init(struct ab_state *s, struct ab_err *err) AB_MUST_CHECK;

/* Runs require("agentbox.cli").main(argv) as the first fiber until no fiber is left;
 * gives the exit status. The first SIGINT, SIGTERM or SIGHUP (unless it was ignored, as
 * nohup does) cancels that fiber, so that everything unwinds, and the status is 130; the
 * second ends the process at once. */
int ab_state_main(struct ab_state *s, int argc, char **argv);

void ab_state_fini(struct ab_state *s);

#endif
