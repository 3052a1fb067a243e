/* l_timer.c - agentbox.sys.timer */
#include "lua/fiber.h"
#include "rt/timer.h"

int luaopen_agentbox_sys_timer(lua_State *L);

static int push_slept(lua_State *L, struct ab_op *op)
{
    (void)op;
    lua_pushboolean(L, 1);
    return 1;
}

/* sleep(ms): suspends the task. Raises on a bad argument or outside a task. */
static int l_sleep(lua_State *L)
{
    lua_Integer ms = luaL_checkinteger(L, 1);
    luaL_argcheck(L, ms >= 0, 1, "must not be negative");
    struct ab_anchor *anchor = abl_anchor(L);
    anchor->op = ab_timer_start(abl_loop(L), (uint64_t)ms);
    return abl_wait(L, anchor, push_slept);
}

int luaopen_agentbox_sys_timer(lua_State *L)
{
    static const luaL_Reg lib[] = {
        {"sleep", l_sleep},
        {NULL, NULL},
    };
    luaL_newlib(L, lib);
    return 1;
}
