/* fuzz_task.c - the task loader, in an engine's Lua state, over a folder made of the
 * input; what is checked of it stands in task.lua. */
#include <lauxlib.h>
#include <lua.h>

#include "lua/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The check stays in the registry. One state for all inputs: what one leaves behind
 * must not matter to the next. */
static lua_State *engine(int *check)
{
    static struct ab_state state;
    static int ref = LUA_NOREF;
    struct ab_err err;
    if (ref == LUA_NOREF) {
        if (ab_state_init(&state, &err) < 0)
            AB_BUG("%s", err.msg);
        if (luaL_loadfile(state.L, AB_FUZZ_DIR "/task.lua") != LUA_OK ||
            lua_pcall(state.L, 0, 1, 0) != LUA_OK)
            AB_BUG("%s", lua_tostring(state.L, -1));
        ref = luaL_ref(state.L, LUA_REGISTRYINDEX);
    }
    *check = ref;
    return state.L;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int check;
    lua_State *L = engine(&check);
    lua_rawgeti(L, LUA_REGISTRYINDEX, check);
    lua_pushlstring(L, (const char *)data, size);
    if (lua_pcall(L, 1, 0, 0) != LUA_OK)
        AB_BUG("%s", luaL_tolstring(L, -1, NULL));
    return 0;
}
