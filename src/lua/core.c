#include "lua/core.h"

#include <lauxlib.h>

#include "lua/collect.h"
#include "lua/fiber.h"
#include "lua/loader.h"
#include "lua/slice.h"
#include "lua/traceback.h"

#define AB_PRIMITIVES(X) \
    X(err)               \
    X(fields)            \
    X(fiber)             \
    X(fs)                \
    X(count)             \
    X(hash)              \
    X(lines)             \
    X(sink)              \
    X(list)              \
    X(log)               \
    X(minhash)           \
    X(os)                \
    X(plane)             \
    X(rand)              \
    X(scratch)           \
    X(time)              \
    X(json)              \
    X(re)                \
    X(sieve)             \
    X(sqlite)            \
    X(sse)               \
    X(toml)              \
    X(yaml)              \
    X(utf8x)             \
    X(http)              \
    X(http_server)       \
    X(sandbox)

#define X(name) int luaopen_agentbox_sys_##name(lua_State *L);
AB_PRIMITIVES(X)
#undef X

static const luaL_Reg primitives[] = {
#define X(name) {"agentbox.sys." #name, luaopen_agentbox_sys_##name},
    AB_PRIMITIVES(X)
#undef X
        {NULL, NULL},
};

static void preload(lua_State *L)
{
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    luaL_setfuncs(L, primitives, 0);
    lua_pop(L, 1);
}

void abl_open_engine(lua_State *L)
{
    abl_register(L);
    preload(L);
    abl_loader_install(L);
    abl_slice_install(L);
    abl_bound_install(L);
    abl_traceback_install(L);
    abl_protect_install(L);
    abl_collect_install(L);
}
