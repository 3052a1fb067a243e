#include "lua/conv.h"

#include <string.h>

#define ERR_TYPE "agentbox.err"

/* Frames that are looked at for the line to blame. */
enum { MAX_LEVELS = 32 };

static int l_tostring(lua_State *L)
{
    if (lua_getfield(L, 1, "msg") != LUA_TSTRING)
        lua_pushliteral(L, "unknown error");
    return 1;
}

void abl_conv_register(lua_State *L)
{
    if (luaL_newmetatable(L, ERR_TYPE)) {
        lua_pushcfunction(L, l_tostring);
        lua_setfield(L, -2, "__tostring");
    }
    lua_pop(L, 1);
}

static void push_where(lua_State *L)
{
    lua_Debug ar;
    for (int level = 0; level < MAX_LEVELS && lua_getstack(L, level, &ar); level++) {
        lua_getinfo(L, "Sl", &ar);
        if (ar.currentline <= 0 || strncmp(ar.source, "@agentbox/", 10) == 0)
            continue;
        lua_pushfstring(L, "%s:%d", ar.short_src, ar.currentline);
        return;
    }
    lua_pushnil(L);
}

void abl_push_errvalue(lua_State *L, const struct ab_err *err, const char *op)
{
    luaL_checkstack(L, 8, NULL);
    lua_createtable(L, 0, 6);
    lua_pushstring(L, ab_err_name(err->code));
    lua_setfield(L, -2, "code");
    lua_pushstring(L, err->msg);
    lua_setfield(L, -2, "msg");
    if (op) {
        lua_pushstring(L, op);
        lua_setfield(L, -2, "op");
    }
    if (err->sys) {
        lua_pushinteger(L, err->sys);
        lua_setfield(L, -2, "sys");
    }
    push_where(L);
    lua_setfield(L, -2, "where");
    luaL_setmetatable(L, ERR_TYPE);
}

int abl_push_err(lua_State *L, const struct ab_err *err, const char *op)
{
    lua_pushnil(L);
    abl_push_errvalue(L, err, op);
    return 2;
}

void abl_push_defect(lua_State *L, int idx)
{
    idx = lua_absindex(L, idx);
    lua_createtable(L, 0, 3);
    lua_pushliteral(L, "defect");
    lua_setfield(L, -2, "code");
    lua_pushvalue(L, idx);
    lua_setfield(L, -2, "msg");
    luaL_setmetatable(L, ERR_TYPE);
}

bool abl_is_err(lua_State *L, int idx)
{
    if (!lua_istable(L, idx) || !lua_checkstack(L, 3) || !lua_getmetatable(L, idx))
        return false;
    luaL_getmetatable(L, ERR_TYPE);
    bool is_err = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return is_err;
}

bool abl_is_cancel(lua_State *L, int idx)
{
    if (!abl_is_err(L, idx))
        return false;
    idx = lua_absindex(L, idx);
    lua_pushliteral(L, "cancel");
    lua_rawget(L, idx);
    bool cancel = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return cancel;
}

/* Pushes the member; false (and nothing pushed) when it is absent. */
static bool get_option(lua_State *L, int idx, const char *key)
{
    if (lua_isnoneornil(L, idx))
        return false;
    luaL_checktype(L, idx, LUA_TTABLE);
    if (lua_getfield(L, idx, key) != LUA_TNIL)
        return true;
    lua_pop(L, 1);
    return false;
}

AB_NORETURN static void bad_option(lua_State *L, const char *key, const char *expected)
{
    luaL_error(L, "option '%s': %s expected, got %s", key, expected,
               luaL_typename(L, -1));
}

lua_Integer abl_opt_integer(lua_State *L, int idx, const char *key, lua_Integer def)
{
    if (!get_option(L, idx, key))
        return def;
    int ok = 0;
    if (lua_type(L, -1) == LUA_TNUMBER)
        def = lua_tointegerx(L, -1, &ok);
    if (!ok)
        bad_option(L, key, "integer");
    lua_pop(L, 1);
    return def;
}

lua_Number abl_opt_number(lua_State *L, int idx, const char *key, lua_Number def)
{
    if (!get_option(L, idx, key))
        return def;
    if (lua_type(L, -1) != LUA_TNUMBER)
        bad_option(L, key, "number");
    def = lua_tonumber(L, -1);
    lua_pop(L, 1);
    return def;
}

const char *abl_opt_string(lua_State *L, int idx, const char *key, const char *def)
{
    if (!get_option(L, idx, key))
        return def;
    if (lua_type(L, -1) != LUA_TSTRING)
        bad_option(L, key, "string");
    def = lua_tostring(L, -1);
    lua_pop(L, 1);
    return def;
}

bool abl_opt_boolean(lua_State *L, int idx, const char *key, bool def)
{
    if (!get_option(L, idx, key))
        return def;
    if (lua_type(L, -1) != LUA_TBOOLEAN)
        bad_option(L, key, "boolean");
    def = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return def;
}

void abl_check_keys(lua_State *L, int idx, const char *const allowed[])
{
    if (lua_isnoneornil(L, idx))
        return;
    luaL_checktype(L, idx, LUA_TTABLE);
    idx = lua_absindex(L, idx);
    lua_pushnil(L);
    while (lua_next(L, idx)) {
        lua_pop(L, 1);
        const char *key = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
        const char *const *a = allowed;
        while (key && *a && strcmp(*a, key) != 0)
            a++;
        if (!key || !*a)
            luaL_error(L, "unknown option '%s'", luaL_tolstring(L, -1, NULL));
    }
}

const char *abl_tolog(lua_State *L, int idx)
{
    luaL_tolstring(L, idx, NULL);
    lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    if (lua_getfield(L, -1, "agentbox.secret") == LUA_TTABLE) {
        lua_getfield(L, -1, "redact");
        lua_pushvalue(L, -4);
        if (lua_pcall(L, 1, 1, 0) == LUA_OK && lua_type(L, -1) == LUA_TSTRING)
            lua_replace(L, -4);
        else
            lua_pop(L, 1);
    }
    lua_pop(L, 2);
    return lua_tostring(L, -1);
}

const char *abl_check_path(lua_State *L, int arg)
{
    size_t len;
    struct ab_err err;
    const char *path = luaL_checklstring(L, arg, &len);
    if (len > 0 && strlen(path) == len)
        return path;
    ab_err_set(&err, AB_EBADARG, len > 0 ? "a path with a zero byte" : "an empty path");
    abl_push_err(L, &err, NULL);
    lua_error(L);
    return NULL;
}

int luaopen_agentbox_sys_err(lua_State *L);

/* agentbox.sys.err: the metatable of error values, and the codes that C knows. */
int luaopen_agentbox_sys_err(lua_State *L)
{
    lua_createtable(L, 0, 2);
    luaL_getmetatable(L, ERR_TYPE);
    lua_setfield(L, -2, "metatable");
    lua_createtable(L, AB_ERRCODE_COUNT, 0);
    for (int code = AB_OK + 1; code < AB_ERRCODE_COUNT; code++) {
        lua_pushstring(L, ab_err_name((enum ab_errcode)code));
        lua_rawseti(L, -2, code);
    }
    lua_setfield(L, -2, "codes");
    return 1;
}
