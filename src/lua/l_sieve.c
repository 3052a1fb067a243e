/* l_sieve.c - agentbox.sys.sieve: which texts may have come before, in bounded memory. */
#include <lauxlib.h>

#include "base/runs.h"
#include "base/sieve.h"
#include "lua/conv.h"

#define SIEVE_TYPE "agentbox.sieve"

int luaopen_agentbox_sys_sieve(lua_State *L);

/* new(bits): a sieve of 2^bits bits */
static int l_new(lua_State *L)
{
    lua_Integer bits = luaL_checkinteger(L, 1);
    luaL_argcheck(L, bits >= AB_SIEVE_MIN_BITS && bits <= AB_SIEVE_MAX_BITS, 1,
                  "out of range");
    struct ab_sieve *s = lua_newuserdatauv(L, sizeof *s, 0);
    s->words = NULL;
    luaL_setmetatable(L, SIEVE_TYPE);
    ab_sieve_init(s, (unsigned)bits);
    return 1;
}

/* A finalizer may use what was finalized before it. */
static struct ab_sieve *check(lua_State *L)
{
    struct ab_sieve *s = luaL_checkudata(L, 1, SIEVE_TYPE);
    if (!s->words)
        luaL_error(L, "the sieve is closed");
    return s;
}

/* sieve:add(text) -> whether it may have been there */
static int l_add(lua_State *L)
{
    struct ab_sieve *s = check(L);
    size_t len;
    const char *text = luaL_checklstring(L, 2, &len);
    lua_pushboolean(L, ab_sieve_add(s, text, len));
    return 1;
}

/* sieve:has(text): false is certain, true is not */
static int l_has(lua_State *L)
{
    const struct ab_sieve *s = check(L);
    size_t len;
    const char *text = luaL_checklstring(L, 2, &len);
    lua_pushboolean(L, ab_sieve_has(s, text, len));
    return 1;
}

static unsigned check_words(lua_State *L, int idx)
{
    lua_Integer words = luaL_checkinteger(L, idx);
    luaL_argcheck(L, words >= 1 && words <= AB_RUNS_MAX_WORDS, idx, "out of range");
    return (unsigned)words;
}

/* sieve:add_runs(text, words) -> how many runs of so many words were added */
static int l_add_runs(lua_State *L)
{
    struct ab_sieve *s = check(L);
    size_t len;
    const char *text = luaL_checklstring(L, 2, &len);
    lua_pushinteger(L, (lua_Integer)ab_runs_add(s, text, len, check_words(L, 3)));
    return 1;
}

/* sieve:look_runs(text, words) -> runs, those that are there, words of the longest
 * passage, its first and last byte */
static int l_look_runs(lua_State *L)
{
    const struct ab_sieve *s = check(L);
    size_t len;
    const char *text = luaL_checklstring(L, 2, &len);
    struct ab_runs_found found = ab_runs_look(s, text, len, check_words(L, 3));
    lua_pushinteger(L, (lua_Integer)found.all);
    lua_pushinteger(L, (lua_Integer)found.hits);
    lua_pushinteger(L, (lua_Integer)found.words);
    lua_pushinteger(L, (lua_Integer)found.from + 1);
    lua_pushinteger(L, (lua_Integer)found.to);
    return 5;
}

static int l_gc(lua_State *L)
{
    ab_sieve_fini(luaL_checkudata(L, 1, SIEVE_TYPE));
    return 0;
}

int luaopen_agentbox_sys_sieve(lua_State *L)
{
    static const luaL_Reg methods[] = {{"add", l_add},
                                       {"has", l_has},
                                       {"add_runs", l_add_runs},
                                       {"look_runs", l_look_runs},
                                       {NULL, NULL}};
    luaL_newmetatable(L, SIEVE_TYPE);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, l_gc);
    lua_setfield(L, -2, "__gc");
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, l_new);
    lua_setfield(L, -2, "new");
    return 1;
}
