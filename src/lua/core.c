#include "lua/core.h"

#include <lauxlib.h>

#define AB_PRIMITIVES(X) \
    X(timer) \
    X(json) \
    X(yaml) \
    X(utf8x) \
    X(http)

#define X(name) int luaopen_agentbox_sys_##name(lua_State *L);
AB_PRIMITIVES(X)
#undef X

static const luaL_Reg primitives[] = {
#define X(name) {"agentbox.sys." #name, luaopen_agentbox_sys_##name},
    AB_PRIMITIVES(X)
#undef X
    {NULL, NULL},
};

void abl_core_preload(lua_State *L)
{
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    luaL_setfuncs(L, primitives, 0);
    lua_pop(L, 1);
}
