/* slice.h - what happens to a fiber that does not come back by itself.
 *
 * The watchdog's signal sets a count hook on the coroutine that executes. The hook yields
 * to the scheduler, so a busy script is merely sliced; a nested coroutine passes the
 * slice outwards. Where no yield is possible (a sort's comparator, a module's top level)
 * it lets the script go on, and after AB_BLOCK_LIMIT_MS of CPU time cancels the fiber
 * with code `limit`. Functions of the built-in library are not sliced in their own frames
 * unless they compute for 100 ms: what they do between two waits is atomic.
 */
#ifndef AB_LUA_SLICE_H
#define AB_LUA_SLICE_H

#include "lua/fiber.h"

enum {
    AB_BLOCK_LIMIT_MS = 2000,
    AB_STUCK_WARN_MS = 2000,
    AB_STUCK_LIMIT_MS = 10000,
};

/* Replaces coroutine.resume, wrap, close, yield and isyieldable by versions that note
 * which coroutine executes and cannot break a fiber; and debug.sethook by a refusal. */
void abl_slice_install(lua_State *L);

/* Replaces string.rep, table.move, insert, remove and sort by versions of which no call
 * lasts for ever, and setmetatable by one that takes no finalizer. */
void abl_bound_install(lua_State *L);

/* Replaces pcall and xpcall by versions that let a cancel through. */
void abl_protect_install(lua_State *L);

/* Runs the hook at the next instruction of co. Safe in a signal handler on the loop
 * thread. */
void ab_slice_arm(lua_State *co);

/* For a C function that computes for long, at intervals: true when it is to leave with
 * abl_slice_leave, which goes on in k with the stack as it is now. Raises a cancel. */
bool abl_slice_due(lua_State *L);
int abl_slice_leave(lua_State *L, lua_KContext ctx, lua_KFunction k);

/* To be called before co is resumed. */
void ab_slice_begin(lua_State *co);

/* For struct ab_watchdog_hooks; arg is the scheduler. */
void ab_slice_on_tick(void *sched);
void ab_slice_on_warn(void *sched);

/* Shared with fiber.c and wait.c. */
void abl_wait_register(lua_State *L);
uint64_t ab_sched_elapsed_ns(const struct ab_sched *s);
void ab_sched_charge_cpu(struct ab_sched *s);
int abl_l_raise_cancel(lua_State *L);
bool abl_is_fiber_co(lua_State *co);

#endif
