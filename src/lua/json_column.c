#include "lua/json_column.h"

#include <lauxlib.h>

#include "base/json_column.h"
#include "lua/buffer.h"
#include "lua/json_raw.h"
#include "lua/json_value.h"

int abl_json_column(lua_State *L)
{
    size_t len;
    luaL_argcheck(L, abl_json_type(L, 1) == ABL_JSON_RAW, 1, "raw JSON expected");
    const char *text = abl_json_value_text(L, 1, &len);
    const char *inside = luaL_checkstring(L, 2), *name = luaL_checkstring(L, 3);
    struct ab_buf *buf = abl_push_buf(L);
    long n = ab_json_column(buf, text, len, inside, name);
    if (n < 0) {
        ab_buf_fini(buf);
        lua_pushnil(L);
        return 1;
    }
    lua_pushlstring(L, buf->data, buf->len);
    ab_buf_fini(buf);
    size_t bytes;
    const char *list = lua_tolstring(L, -1, &bytes);
    abl_json_push_raw(L, lua_gettop(L), list, bytes);
    lua_pushinteger(L, n);
    return 2;
}
