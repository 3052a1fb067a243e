/* rock.c - the engine as a module of stock Lua: require "agentbox.core".
 *
 * It brings its own loop and scheduler into the host's state; memory belongs to the host,
 * so fibers have no ceilings here, and signals are the host's too. Coroutines made before
 * the module was loaded must not call it.
 */
#include "lua/core.h"
#include "lua/fiber.h"
#include "lua/slice.h"
#include "sandbox/zygote.h"

#define ENGINE_TYPE "agentbox.engine"

int luaopen_agentbox_core(lua_State *L);

struct engine {
    struct ab_loop loop;
    struct ab_sched sched;
    bool open;
};

static int l_engine_gc(lua_State *L)
{
    struct engine *e = luaL_checkudata(L, 1, ENGINE_TYPE);
    if (e->open)
        ab_loop_fini(&e->loop);
    e->open = false;
    return 0;
}

/* A call that lasts this long here is the host's own business to end. */
static void on_stuck(void *arg)
{
    (void)arg;
}

static struct ab_watchdog *new_watchdog(struct ab_sched *s, struct ab_err *err)
{
    const struct ab_watchdog_hooks hooks = {
        .slice = ab_slice_on_tick,
        .warn = ab_slice_on_warn,
        .stuck = on_stuck,
        .arg = s,
        .warn_ms = AB_STUCK_WARN_MS,
        .stuck_ms = AB_STUCK_LIMIT_MS,
    };
    return ab_watchdog_new(&hooks, err);
}

/* Stack: the dead fiber. Gives its results, or raises its error. */
static int settle(lua_State *L, struct ab_fiber *f)
{
    f->observed = true;
    if (f->status == AB_FIBER_DONE)
        return abl_push_results(L, lua_gettop(L));
    lua_getiuservalue(L, -1, AB_UV_RESULT);
    return lua_error(L);
}

/* run(fn, ...): runs fn as the main fiber until no fiber is left; gives its results or
 * raises its error. */
static int l_run(lua_State *L)
{
    struct ab_sched *s = ab_sched_of(L);
    struct ab_err err;
    luaL_checktype(L, 1, LUA_TFUNCTION);
    if (s->running)
        luaL_error(L, "agentbox.run is running already");
    struct ab_fiber *f = abl_fiber_new(L, lua_gettop(L) - 1);
    s->root = f;
    s->wd = new_watchdog(s, &err);
    ab_sched_run(s);
    ab_watchdog_free(s->wd);
    s->wd = NULL;
    return settle(L, f);
}

int luaopen_agentbox_core(lua_State *L)
{
    struct ab_err err;
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    lua_State *main = lua_tothread(L, -1);
    struct engine *e = lua_newuserdatauv(L, sizeof *e, 0);
    e->open = false;
    luaL_newmetatable(L, ENGINE_TYPE);
    lua_pushcfunction(L, l_engine_gc);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    lua_setfield(L, LUA_REGISTRYINDEX, ENGINE_TYPE);
    if (ab_zygote_start(&err) < 0 || ab_loop_init(&e->loop, &err) < 0)
        luaL_error(L, "%s", err.msg);
    e->open = true;
    ab_sched_init(&e->sched, main, &e->loop);
    *(struct ab_sched **)lua_getextraspace(L) = &e->sched;
    abl_open_engine(L);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, l_run);
    lua_setfield(L, -2, "run");
    return 1;
}
