/* l_minhash.c - agentbox.sys.minhash: texts that are nearly the same, and an index of
 * them. */
#include <lauxlib.h>
#include <string.h>

#include "base/minhash.h"
#include "lua/conv.h"

#define MINHASH_TYPE "agentbox.minhash"

enum { MAX_NEAR = 16 };

int luaopen_agentbox_sys_minhash(lua_State *L);

/* jaccard(a, b): how alike two texts are, 0..1 */
static int l_jaccard(lua_State *L)
{
    size_t a_len, b_len;
    const char *a = luaL_checklstring(L, 1, &a_len), *b = luaL_checklstring(L, 2, &b_len);
    lua_pushnumber(L, ab_jaccard(a, a_len, b, b_len));
    return 1;
}

/* sketch(text): bytes that near() and add() take */
static int l_sketch(lua_State *L)
{
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    struct ab_sketch s;
    ab_sketch_of(&s, text, len);
    lua_pushlstring(L, (const char *)&s, sizeof s);
    return 1;
}

static void check_sketch(lua_State *L, int idx, struct ab_sketch *out)
{
    size_t len;
    const char *bytes = luaL_checklstring(L, idx, &len);
    luaL_argcheck(L, len == sizeof *out, idx, "not a sketch");
    memcpy(out, bytes, sizeof *out);
}

/* new(rows): an index whose bands have so many rows */
static int l_new(lua_State *L)
{
    lua_Integer rows = luaL_checkinteger(L, 1);
    luaL_argcheck(L, rows == 1 || rows == 2 || rows == 4 || rows == 8 || rows == 16, 1,
                  "must be 1, 2, 4, 8 or 16");
    struct ab_minhash *m = lua_newuserdatauv(L, sizeof *m, 0);
    *m = (struct ab_minhash){0};
    luaL_setmetatable(L, MINHASH_TYPE);
    ab_minhash_init(m, (unsigned)rows);
    return 1;
}

/* A finalizer may use what was finalized before it. */
static struct ab_minhash *check(lua_State *L)
{
    struct ab_minhash *m = luaL_checkudata(L, 1, MINHASH_TYPE);
    if (!m->heads)
        luaL_error(L, "the index is closed");
    return m;
}

/* index:add(sketch) -> its number, from 1 */
static int l_add(lua_State *L)
{
    struct ab_minhash *m = check(L);
    struct ab_sketch s;
    check_sketch(L, 2, &s);
    lua_pushinteger(L, (lua_Integer)ab_minhash_add(m, &s) + 1);
    return 1;
}

/* index:near(sketch, least) -> { { number, likeness } }, the nearest first */
static int l_near(lua_State *L)
{
    struct ab_minhash *m = check(L);
    struct ab_sketch s;
    check_sketch(L, 2, &s);
    struct ab_near near[MAX_NEAR];
    size_t n = ab_minhash_near(m, &s, luaL_checknumber(L, 3), near, MAX_NEAR);
    lua_createtable(L, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        lua_createtable(L, 2, 0);
        lua_pushinteger(L, (lua_Integer)near[i].number + 1);
        lua_rawseti(L, -2, 1);
        lua_pushnumber(L, near[i].likeness);
        lua_rawseti(L, -2, 2);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static int l_gc(lua_State *L)
{
    ab_minhash_fini(luaL_checkudata(L, 1, MINHASH_TYPE));
    return 0;
}

int luaopen_agentbox_sys_minhash(lua_State *L)
{
    static const luaL_Reg methods[] = {{"add", l_add}, {"near", l_near}, {NULL, NULL}};
    static const luaL_Reg functions[] = {
        {"jaccard", l_jaccard}, {"sketch", l_sketch}, {"new", l_new}, {NULL, NULL}};
    luaL_newmetatable(L, MINHASH_TYPE);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, l_gc);
    lua_setfield(L, -2, "__gc");
    luaL_newlib(L, functions);
    return 1;
}
