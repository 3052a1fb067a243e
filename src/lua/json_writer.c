#include "lua/json_writer.h"

#include <lauxlib.h>

#include "base/json_slice.h"
#include "lua/buffer.h"
#include "lua/json_raw.h"
#include "lua/json_row.h"

struct ab_buf *abl_json_begin(lua_State *L, int idx)
{
    struct ab_buf *given = lua_islightuserdata(L, -1) ? lua_touserdata(L, -1) : NULL;
    if (given)
        lua_pop(L, 1);
    lua_settop(L, idx - 1);
    if (!given)
        return abl_take_buf(L);
    lua_pushlightuserdata(L, given);
    return given;
}

int abl_json_end(lua_State *L, int idx, const struct ab_buf *out)
{
    if (lua_islightuserdata(L, idx))
        return 0;
    lua_pushlstring(L, out->data, out->len);
    abl_return_buf(L, idx);
    return 1;
}

int abl_json_later(lua_State *L)
{
    luaL_argcheck(L, lua_iscfunction(L, 1), 1, "a writer expected");
    abl_json_push_later(L, 1);
    return 1;
}

static struct ab_json_slice text_or_nothing(lua_State *L, int idx)
{
    struct ab_json_slice text;
    text.s = luaL_optlstring(L, idx, "", &text.len);
    return text;
}

int abl_json_joined(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    struct ab_buf *out = abl_json_begin(L, 5);
    struct ab_json_slice between = text_or_nothing(L, 2), before = text_or_nothing(L, 3),
                         behind = text_or_nothing(L, 4);
    ab_buf_put(out, before.s, before.len);
    for (lua_Integer i = 1; lua_rawgeti(L, 1, i) != LUA_TNIL; i++) {
        if (i > 1)
            ab_buf_put(out, between.s, between.len);
        abl_json_put_value(L, 6, true, out);
        lua_settop(L, 5);
    }
    ab_buf_put(out, behind.s, behind.len);
    return abl_json_end(L, 5, out);
}
