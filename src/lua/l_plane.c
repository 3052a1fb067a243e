/* l_plane.c - agentbox.sys.plane: flat lists of numbers, as JSON and packed. */
#include <lauxlib.h>

#include "base/plane.h"
#include "lua/buffer.h"
#include "lua/conv.h"
#include "lua/json_value.h"

int luaopen_agentbox_sys_plane(lua_State *L);

/* The JSON text at 1, a string or a raw value. Borrowed from it. */
static const char *check_text(lua_State *L, size_t *len)
{
    if (abl_json_type(L, 1) == ABL_JSON_RAW)
        return abl_json_value_text(L, 1, len);
    return luaL_checklstring(L, 1, len);
}

/* measure(json) -> count, min, max | nil: no flat list of numbers */
static int l_measure(lua_State *L)
{
    size_t len;
    struct ab_plane plane;
    lua_settop(L, 1);
    const char *text = check_text(L, &len);
    struct ab_json *doc = abl_json_take(L);
    int rc = ab_plane_read(doc, text, len, &plane);
    abl_json_return(L, 2);
    if (rc < 0)
        return 0;
    lua_pushinteger(L, (lua_Integer)plane.count);
    lua_pushnumber(L, plane.min);
    lua_pushnumber(L, plane.max);
    return 3;
}

/* count(json) -> how many numbers | nil: no flat list of numbers */
static int l_count(lua_State *L)
{
    size_t len;
    const char *text = check_text(L, &len);
    long n = ab_plane_count(text, len);
    if (n < 0)
        return 0;
    lua_pushinteger(L, n);
    return 1;
}

/* pack(json) -> bytes, kind, count | nil: it cannot be packed without a loss */
static int l_pack(lua_State *L)
{
    size_t len;
    struct ab_plane plane;
    lua_settop(L, 1);
    const char *text = check_text(L, &len);
    struct ab_buf *out = abl_push_buf(L);
    struct ab_json *doc = abl_json_take(L);
    bool packed =
        ab_plane_read(doc, text, len, &plane) == 0 && plane.kind != AB_PLANE_NONE;
    if (packed)
        ab_plane_pack(doc, &plane, out);
    abl_json_return(L, 3);
    if (!packed)
        return 0;
    lua_pushlstring(L, out->data ? out->data : "", out->len);
    ab_buf_fini(out);
    lua_pushstring(L, ab_plane_name(plane.kind));
    lua_pushinteger(L, (lua_Integer)plane.count);
    return 3;
}

/* unpack(bytes, kind) -> JSON text | nil: no plane of that kind */
static int l_unpack(lua_State *L)
{
    size_t len;
    const char *data = luaL_checklstring(L, 1, &len);
    enum ab_plane_kind kind = ab_plane_named(luaL_checkstring(L, 2));
    lua_settop(L, 2);
    struct ab_buf *out = abl_push_buf(L);
    if (ab_plane_unpack(data, len, kind, out) < 0)
        return 0;
    lua_pushlstring(L, out->data, out->len);
    ab_buf_fini(out);
    return 1;
}

int luaopen_agentbox_sys_plane(lua_State *L)
{
    static const luaL_Reg lib[] = {
        {"measure", l_measure}, {"count", l_count}, {"pack", l_pack},
        {"unpack", l_unpack},   {NULL, NULL},
    };
    abl_json_register(L);
    luaL_newlib(L, lib);
    return 1;
}
