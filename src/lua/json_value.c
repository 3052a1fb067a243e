/* json_value.c - null, arrays and big numbers as Lua values, and the parser's owner. */
#include "lua/json_value.h"

#include <lauxlib.h>
#include <string.h>

#include "lua/json_raw.h"

#define NUMBER_TYPE "agentbox.json.number"
#define PARSER_TYPE "agentbox.json.parser"

/* A parser that grew beyond this is released after use. */
#define PARSER_KEEP_BYTES (2u << 20)

/* Their addresses are keys of the registry: a metatable is found there faster than by its
 * name. */
static const char array_key, null_key, parser_key, number_key;

struct number {
    size_t len;
    char text[];
};

static enum abl_json_type userdata_type(lua_State *L, int idx)
{
    const void *address = lua_touserdata(L, idx);
    if (!address)
        return ABL_JSON_NULL;
    if (!lua_getmetatable(L, idx))
        return ABL_JSON_OTHER;
    enum abl_json_type type = ABL_JSON_OTHER;
    if (abl_json_is_raw_mt(L))
        type = ABL_JSON_RAW;
    else if (abl_json_is_mt(L, &number_key))
        type = ABL_JSON_NUMBER;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &null_key);
    if (lua_touserdata(L, -1) == address)
        type = ABL_JSON_NULL;
    lua_pop(L, 2);
    return type;
}

enum abl_json_type abl_json_type(lua_State *L, int idx)
{
    if (lua_isuserdata(L, idx))
        return userdata_type(L, idx);
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
    if (abl_json_type(L, idx) == ABL_JSON_NUMBER) {
        const struct number *number = lua_touserdata(L, idx);
        *len = number->len;
        return number->text;
    }
    return abl_json_raw_text(L, idx, len);
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

void abl_json_register(lua_State *L)
{
    static const luaL_Reg number[] = {
        {"__tostring", l_number_tostring}, {"__eq", l_number_eq}, {NULL, NULL}};
    static const luaL_Reg null[] = {{"__tostring", l_null_tostring}, {NULL, NULL}};
    static const luaL_Reg parser[] = {{"__gc", l_parser_gc}, {NULL, NULL}};
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &null_key) != LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
    lua_pop(L, 1);
    abl_json_new_type(L, NUMBER_TYPE, &number_key, number);
    abl_json_register_raw(L);
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
