/* l_hash.c - agentbox.sys.hash */
#include <string.h>

#include "lua/conv.h"
#include "lua/json_sheet.h"
#include "rt/digest.h"

#define HASHER_TYPE "agentbox.hasher"

int luaopen_agentbox_sys_hash(lua_State *L);

struct hasher {
    struct ab_hasher *h; /* owns, or NULL */
};

/* sha256(bytes [, n]): 64 digits, of the first n bytes. Raises when libcrypto is missing:
 * nothing can go on without it. */
static int l_sha256(lua_State *L)
{
    size_t len;
    const char *data = luaL_checklstring(L, 1, &len);
    lua_Integer n = luaL_optinteger(L, 2, (lua_Integer)len);
    luaL_argcheck(L, n >= 0 && (size_t)n <= len, 2, "more bytes than there are");
    char hex[AB_SHA256_HEX];
    struct ab_err err;
    if (ab_sha256(data, (size_t)n, hex, &err) < 0)
        luaL_error(L, "%s", err.msg);
    lua_pushstring(L, hex);
    return 1;
}

/* seal(text, before, behind): the text with a text in place of its last byte, the digits
 * of the bytes up to there, and another text. A record is as long as all that a rollout
 * said, so it is copied once. */
static int l_seal(lua_State *L)
{
    size_t len, before_len, behind_len;
    const char *text = luaL_checklstring(L, 1, &len);
    const char *before = luaL_checklstring(L, 2, &before_len);
    const char *behind = luaL_checklstring(L, 3, &behind_len);
    luaL_argcheck(L, len > 0, 1, "is empty");
    char hex[AB_SHA256_HEX];
    struct ab_err err;
    if (ab_sha256(text, len - 1, hex, &err) < 0)
        luaL_error(L, "%s", err.msg);
    luaL_Buffer b;
    luaL_buffinitsize(L, &b, len + before_len + sizeof hex + behind_len);
    luaL_addlstring(&b, text, len - 1);
    luaL_addlstring(&b, before, before_len);
    luaL_addstring(&b, hex);
    luaL_addlstring(&b, behind, behind_len);
    luaL_pushresult(&b);
    return 1;
}

/* As JSON text: "sha256:", the digits. */
static bool is_named(struct ab_json_slice text, struct ab_json_slice name, lua_State *L)
{
    static const char before[] = "\"sha256:";
    enum { BEFORE = sizeof before - 1, DIGITS = AB_SHA256_HEX - 1 };
    char hex[AB_SHA256_HEX];
    struct ab_err err;
    if (!text.s || name.len != BEFORE + DIGITS + 1 || memcmp(name.s, before, BEFORE) != 0)
        return false;
    if (ab_sha256(text.s, text.len, hex, &err) < 0)
        luaL_error(L, "%s", err.msg);
    return memcmp(name.s + BEFORE, hex, DIGITS) == 0;
}

/* named(texts, names, wanted): whether the text in a place is the one that its name says,
 * for the places that `wanted` has: { [place] = true }. Texts and names are json.cells.
 */
static int l_named(lua_State *L)
{
    lua_settop(L, 3);
    const struct abl_json_cells *texts = abl_json_open_cells(L, 1);
    const struct abl_json_cells *names = abl_json_open_cells(L, 2);
    luaL_argcheck(L, texts, 1, "cells expected");
    luaL_argcheck(L, names, 2, "cells expected");
    luaL_checktype(L, 3, LUA_TTABLE);
    lua_settop(L, 3);
    lua_createtable(L, (int)texts->n, 0);
    for (lua_Integer i = 1; i <= texts->n; i++) {
        lua_rawgeti(L, 3, i);
        bool wanted = lua_toboolean(L, -1);
        lua_pop(L, 1);
        if (!wanted || !is_named(abl_json_cell(texts, i), abl_json_cell(names, i), L))
            continue;
        lua_pushboolean(L, 1);
        lua_rawseti(L, 4, i);
    }
    return 1;
}

static int l_hasher(lua_State *L)
{
    struct hasher *self = lua_newuserdatauv(L, sizeof *self, 0);
    struct ab_err err;
    self->h = NULL;
    luaL_setmetatable(L, HASHER_TYPE);
    self->h = ab_hasher_new(&err);
    if (!self->h)
        luaL_error(L, "%s", err.msg);
    return 1;
}

/* A finalizer may use what was finalized before it. */
static struct ab_hasher *check(lua_State *L)
{
    struct hasher *self = luaL_checkudata(L, 1, HASHER_TYPE);
    if (!self->h)
        luaL_error(L, "the hasher is closed");
    return self->h;
}

/* update(bytes, ...) */
static int l_update(lua_State *L)
{
    struct ab_hasher *h = check(L);
    for (int i = 2, n = lua_gettop(L); i <= n; i++) {
        size_t len;
        const char *data = luaL_checklstring(L, i, &len);
        ab_hasher_update(h, data, len);
    }
    lua_settop(L, 1);
    return 1;
}

/* hex([more]): of what was fed so far, and of `more` behind it. */
static int l_hex(lua_State *L)
{
    struct ab_hasher *h = check(L);
    size_t len;
    const char *more = luaL_optlstring(L, 2, "", &len);
    char hex[AB_SHA256_HEX];
    ab_hasher_hex(h, more, len, hex);
    lua_pushstring(L, hex);
    return 1;
}

static int l_gc(lua_State *L)
{
    struct hasher *self = luaL_checkudata(L, 1, HASHER_TYPE);
    ab_hasher_free(self->h);
    self->h = NULL;
    return 0;
}

int luaopen_agentbox_sys_hash(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"update", l_update}, {"hex", l_hex}, {NULL, NULL}};
    static const luaL_Reg lib[] = {{"sha256", l_sha256},
                                   {"seal", l_seal},
                                   {"named", l_named},
                                   {"hasher", l_hasher},
                                   {NULL, NULL}};
    luaL_newmetatable(L, HASHER_TYPE);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, l_gc);
    lua_setfield(L, -2, "__gc");
    luaL_newlib(L, lib);
    return 1;
}
