/* protect.c - pcall and xpcall that let a cancel through.
 *
 * A cancel must reach the fiber's base: `while true do pcall(f) end` would swallow it
 * otherwise.
 */
#include "lua/conv.h"
#include "lua/slice.h"

static int finish(lua_State *L, int status, lua_KContext extra)
{
    if (status == LUA_OK || status == LUA_YIELD)
        return lua_gettop(L) - (int)extra;
    if (abl_is_cancel(L, -1))
        lua_error(L);
    lua_pushboolean(L, 0);
    lua_pushvalue(L, -2);
    return 2;
}

static int l_pcall(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_pushboolean(L, 1);
    lua_insert(L, 1);
    int rc = lua_pcallk(L, lua_gettop(L) - 2, LUA_MULTRET, 0, 0, finish);
    return finish(L, rc, 0);
}

/* The handler of a script never sees a cancel, so it cannot turn it into something else.
 */
static int l_handler(lua_State *L)
{
    if (abl_is_cancel(L, 1))
        return 1;
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
    return 1;
}

static int l_xpcall(lua_State *L)
{
    int n = lua_gettop(L);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_pushvalue(L, 2);
    lua_pushcclosure(L, l_handler, 1);
    lua_replace(L, 2);
    lua_pushboolean(L, 1);
    lua_pushvalue(L, 1);
    lua_rotate(L, 3, 2);
    int rc = lua_pcallk(L, n - 2, LUA_MULTRET, 2, 2, finish);
    return finish(L, rc, 2);
}

void abl_protect_install(lua_State *L)
{
    lua_pushcfunction(L, l_pcall);
    lua_setglobal(L, "pcall");
    lua_pushcfunction(L, l_xpcall);
    lua_setglobal(L, "xpcall");
}
