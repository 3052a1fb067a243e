#include "lua/json_shape.h"

#include <lauxlib.h>

#include "lua/json_value.h"

/* Gives the object on top the shape of those of its names that have a value. */
static void set_partial_shape(lua_State *L, int n)
{
    abl_json_push_shape(L);
    for (int i = 1; i <= n; i++) {
        if (lua_isnil(L, i))
            continue;
        lua_pushvalue(L, lua_upvalueindex(i + 1));
        lua_insert(L, -2);
        if (!abl_json_next_shape(L, -2))
            AB_BUG("names that shape() took make no shape");
        lua_remove(L, -2);
    }
    lua_setmetatable(L, -2);
}

/* upvalues: the whole shape, its names */
static int l_make(lua_State *L)
{
    int n = (int)lua_rawlen(L, lua_upvalueindex(1));
    bool whole = true;
    lua_settop(L, n);
    lua_createtable(L, 0, n);
    for (int i = 1; i <= n; i++) {
        if (lua_isnil(L, i)) {
            whole = false;
            continue;
        }
        lua_pushvalue(L, lua_upvalueindex(i + 1));
        lua_pushvalue(L, i);
        lua_rawset(L, n + 1);
    }
    if (whole) {
        lua_pushvalue(L, lua_upvalueindex(1));
        lua_setmetatable(L, -2);
    } else {
        set_partial_shape(L, n);
    }
    return 1;
}

int abl_json_shape(lua_State *L)
{
    int n = lua_gettop(L);
    luaL_checkstack(L, n + 8, NULL);
    abl_json_push_shape(L);
    for (int i = 1; i <= n; i++) {
        luaL_checkstring(L, i);
        lua_pushvalue(L, i);
        lua_insert(L, -2);
        if (!abl_json_next_shape(L, -2))
            luaL_argerror(L, i,
                          "too many names, too long a name, or one that came twice");
        lua_remove(L, -2);
    }
    lua_insert(L, 1);
    lua_pushcclosure(L, l_make, n + 1);
    return 1;
}
