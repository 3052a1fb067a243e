#include "lua/core.h"

#include <lauxlib.h>

#define AB_PRIMITIVES(X) \
    X(err) \
    X(fiber) \
    X(fs) \
    X(hash) \
    X(log) \
    X(os) \
    X(rand) \
    X(time) \
    X(json) \
    X(sse) \
    X(yaml) \
    X(utf8x) \
    X(http)

#define X(name) int luaopen_agentbox_sys_##name(lua_State *L);
AB_PRIMITIVES(X)
#undef X

int luaopen_cjson(lua_State *L);
int luaopen_cjson_safe(lua_State *L);

static const luaL_Reg primitives[] = {
#define X(name) {"agentbox.sys." #name, luaopen_agentbox_sys_##name},
    AB_PRIMITIVES(X)
#undef X
    {"cjson", luaopen_cjson},
    {"cjson.safe", luaopen_cjson_safe},
    {NULL, NULL},
};

void abl_core_preload(lua_State *L)
{
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    luaL_setfuncs(L, primitives, 0);
    lua_pop(L, 1);
}
