/* json_value.c - null, arrays, big numbers and raw text as Lua values, and the parser's
 * owner. */
#include "lua/json_value.h"

#include <lauxlib.h>
#include <string.h>

#define NUMBER_TYPE "agentbox.json.number"
#define RAW_TYPE    "agentbox.json.raw"
#define PARSER_TYPE "agentbox.json.parser"

/* A parser that grew beyond this is released after use. */
#define PARSER_KEEP_BYTES (2u << 20)

/* Their addresses are keys of the registry. */
static const char array_key, null_key, parser_key;

struct raw {
    size_t at, len; /* in the string that is the user value */
};

struct number {
    size_t len;
    char text[];
};

enum abl_json_type abl_json_type(lua_State *L, int idx)
{
    if (lua_isuserdata(L, idx)) {
        if (luaL_testudata(L, idx, NUMBER_TYPE))
            return ABL_JSON_NUMBER;
        if (luaL_testudata(L, idx, RAW_TYPE))
            return ABL_JSON_RAW;
        lua_rawgetp(L, LUA_REGISTRYINDEX, &null_key);
        bool null =
            lua_rawequal(L, idx < 0 ? idx - 1 : idx, -1) || !lua_touserdata(L, idx);
        lua_pop(L, 1);
        return null ? ABL_JSON_NULL : ABL_JSON_OTHER;
    }
    if (!lua_istable(L, idx) || !lua_getmetatable(L, idx))
        return ABL_JSON_OTHER;
    if (abl_json_is_object_mt(L, -1))
        return ABL_JSON_OBJECT;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &array_key);
    bool array = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return array ? ABL_JSON_ARRAY : ABL_JSON_OTHER;
}

const char *abl_json_value_text(lua_State *L, int idx, size_t *len)
{
    const struct number *number = luaL_testudata(L, idx, NUMBER_TYPE);
    if (number) {
        *len = number->len;
        return number->text;
    }
    const struct raw *raw = luaL_checkudata(L, idx, RAW_TYPE);
    lua_getiuservalue(L, idx, 1);
    const char *s = lua_tostring(L, -1);
    lua_pop(L, 1);
    *len = raw->len;
    return s + raw->at;
}

void abl_json_push_null(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &null_key);
}

void abl_json_mark_array(lua_State *L, int idx)
{
    idx = lua_absindex(L, idx);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &array_key);
    lua_setmetatable(L, idx);
}

void abl_json_push_number(lua_State *L, const char *s, size_t len)
{
    struct number *number = lua_newuserdatauv(L, sizeof *number + len, 0);
    number->len = len;
    memcpy(number->text, s, len);
    luaL_setmetatable(L, NUMBER_TYPE);
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
    lua_setiuservalue(L, -2, 1);
    luaL_setmetatable(L, RAW_TYPE);
}

static int l_null_tostring(lua_State *L)
{
    lua_pushliteral(L, "null");
    return 1;
}

static int l_number_tostring(lua_State *L)
{
    const struct number *number = luaL_checkudata(L, 1, NUMBER_TYPE);
    lua_pushlstring(L, number->text, number->len);
    return 1;
}

static int l_number_eq(lua_State *L)
{
    const struct number *a = luaL_testudata(L, 1, NUMBER_TYPE);
    const struct number *b = luaL_testudata(L, 2, NUMBER_TYPE);
    lua_pushboolean(L, a && b && a->len == b->len && !memcmp(a->text, b->text, a->len));
    return 1;
}

/* The text of a raw value, as it was in its source. */
static int l_raw_text(lua_State *L)
{
    size_t len, all;
    luaL_checkudata(L, 1, RAW_TYPE);
    const char *s = abl_json_value_text(L, 1, &len);
    lua_getiuservalue(L, 1, 1);
    lua_tolstring(L, -1, &all);
    if (len < all)
        lua_pushlstring(L, s, len);
    return 1;
}

/* raw:decode(): the value, every time a new one. It was valid when it was cut out. */
static int l_raw_decode(lua_State *L)
{
    size_t len;
    struct ab_err err;
    luaL_checkudata(L, 1, RAW_TYPE);
    lua_settop(L, 1);
    const char *s = abl_json_value_text(L, 1, &len);
    lua_getiuservalue(L, 1, 1);
    struct ab_json *doc = abl_json_take(L);
    if (ab_json_parse(doc, s, len, NULL, &err) < 0)
        AB_BUG("raw text: %s", err.msg);
    abl_json_push(L, 3, 2);
    abl_json_return(L, 3);
    return 1;
}

static int l_parser_gc(lua_State *L)
{
    ab_json_fini(luaL_checkudata(L, 1, PARSER_TYPE));
    return 0;
}

/* Taking empties the cache: an error while values are being built loses the parser and
 * does not leave it in use. */
struct ab_json *abl_json_take(lua_State *L)
{
    struct ab_json *doc;
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &parser_key) == LUA_TUSERDATA) {
        lua_pushnil(L);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &parser_key);
        return lua_touserdata(L, -1);
    }
    lua_pop(L, 1);
    doc = lua_newuserdatauv(L, sizeof *doc, 0);
    ab_json_init(doc);
    luaL_setmetatable(L, PARSER_TYPE);
    return doc;
}

void abl_json_return(lua_State *L, int idx)
{
    struct ab_json *doc = lua_touserdata(L, idx);
    if (ab_json_footprint(doc) > PARSER_KEEP_BYTES) {
        ab_json_fini(doc);
        ab_json_init(doc);
    }
    lua_pushvalue(L, idx);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &parser_key);
}

static void new_type(lua_State *L, const char *name, const luaL_Reg *methods)
{
    luaL_newmetatable(L, name);
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

void abl_json_register(lua_State *L)
{
    static const luaL_Reg number[] = {
        {"__tostring", l_number_tostring}, {"__eq", l_number_eq}, {NULL, NULL}};
    static const luaL_Reg raw[] = {{"__tostring", l_raw_text},
                                   {"text", l_raw_text},
                                   {"decode", l_raw_decode},
                                   {NULL, NULL}};
    static const luaL_Reg null[] = {{"__tostring", l_null_tostring}, {NULL, NULL}};
    static const luaL_Reg parser[] = {{"__gc", l_parser_gc}, {NULL, NULL}};
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &null_key) != LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
    lua_pop(L, 1);
    new_type(L, NUMBER_TYPE, number);
    new_type(L, RAW_TYPE, raw);
    luaL_newmetatable(L, PARSER_TYPE);
    luaL_setfuncs(L, parser, 0);
    luaL_newmetatable(L, "agentbox.json.array");
    lua_rawsetp(L, LUA_REGISTRYINDEX, &array_key);
    abl_json_register_object(L);
    abl_json_register_push(L);
    lua_newuserdatauv(L, 0, 0);
    luaL_newmetatable(L, "agentbox.json.null");
    luaL_setfuncs(L, null, 0);
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &null_key);
    lua_pop(L, 1);
}
