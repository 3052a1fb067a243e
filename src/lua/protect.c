/* protect.c - pcall and xpcall that let a cancel through.
 *
 * A cancel must reach the fiber's base: `while true do pcall(f) end` would swallow it
 * otherwise.
 *
 * In stock Lua the C stack bounds how deep protected calls nest. A slice empties it, so
 * here they are counted: an error on its way out visits the whole stack once for each.
 */
#include "lua/conv.h"
#include "lua/slice.h"

enum { MAX_NESTED = 195 };

/* What a continuation has to know. */
struct protected
{
    int extra; /* values below the results */
    int outer; /* protected calls around this one */
};

static lua_KContext pack(struct protected p)
{
    return (lua_KContext)p.outer << 8 | p.extra;
}

static struct protected unpack(lua_KContext ctx)
{
    return (struct protected){.extra = ctx & 0xff, .outer = (int)(ctx >> 8)};
}

static struct ab_fiber *fiber_of(lua_State *L)
{
    struct ab_sched *s = ab_sched_of(L);
    return s ? s->running : NULL;
}

static lua_KContext enter(lua_State *L, int extra)
{
    struct ab_fiber *f = fiber_of(L);
    struct protected p = {.extra = extra, .outer = f ? f->nested : 0};
    if (p.outer >= MAX_NESTED)
        luaL_error(L, "C stack overflow");
    if (f)
        f->nested++;
    return pack(p);
}

static int finish(lua_State *L, int status, lua_KContext ctx)
{
    struct ab_fiber *f = fiber_of(L);
    struct protected p = unpack(ctx);
    if (f)
        f->nested = p.outer;
    if (status == LUA_OK || status == LUA_YIELD)
        return lua_gettop(L) - p.extra;
    if (abl_is_cancel(L, -1))
        lua_error(L);
    lua_pushboolean(L, 0);
    lua_pushvalue(L, -2);
    return 2;
}

static int l_pcall(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_pushboolean(L, 1);
    lua_insert(L, 1);
    lua_KContext ctx = enter(L, 0);
    int rc = lua_pcallk(L, lua_gettop(L) - 2, LUA_MULTRET, 0, ctx, finish);
    return finish(L, rc, ctx);
}

/* The handler of a script never sees a cancel, so it cannot turn it into something else.
 */
static int l_handler(lua_State *L)
{
    if (abl_is_cancel(L, 1))
        return 1;
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
    return 1;
}

static int l_xpcall(lua_State *L)
{
    int n = lua_gettop(L);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_pushvalue(L, 2);
    lua_pushcclosure(L, l_handler, 1);
    lua_replace(L, 2);
    lua_pushboolean(L, 1);
    lua_pushvalue(L, 1);
    lua_rotate(L, 3, 2);
    lua_KContext ctx = enter(L, 2);
    int rc = lua_pcallk(L, n - 2, LUA_MULTRET, 2, ctx, finish);
    return finish(L, rc, ctx);
}

void abl_protect_install(lua_State *L)
{
    lua_pushcfunction(L, l_pcall);
    lua_setglobal(L, "pcall");
    lua_pushcfunction(L, l_xpcall);
    lua_setglobal(L, "xpcall");
}
