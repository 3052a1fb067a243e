/* count.c - agentbox.sys.count */
#include "lua/count.h"

#include <lauxlib.h>
#include <stdbool.h>
#include <stdint.h>

int luaopen_agentbox_sys_count(lua_State *L);

#ifdef AB_FAULTS
enum { STEP = 100 };

/* One engine at a time is measured. */
static bool counting;
static uint64_t instructions;

static void on_step(lua_State *L, lua_Debug *ar)
{
    (void)L;
    (void)ar;
    instructions += STEP;
}

void ab_count_begin(lua_State *co)
{
    if (counting)
        lua_sethook(co, on_step, LUA_MASKCOUNT, STEP);
}

/* instructions([on]) -> how many there were while it was on, to a hundred a resume */
static int l_instructions(lua_State *L)
{
    if (!lua_isnoneornil(L, 1))
        counting = lua_toboolean(L, 1);
    ab_count_begin(L);
    lua_pushinteger(L, (lua_Integer)instructions);
    return 1;
}
#endif

int luaopen_agentbox_sys_count(lua_State *L)
{
    lua_newtable(L);
#ifdef AB_FAULTS
    lua_pushcfunction(L, l_instructions);
    lua_setfield(L, -2, "instructions");
#endif
    return 1;
}
