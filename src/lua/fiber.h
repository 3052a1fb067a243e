/* fiber.h - Lua coroutines scheduled on the loop.
 *
 * Naming: `abl_` functions take a lua_State and may raise (longjmp). Do not hold a C
 * resource across a call to one; put it in an anchor first. `ab_` functions never raise.
 */
#ifndef AB_LUA_FIBER_H
#define AB_LUA_FIBER_H

#include <lauxlib.h>
#include <lua.h>

#include "rt/op.h"

/* Lua declares these as returning int; tell the compiler and the analyzers the truth. */
AB_NORETURN int lua_error(lua_State *L);
AB_NORETURN int luaL_error(lua_State *L, const char *fmt, ...);

struct ab_fiber;

struct ab_sched {
    struct ab_loop *loop;    /* borrowed */
    lua_State *main;         /* borrowed; outlives the scheduler's fiber */
    struct ab_fiber *running; /* NULL between resumes */
    struct ab_list ready;    /* fiber to resume, oldest first */
    int live;
    int failed;
};

/* Ties the scheduler to every coroutine of L. Call once, right after lua_newstate. */
void ab_sched_init(struct ab_sched *s, lua_State *main, struct ab_loop *loop);

/* Runs until no fiber is left. */
void ab_sched_run(struct ab_sched *s);

/* Creates a fiber from the function at idx. The handle stays valid until ab_fiber_free;
 * it outlives the coroutine, so holding a finished one is safe. */
struct ab_fiber *abl_fiber_new(lua_State *L, int idx);
void ab_fiber_free(struct ab_fiber *t);

/* Raises "cancelled" once, at the point where the fiber waits. */
void ab_fiber_cancel(struct ab_fiber *t);

/* Binding side: anchor first, start second, wait last.
 *
 *     struct ab_anchor *anchor = abl_anchor(L);
 *     anchor->op = ab_timer_start(abl_loop(L), ms);
 *     return abl_wait(L, anchor, push_result);
 *
 * abl_anchor raises unless L is the coroutine of the running fiber. push_result runs
 * inside the fiber, protected, and may raise.
 */
struct ab_anchor {
    struct ab_op *op; /* owns one reference, or NULL */
    int (*push)(lua_State *L, struct ab_op *op);
};

void abl_register(lua_State *L);
struct ab_loop *abl_loop(lua_State *L);
struct ab_anchor *abl_anchor(lua_State *L);
int abl_wait(lua_State *L, struct ab_anchor *anchor,
             int (*push)(lua_State *, struct ab_op *));

#endif
