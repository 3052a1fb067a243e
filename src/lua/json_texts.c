#include "lua/json_texts.h"

#include <lauxlib.h>

#include "lua/json_value.h"

#define TEXTS_TYPE "agentbox.json.texts"

enum { UV_ELEMENTS = 1, UV_OPTS };

int abl_json_texts(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 2);
    lua_newuserdatauv(L, 0, 2);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, UV_ELEMENTS);
    lua_pushvalue(L, 2);
    lua_setiuservalue(L, -2, UV_OPTS);
    luaL_setmetatable(L, TEXTS_TYPE);
    return 1;
}

bool abl_json_push_texts(lua_State *L, int idx)
{
    if (!luaL_testudata(L, idx, TEXTS_TYPE))
        return false;
    lua_getiuservalue(L, idx, UV_ELEMENTS);
    return true;
}

/* Whether the element on top is a text; a raw one is replaced by its text. */
static bool push_as_text(lua_State *L)
{
    if (lua_isuserdata(L, -1) && abl_json_type(L, -1) == ABL_JSON_RAW) {
        size_t len;
        const char *s = abl_json_value_text(L, -1, &len);
        lua_pushlstring(L, s, len);
        lua_replace(L, -2);
    }
    return lua_type(L, -1) == LUA_TSTRING;
}

/* upvalue: decode */
static int l_texts_index(lua_State *L)
{
    luaL_checkudata(L, 1, TEXTS_TYPE);
    lua_settop(L, 2);
    lua_getiuservalue(L, 1, UV_ELEMENTS);
    if (!lua_isinteger(L, 2) || lua_rawgeti(L, 3, lua_tointeger(L, 2)) == LUA_TNIL)
        return 0;
    if (!push_as_text(L))
        return 1;
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 4);
    lua_getiuservalue(L, 1, UV_OPTS);
    lua_call(L, 2, 1);
    lua_pushvalue(L, 4);
    lua_rawseti(L, 3, lua_tointeger(L, 2));
    return 1;
}

static int l_texts_len(lua_State *L)
{
    luaL_checkudata(L, 1, TEXTS_TYPE);
    lua_getiuservalue(L, 1, UV_ELEMENTS);
    lua_pushinteger(L, (lua_Integer)lua_rawlen(L, -1));
    return 1;
}

/* The decoder is on top of the stack; pops it. */
void abl_json_register_texts(lua_State *L)
{
    luaL_newmetatable(L, TEXTS_TYPE);
    lua_insert(L, -2);
    lua_pushcclosure(L, l_texts_index, 1);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, l_texts_len);
    lua_setfield(L, -2, "__len");
    lua_pop(L, 1);
}
