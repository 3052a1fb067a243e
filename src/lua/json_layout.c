#include "lua/json_layout.h"

#include <lauxlib.h>

#include "lua/buffer.h"

enum { MAX_INDENT = 16 };

size_t abl_json_read_names(lua_State *L, int idx, struct ab_json_name *names)
{
    if (!lua_istable(L, idx) || lua_getfield(L, idx, "raw") == LUA_TNIL)
        return 0;
    luaL_argcheck(L, lua_istable(L, -1), idx, "option 'raw': list of names expected");
    lua_Integer n = (lua_Integer)lua_rawlen(L, -1);
    luaL_argcheck(L, n <= ABL_JSON_RAW_NAMES, idx, "option 'raw': too many names");
    for (lua_Integer i = 0; i < n; i++) {
        luaL_argcheck(L, lua_rawgeti(L, -1, i + 1) == LUA_TSTRING, idx,
                      "option 'raw': list of names expected");
        names[i].s = lua_tolstring(L, -1, &names[i].len);
        lua_pop(L, 1);
    }
    return (size_t)n;
}

struct ab_json_layout abl_json_read_layout(lua_State *L, int idx,
                                           struct ab_json_name *names)
{
    lua_Integer indent = luaL_checkinteger(L, idx);
    luaL_argcheck(L, indent > 0 && indent <= MAX_INDENT, idx, "1 to 16");
    return (struct ab_json_layout){
        .indent = (int)indent,
        .style = lua_toboolean(L, idx + 1) ? AB_JSON_ASCII : 0,
        .text = names,
        .text_count = abl_json_read_names(L, idx + 2, names),
    };
}

int abl_json_lay_out(lua_State *L)
{
    struct ab_json_name names[ABL_JSON_RAW_NAMES];
    size_t len;
    lua_settop(L, 4);
    const char *text = luaL_checklstring(L, 1, &len);
    struct ab_json_layout layout = abl_json_read_layout(L, 2, names);
    struct ab_buf *out = abl_take_buf(L);
    int buf = lua_gettop(L);
    if (ab_json_lay_out(out, text, len, &layout))
        lua_pushlstring(L, out->data, out->len);
    else
        lua_pushnil(L);
    abl_return_buf(L, buf);
    return 1;
}
