#include "lua/collect.h"

#include <string.h>

void ab_collect_defer(struct ab_sched *s)
{
    if (!s->deferring)
        lua_gc(s->main, LUA_GCSTEP, -AB_COLLECT_DEFER_KB);
    s->deferring = true;
}

/* Finalizers are to find the engine as it is between two turns. The watchdog names the
 * one that does not end. */
static int collect(struct ab_sched *s, int what, int kb)
{
    struct ab_fiber *running = s->running;
    lua_State *active = s->active;
    if (s->heap)
        s->heap->charged = &s->heap->engine;
    s->running = NULL;
    s->active = s->main;
    int result = lua_gc(s->main, what, kb);
    s->active = active;
    lua_sethook(s->main, NULL, 0, 0);
    s->running = running;
    if (s->heap && running) /* its account may be another one by now */
        s->heap->charged = running->account;
    return result;
}

/* A collection visits all that is alive, so its cost is shared by what was allocated
 * since the last one: the more, the cheaper. A command with nothing but the library in
 * its heap may leave some megabytes; but a heap of thousands of rollouts that wait may
 * not double before it is looked at again, as Lua would have it. */
static int slack_percent(size_t bytes)
{
    enum { TINY_BYTES = 4 << 20, SMALL_BYTES = 8 << 20, LARGE_BYTES = 128 << 20 };
    if (bytes <= TINY_BYTES)
        return 300;
    return bytes <= SMALL_BYTES ? 100 : bytes <= LARGE_BYTES ? 40 : 20;
}

static void set_pause(struct ab_sched *s)
{
    int percent = slack_percent(s->heap ? s->heap->bytes : 0);
    if (s->slack_percent == percent)
        return;
    s->slack_percent = percent;
    lua_gc(s->main, LUA_GCINC, 100 + percent, 0, 0);
}

/* Gives the debt back; if it is one by now, it is paid. While a script has stopped the
 * collector it stays deferred. */
void ab_collect_due(struct ab_sched *s)
{
    if (!s->deferring || !lua_gc(s->main, LUA_GCISRUNNING))
        return;
    s->deferring = false;
    bool collected = s->heap && s->heap->refused; /* which has forgotten every debt */
    if (collected)
        s->heap->refused = false;
    set_pause(s);
    collect(s, LUA_GCSTEP, collected ? 0 : AB_COLLECT_DEFER_KB);
}

static int collect_now(lua_State *L, struct ab_sched *s, int what)
{
    int kb = what == LUA_GCSTEP ? (int)luaL_optinteger(L, 2, 0) : 0;
    int result = collect(s, what, kb);
    if (result < 0) /* in a finalizer */
        luaL_pushfail(L);
    else if (what == LUA_GCSTEP)
        lua_pushboolean(L, result);
    else
        lua_pushinteger(L, result);
    return 1;
}

/* Upvalue: Lua's own collectgarbage. */
static int call_original(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

static int l_collectgarbage(lua_State *L)
{
    struct ab_sched *s = ab_sched_of(L);
    const char *what = luaL_optstring(L, 1, "collect");
    if (!s || strcmp(what, "count") == 0)
        return call_original(L);
    bool was = s->deferring;
    int n;
    ab_collect_due(s); /* none of these is to see a debt that is not real */
    if (strcmp(what, "collect") == 0) {
        n = collect_now(L, s, LUA_GCCOLLECT);
    } else if (strcmp(what, "step") == 0) {
        n = collect_now(L, s, LUA_GCSTEP);
    } else {
        n = call_original(L);
        if (strcmp(what, "restart") == 0)
            s->deferring = false; /* it forgets every debt */
    }
    if (was)
        ab_collect_defer(s);
    return n;
}

void abl_collect_install(lua_State *L)
{
    lua_getglobal(L, "collectgarbage");
    lua_pushcclosure(L, l_collectgarbage, 1);
    lua_setglobal(L, "collectgarbage");
}
