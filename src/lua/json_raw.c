#include "lua/json_raw.h"

#include <lauxlib.h>
#include <string.h>

#include "lua/buffer.h"
#include "lua/json_value.h"

#define RAW_TYPE "agentbox.json.raw"

/* Its address is the key of its metatable. */
static const char raw_key;

/* The user values of a raw value: the string that it is in; of one that is written when
 * somebody asks, the writer and the list of what it is called with. */
enum { RAW_SOURCE = 1, RAW_ARGUMENTS };

struct raw {
    size_t at, len; /* in the string */
    bool later;     /* not written yet */
};

bool abl_json_is_mt(lua_State *L, const void *key)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, key);
    bool same = lua_rawequal(L, -1, -2);
    lua_pop(L, 1);
    return same;
}

bool abl_json_is_raw_mt(lua_State *L)
{
    return abl_json_is_mt(L, &raw_key);
}

static void set_source(lua_State *L, int idx)
{
    lua_setiuservalue(L, idx, RAW_SOURCE);
}

/* Calls the writer of the raw value, with the buffer behind its arguments. */
static void write_later(lua_State *L, int idx, struct ab_buf *out)
{
    lua_getiuservalue(L, idx, RAW_SOURCE);
    lua_getiuservalue(L, idx, RAW_ARGUMENTS);
    int list = lua_gettop(L);
    lua_getfield(L, list, "n");
    int n = (int)lua_tointeger(L, -1);
    lua_pop(L, 1);
    luaL_checkstack(L, n + 4, "a writer's arguments");
    lua_pushvalue(L, list - 1);
    for (int i = 1; i <= n; i++)
        lua_rawgeti(L, list, i);
    lua_pushlightuserdata(L, out);
    lua_call(L, n + 1, 0);
    lua_settop(L, list - 2);
}

/* Gives the raw value the text that its writer makes. */
static void settle(lua_State *L, int idx, struct raw *raw)
{
    idx = lua_absindex(L, idx);
    struct ab_buf *out = abl_take_buf(L);
    int buf = lua_gettop(L);
    write_later(L, idx, out);
    raw->len = out->len;
    lua_pushlstring(L, out->data, out->len);
    set_source(L, idx);
    lua_pushnil(L);
    lua_setiuservalue(L, idx, RAW_ARGUMENTS);
    raw->later = false;
    abl_return_buf(L, buf);
    lua_settop(L, buf - 1);
}

void abl_json_push_later(lua_State *L, int idx)
{
    int n = lua_gettop(L) - idx;
    lua_createtable(L, n, 1);
    lua_insert(L, idx + 1);
    lua_pushinteger(L, n);
    lua_setfield(L, idx + 1, "n");
    for (int i = n; i > 0; i--)
        lua_rawseti(L, idx + 1, i);
    struct raw *raw = lua_newuserdatauv(L, sizeof *raw, RAW_ARGUMENTS);
    *raw = (struct raw){.later = true};
    lua_insert(L, idx);
    lua_setiuservalue(L, idx, RAW_ARGUMENTS);
    set_source(L, idx);
    luaL_setmetatable(L, RAW_TYPE);
}

bool abl_json_write_later(lua_State *L, int idx, struct ab_buf *out)
{
    if (abl_json_type(L, idx) != ABL_JSON_RAW)
        return false;
    const struct raw *raw = lua_touserdata(L, idx);
    if (raw->later)
        write_later(L, lua_absindex(L, idx), out);
    return raw->later;
}

const char *abl_json_raw_text(lua_State *L, int idx, size_t *len)
{
    struct raw *raw = luaL_checkudata(L, idx, RAW_TYPE);
    if (raw->later)
        settle(L, idx, raw);
    lua_getiuservalue(L, idx, RAW_SOURCE);
    const char *s = lua_tostring(L, -1);
    lua_pop(L, 1);
    *len = raw->len;
    return s + raw->at;
}

void abl_json_push_raw(lua_State *L, int src_idx, const char *s, size_t len)
{
    size_t all;
    src_idx = lua_absindex(L, src_idx);
    const char *src = lua_tolstring(L, src_idx, &all);
    struct raw *raw = lua_newuserdatauv(L, sizeof *raw, 1);
    /* A large slice shares its source; a small one must not keep a large source alive. */
    bool share = len > all / 2;
    *raw = (struct raw){.at = share ? (size_t)(s - src) : 0, .len = len};
    if (share)
        lua_pushvalue(L, src_idx);
    else
        lua_pushlstring(L, s, len);
    set_source(L, -2);
    luaL_setmetatable(L, RAW_TYPE);
}

/* The text of a raw value, as it was in its source. */
static int l_raw_text(lua_State *L)
{
    size_t len, all;
    const char *s = abl_json_raw_text(L, 1, &len);
    lua_getiuservalue(L, 1, RAW_SOURCE);
    lua_tolstring(L, -1, &all);
    if (len < all)
        lua_pushlstring(L, s, len);
    return 1;
}

/* Mostly it does not, and that is seen a block at a time: only one that has the first and
 * the last byte in their places is looked into. */
static bool stands_in(const char *s, size_t len, const char *text, size_t wanted)
{
    enum { BLOCK = 64 };
    size_t at = 0;
    for (; wanted > 0 && len - at >= BLOCK + wanted; at += BLOCK) {
        const char *first = s + at, *last = first + wanted - 1;
        unsigned char any = 0;
        for (int i = 0; i < BLOCK; i++)
            any |= (unsigned char)((first[i] == *text) & (last[i] == text[wanted - 1]));
        if (any && memmem(first, BLOCK + wanted - 1, text, wanted))
            return true;
    }
    return memmem(s + at, len - at, text, wanted) != NULL;
}

/* raw:has(text): whether the text stands in it. */
static int l_raw_has(lua_State *L)
{
    size_t len, wanted;
    const char *s = abl_json_raw_text(L, 1, &len);
    const char *text = luaL_checklstring(L, 2, &wanted);
    lua_pushboolean(L, stands_in(s, len, text, wanted));
    return 1;
}

/* raw:decode(): the value, every time a new one. It was valid when it was cut out. */
static int l_raw_decode(lua_State *L)
{
    size_t len;
    struct ab_err err;
    lua_settop(L, 1);
    const char *s = abl_json_raw_text(L, 1, &len);
    lua_getiuservalue(L, 1, RAW_SOURCE);
    struct ab_json *doc = abl_json_take(L);
    if (ab_json_parse(doc, s, len, NULL, &err) < 0)
        AB_BUG("raw text: %s", err.msg);
    abl_json_push(L, 3, 2);
    abl_json_return(L, 3);
    return 1;
}

void abl_json_new_type(lua_State *L, const char *name, const void *key,
                       const luaL_Reg *methods)
{
    luaL_newmetatable(L, name);
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

void abl_json_register_raw(lua_State *L)
{
    static const luaL_Reg raw[] = {{"__tostring", l_raw_text},
                                   {"text", l_raw_text},
                                   {"has", l_raw_has},
                                   {"decode", l_raw_decode},
                                   {NULL, NULL}};
    abl_json_new_type(L, RAW_TYPE, &raw_key, raw);
}
