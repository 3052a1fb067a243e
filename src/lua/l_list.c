/* l_list.c - agentbox.sys.list: what would be a loop over a long list in Lua. */
#include "lua/conv.h"
#include "lua/json_value.h"

int luaopen_agentbox_sys_list(lua_State *L);

/* same(a, b, name, values, from, to): whether the elements from..to of two lists of
 * tables are the same ones, and their member `name` is the value at that place; false
 * stands for no member. */
static int l_same(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TTABLE);
    luaL_checkstring(L, 3);
    luaL_checktype(L, 4, LUA_TTABLE);
    lua_Integer i = luaL_checkinteger(L, 5), n = luaL_checkinteger(L, 6);
    lua_settop(L, 4);
    for (; i <= n; i++) {
        bool is_table = lua_rawgeti(L, 1, i) == LUA_TTABLE;
        lua_rawgeti(L, 2, i);
        if (!is_table || !lua_rawequal(L, 5, 6))
            break;
        lua_pushvalue(L, 3);
        bool absent = lua_rawget(L, 5) == LUA_TNIL;
        bool wanted = lua_rawgeti(L, 4, i) != LUA_TBOOLEAN;
        if (absent ? wanted : !lua_rawequal(L, 7, 8))
            break;
        lua_settop(L, 4);
    }
    lua_pushboolean(L, i > n);
    return 1;
}

/* only(t, names): whether every key of the table is in the set `names`, and no value is
 * JSON's null. */
static int l_only(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    abl_json_push_null(L);
    bool only = true;
    for (lua_pushnil(L); only && lua_next(L, 1); lua_settop(L, 4)) {
        only = !lua_rawequal(L, 5, 3);
        lua_pushvalue(L, 4);
        lua_rawget(L, 2);
        only = only && lua_toboolean(L, -1);
    }
    lua_pushboolean(L, only);
    return 1;
}

/* new(count, n) -> count tables, each with room for n elements: a list that grows by one
 * is moved at every power of two. */
static int l_new(lua_State *L)
{
    lua_Integer count = luaL_checkinteger(L, 1), n = luaL_checkinteger(L, 2);
    luaL_argcheck(L, count > 0 && count <= 16, 1, "1 to 16");
    luaL_argcheck(L, n >= 0 && n <= 1 << 24, 2, "0 to 16777216");
    luaL_checkstack(L, (int)count, NULL);
    for (lua_Integer i = 0; i < count; i++)
        lua_createtable(L, (int)n, 0);
    return (int)count;
}

int luaopen_agentbox_sys_list(lua_State *L)
{
    static const luaL_Reg lib[] = {
        {"same", l_same}, {"only", l_only}, {"new", l_new}, {NULL, NULL}};
    luaL_newlib(L, lib);
    return 1;
}
