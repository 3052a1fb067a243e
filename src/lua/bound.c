/* bound.c - functions of the standard library that one call could keep busy without end.
 *
 * table.move goes on element by element and is sliced as Lua code is; string.rep of
 * nothing is done at once. What allocates is bounded by memory, what calls back by the
 * callee.
 */
#include <lauxlib.h>
#include <limits.h>
#include <string.h>

#include "lua/slice.h"

enum { MOVES_A_LOOK = 10000 };

/* rep(s, n [, sep]) */
static int l_rep(lua_State *L)
{
    size_t len, sep_len;
    const char *s = luaL_checklstring(L, 1, &len);
    lua_Integer n = luaL_checkinteger(L, 2);
    const char *sep = luaL_optlstring(L, 3, "", &sep_len);
    if (n <= 0 || (len == 0 && sep_len == 0)) {
        lua_pushliteral(L, "");
        return 1;
    }
    if (len + sep_len > (size_t)INT_MAX / (size_t)n)
        return luaL_error(L, "resulting string too large");
    luaL_Buffer b;
    size_t count = (size_t)n, total = count * len + (count - 1) * sep_len;
    char *at = luaL_buffinitsize(L, &b, total);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && sep_len > 0) {
            memcpy(at, sep, sep_len);
            at += sep_len;
        }
        memcpy(at, s, len);
        at += len;
    }
    luaL_pushresultsize(&b, total);
    return 1;
}

/* A table, or something that acts as one. */
static void check_like_table(lua_State *L, int arg, const char *event)
{
    if (lua_istable(L, arg))
        return;
    if (luaL_getmetafield(L, arg, event) == LUA_TNIL)
        luaL_checktype(L, arg, LUA_TTABLE);
    else
        lua_pop(L, 1);
}

static int move_more(lua_State *L, int status, lua_KContext done);

/* On the stack: source, first, last, where to, destination. The first `done` are moved.
 */
static int move_from(lua_State *L, lua_Integer done)
{
    lua_Integer first = lua_tointeger(L, 2), last = lua_tointeger(L, 3);
    lua_Integer to = lua_tointeger(L, 4), count = last - first + 1;
    bool forwards =
        to > last || to <= first || !lua_compare(L, 1, 5, LUA_OPEQ); /* do not overlap */
    for (lua_Integer i = done; i < count; i++) {
        if (i % MOVES_A_LOOK == MOVES_A_LOOK - 1 && abl_slice_due(L))
            return abl_slice_leave(L, (lua_KContext)i, move_more);
        lua_Integer at = forwards ? i : count - 1 - i;
        lua_geti(L, 1, first + at);
        lua_seti(L, 5, to + at);
    }
    lua_settop(L, 5);
    return 1;
}

static int move_more(lua_State *L, int status, lua_KContext done)
{
    (void)status;
    return move_from(L, (lua_Integer)done);
}

/* move(source, first, last, to [, destination]) */
static int l_move(lua_State *L)
{
    lua_Integer first = luaL_checkinteger(L, 2), last = luaL_checkinteger(L, 3);
    lua_Integer to = luaL_checkinteger(L, 4);
    bool other = !lua_isnoneornil(L, 5);
    lua_settop(L, 5);
    check_like_table(L, 1, "__index");
    check_like_table(L, other ? 5 : 1, "__newindex");
    if (!other) {
        lua_pushvalue(L, 1);
        lua_replace(L, 5);
    }
    if (last < first)
        return 1;
    luaL_argcheck(L, first > 0 || last < LUA_MAXINTEGER + first, 3,
                  "too many elements to move");
    luaL_argcheck(L, to <= LUA_MAXINTEGER - (last - first), 4, "destination wrap around");
    return move_from(L, 0);
}

void abl_bound_install(lua_State *L)
{
    lua_getglobal(L, "string");
    lua_pushcfunction(L, l_rep);
    lua_setfield(L, -2, "rep");
    lua_getglobal(L, "table");
    lua_pushcfunction(L, l_move);
    lua_setfield(L, -2, "move");
    lua_pop(L, 2);
}
