/* state.h - one engine: a loop, a Lua state, and the fibers that run on both. */
#ifndef AB_LUA_STATE_H
#define AB_LUA_STATE_H

#include "lua/fiber.h"

struct ab_state {
    struct ab_loop loop;
    struct ab_sched sched;
    lua_State *L; /* owns */
};

int ab_state_init(struct ab_state *s, struct ab_err *err) AB_MUST_CHECK;

/* Runs require("agentbox.cli").main(argv) as the first fiber until no fiber is left; gives the exit status. */
int ab_state_main(struct ab_state *s, int argc, char **argv);

void ab_state_fini(struct ab_state *s);

#endif
