/* bound.c - functions of the standard library that one call could keep busy without end.
 *
 * table.move goes on element by element and is sliced as Lua code is, and insert and
 * remove go through it; a long sort can be given up; string.rep of nothing is done at
 * once. What allocates is bounded by memory, what calls back by the callee. A finalizer
 * runs where no hook does, so setmetatable takes none.
 */
#include <lauxlib.h>
#include <limits.h>
#include <string.h>

#include "lua/slice.h"

enum { MOVES_A_LOOK = 10000, LONG_SORT = 100000 };

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

/* Moves the elements first..last of the table at 1 to `to`, and goes on in then. */
static int shift(lua_State *L, lua_Integer first, lua_Integer last, lua_Integer to,
                 lua_KFunction then)
{
    lua_pushcfunction(L, l_move);
    lua_pushvalue(L, 1);
    lua_pushinteger(L, first);
    lua_pushinteger(L, last);
    lua_pushinteger(L, to);
    lua_callk(L, 4, 0, 0, then);
    return then(L, LUA_OK, 0);
}

static lua_Integer length_of(lua_State *L)
{
    check_like_table(L, 1, "__index");
    check_like_table(L, 1, "__newindex");
    check_like_table(L, 1, "__len");
    return luaL_len(L, 1);
}

/* On the stack: the table, where, the value. */
static int insert_here(lua_State *L, int status, lua_KContext ctx)
{
    (void)status;
    (void)ctx;
    lua_settop(L, 3);
    lua_seti(L, 1, lua_tointeger(L, 2));
    return 0;
}

/* insert(list, [at,] value) */
static int l_insert(lua_State *L)
{
    lua_Integer end = (lua_Integer)((lua_Unsigned)length_of(L) + 1u);
    if (lua_gettop(L) == 2) {
        lua_seti(L, 1, end);
        return 0;
    }
    if (lua_gettop(L) != 3)
        return luaL_error(L, "wrong number of arguments to 'insert'");
    lua_Integer at = luaL_checkinteger(L, 2);
    luaL_argcheck(L, (lua_Unsigned)at - 1u < (lua_Unsigned)end, 2,
                  "position out of bounds");
    if (at == end)
        return insert_here(L, LUA_OK, 0);
    return shift(L, at, end - 1, at + 1, insert_here);
}

/* On the stack: the table, its last place, the value that was taken. */
static int remove_last(lua_State *L, int status, lua_KContext ctx)
{
    (void)status;
    (void)ctx;
    lua_settop(L, 3);
    lua_pushnil(L);
    lua_seti(L, 1, lua_tointeger(L, 2));
    return 1;
}

/* remove(list [, at]): the value that was there */
static int l_remove(lua_State *L)
{
    lua_Integer size = length_of(L), at = luaL_optinteger(L, 2, size);
    if (at != size)
        luaL_argcheck(L, (lua_Unsigned)size + 1u - (lua_Unsigned)at <= (lua_Unsigned)size,
                      2, "position out of bounds");
    lua_settop(L, 1);
    lua_pushinteger(L, size > at ? size : at);
    lua_geti(L, 1, at);
    if (at >= size)
        return remove_last(L, LUA_OK, 0);
    return shift(L, at + 1, size, at, remove_last);
}

/* Of two elements; counts in its upvalue. */
static int l_less(lua_State *L)
{
    lua_Integer done = lua_tointeger(L, lua_upvalueindex(1)) + 1;
    lua_pushinteger(L, done % MOVES_A_LOOK);
    lua_replace(L, lua_upvalueindex(1));
    if (done == MOVES_A_LOOK)
        abl_slice_due(L);
    lua_pushboolean(L, lua_compare(L, 1, 2, LUA_OPLT));
    return 1;
}

/* sort(list [, less]): Lua's own. A comparator of Lua's can be stopped; where there is
 * none a long list gets one that can be. */
static int l_sort(lua_State *L)
{
    lua_settop(L, 2);
    if (lua_isnil(L, 2) && luaL_len(L, 1) > LONG_SORT) {
        lua_pushinteger(L, 0);
        lua_pushcclosure(L, l_less, 1);
        lua_replace(L, 2);
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, 2, 0);
    return 0;
}

/* Hooks are off while a finalizer runs: one that loops could not be stopped. */
static void refuse_finalizer(lua_State *L)
{
    if (lua_type(L, 2) != LUA_TTABLE)
        return;
    lua_pushliteral(L, "__gc");
    if (lua_rawget(L, 2) != LUA_TNIL)
        luaL_error(L,
                   "finalizers (__gc) are not available: let a <close> variable do it");
    lua_pop(L, 1);
}

/* setmetatable(table, metatable or nil) */
static int l_setmetatable(lua_State *L)
{
    int type = lua_type(L, 2);
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_argexpected(L, type == LUA_TNIL || type == LUA_TTABLE, 2, "nil or table");
    if (luaL_getmetafield(L, 1, "__metatable") != LUA_TNIL)
        return luaL_error(L, "cannot change a protected metatable");
    refuse_finalizer(L);
    lua_settop(L, 2);
    lua_setmetatable(L, 1);
    return 1;
}

/* debug.setmetatable(value, metatable or nil) */
static int l_debug_setmetatable(lua_State *L)
{
    int type = lua_type(L, 2);
    luaL_argexpected(L, type == LUA_TNIL || type == LUA_TTABLE, 2, "nil or table");
    refuse_finalizer(L);
    lua_settop(L, 2);
    lua_setmetatable(L, 1);
    return 1;
}

void abl_bound_install(lua_State *L)
{
    static const luaL_Reg of_table[] = {
        {"move", l_move}, {"insert", l_insert}, {"remove", l_remove}, {NULL, NULL}};
    lua_getglobal(L, "string");
    lua_pushcfunction(L, l_rep);
    lua_setfield(L, -2, "rep");
    lua_getglobal(L, "table");
    luaL_setfuncs(L, of_table, 0);
    lua_getfield(L, -1, "sort");
    lua_pushcclosure(L, l_sort, 1);
    lua_setfield(L, -2, "sort");
    lua_getglobal(L, "debug");
    lua_pushcfunction(L, l_debug_setmetatable);
    lua_setfield(L, -2, "setmetatable");
    lua_pop(L, 3);
    lua_register(L, "setmetatable", l_setmetatable);
}
