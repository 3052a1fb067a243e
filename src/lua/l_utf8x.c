/* l_utf8x.c - agentbox.sys.utf8x: bytes that should be text */
#include <stdlib.h>

#include "base/utf8.h"
#include "lua/buffer.h"
#include "lua/fiber.h"

int luaopen_agentbox_sys_utf8x(lua_State *L);

static size_t check_size(lua_State *L, int arg)
{
    lua_Integer n = luaL_checkinteger(L, arg);
    luaL_argcheck(L, n >= 0, arg, "must not be negative");
    return (size_t)n;
}

static int l_valid(lua_State *L)
{
    size_t len;
    const char *s = luaL_checklstring(L, 1, &len);
    lua_pushboolean(L, ab_utf8_valid_prefix(s, len) == len);
    return 1;
}

/* scrub(bytes) -> text, changed */
static int l_scrub(lua_State *L)
{
    size_t len;
    const char *s = luaL_checklstring(L, 1, &len);
    lua_settop(L, 1);
    if (ab_utf8_valid_prefix(s, len) == len) {
        lua_pushboolean(L, 0);
        return 2;
    }
    struct ab_buf *buf = abl_push_buf(L);
    ab_utf8_scrub(buf, s, len);
    lua_pushlstring(L, buf->data, buf->len);
    ab_buf_fini(buf);
    lua_pushboolean(L, 1);
    return 2;
}

static int l_len(lua_State *L)
{
    size_t len;
    const char *s = luaL_checklstring(L, 1, &len);
    lua_pushinteger(L, (lua_Integer)ab_utf8_count(s, len));
    return 1;
}

static int push_prefix(lua_State *L, const char *s, size_t len, size_t keep)
{
    if (keep == len)
        lua_settop(L, 1);
    else
        lua_pushlstring(L, s, keep);
    return 1;
}

static int l_truncate_cp(lua_State *L)
{
    size_t len;
    const char *s = luaL_checklstring(L, 1, &len);
    return push_prefix(L, s, len, ab_utf8_prefix(s, len, check_size(L, 2)));
}

static int l_truncate_bytes(lua_State *L)
{
    size_t len;
    const char *s = luaL_checklstring(L, 1, &len);
    return push_prefix(L, s, len, ab_utf8_cut(s, len, check_size(L, 2)));
}

int luaopen_agentbox_sys_utf8x(lua_State *L)
{
    static const luaL_Reg lib[] = {
        {"valid", l_valid},
        {"scrub", l_scrub},
        {"len", l_len},
        {"truncate_cp", l_truncate_cp},
        {"truncate_bytes", l_truncate_bytes},
        {NULL, NULL},
    };
    luaL_newlib(L, lib);
    return 1;
}
