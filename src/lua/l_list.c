/* l_list.c - agentbox.sys.list: what would be a loop over a long list in Lua. */
#include "lua/conv.h"

int luaopen_agentbox_sys_list(lua_State *L);

/* same(a, b, from, to): whether the elements from..to are the same values. */
static int l_same(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_Integer i = luaL_checkinteger(L, 3), n = luaL_checkinteger(L, 4);
    for (; i <= n; i++) {
        lua_rawgeti(L, 1, i);
        lua_rawgeti(L, 2, i);
        if (!lua_rawequal(L, -1, -2))
            break;
        lua_pop(L, 2);
    }
    lua_pushboolean(L, i > n);
    return 1;
}

/* have(list, name, values, from, to): whether the member `name` of the elements from..to,
 * tables all of them, is the value at the same place; false stands for no member. */
static int l_have(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkstring(L, 2);
    luaL_checktype(L, 3, LUA_TTABLE);
    lua_Integer i = luaL_checkinteger(L, 4), n = luaL_checkinteger(L, 5);
    lua_settop(L, 3);
    for (; i <= n; i++) {
        if (lua_rawgeti(L, 1, i) != LUA_TTABLE)
            break;
        lua_pushvalue(L, 2);
        bool absent = lua_rawget(L, 4) == LUA_TNIL;
        bool wanted = lua_rawgeti(L, 3, i) != LUA_TBOOLEAN;
        if (absent ? wanted : !lua_rawequal(L, -1, -2))
            break;
        lua_settop(L, 3);
    }
    lua_pushboolean(L, i > n);
    return 1;
}

int luaopen_agentbox_sys_list(lua_State *L)
{
    static const luaL_Reg lib[] = {{"same", l_same}, {"have", l_have}, {NULL, NULL}};
    luaL_newlib(L, lib);
    return 1;
}
