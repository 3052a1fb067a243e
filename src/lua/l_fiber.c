/* l_fiber.c - agentbox.sys.fiber */
#include <math.h>

#include "lua/conv.h"
#include "lua/fiber.h"
#include "lua/l_time.h"
#include "rt/timer.h"

int luaopen_agentbox_sys_fiber(lua_State *L);

/* Longer than any rollout, short enough that milliseconds fit. */
#define MAX_SECONDS 1e9

static struct ab_fiber *running(lua_State *L)
{
    struct ab_sched *s = ab_sched_of(L);
    if (!s || !s->running)
        luaL_error(L, "must be called from a fiber; use agentbox.run()");
    return s->running;
}

static int l_spawn(lua_State *L)
{
    if (!ab_sched_of(L))
        luaL_error(L, "no event loop here; use agentbox.run()");
    abl_fiber_new(L, lua_gettop(L) - 1);
    return 1;
}

static int l_current(lua_State *L)
{
    struct ab_sched *s = ab_sched_of(L);
    if (!s || !s->running)
        return 0;
    abl_push_fiber(L, s->running);
    return 1;
}

/* ---- waiting ---- */

static int push_nothing(lua_State *L, struct ab_op *op)
{
    (void)L;
    (void)op;
    return 0;
}

static int l_sleep(lua_State *L)
{
    uint64_t ms = abl_check_ms(L, 1);
    struct ab_anchor *anchor = abl_anchor(L);
    anchor->op = ab_timer_start(abl_loop(L), ms);
    return abl_wait(L, anchor, push_nothing);
}

static int push_woken(lua_State *L, struct ab_op *op)
{
    (void)op;
    return running(L)->nwake;
}

static int l_park(lua_State *L)
{
    if (lua_isnoneornil(L, 1))
        return abl_wait_bare(L, AB_FIBER_PARKED, push_woken);
    uint64_t ms = abl_check_ms(L, 1);
    struct ab_anchor *anchor = abl_anchor(L);
    anchor->op = ab_timer_start(abl_loop(L), ms);
    return abl_wait_as(L, anchor, AB_FIBER_PARKED, push_woken);
}

/* wake(fiber, ...): true when the values will be what its park returns. */
static int l_wake(lua_State *L)
{
    struct ab_fiber *f = abl_check_fiber(L, 1);
    int n = lua_gettop(L) - 1;
    bool parked = f->status == AB_FIBER_PARKED;
    if (parked) {
        if (!lua_checkstack(f->co, n + 1))
            luaL_error(L, "too many values");
        lua_xmove(L, f->co, n);
        f->nwake = n;
        f->woken = true;
        ab_fiber_make_ready_soon(f);
    }
    lua_pushboolean(L, parked);
    return 1;
}

static bool is_dead(const struct ab_fiber *f)
{
    return f->status == AB_FIBER_DONE || f->status == AB_FIBER_FAILED;
}

/* Pushes true and the results, or false and the error, of the dead fiber at idx 1. */
static int push_result(lua_State *L, struct ab_fiber *f)
{
    f->observed = true;
    lua_pushboolean(L, f->status == AB_FIBER_DONE);
    if (f->status == AB_FIBER_DONE)
        return 1 + abl_push_results(L, 1);
    if (lua_getiuservalue(L, 1, AB_UV_RESULT) != LUA_TNIL)
        return 2;
    struct ab_err nomem;
    ab_err_set(&nomem, AB_ENOMEM, "not enough memory");
    lua_pop(L, 1);
    abl_push_errvalue(L, f->cancel_err ? f->cancel_err : &nomem, NULL);
    return 2;
}

static int push_joined(lua_State *L, struct ab_op *op)
{
    struct ab_fiber *f = abl_check_fiber(L, 1);
    (void)op;
    ab_list_remove(&running(L)->join_link);
    return is_dead(f) ? push_result(L, f) : 0;
}

/* fiber:join([timeout_s]): true, results... | false, err | nothing after the timeout. */
static int l_join(lua_State *L)
{
    struct ab_fiber *f = abl_check_fiber(L, 1);
    bool timed = !lua_isnoneornil(L, 2);
    uint64_t ms = timed ? abl_check_ms(L, 2) : 0;
    lua_settop(L, 1);
    if (is_dead(f))
        return push_result(L, f);
    abl_check_wait(L);
    if (f == running(L))
        luaL_error(L, "a fiber cannot join itself");
    struct ab_anchor *anchor = timed ? abl_anchor(L) : NULL;
    if (timed)
        anchor->op = ab_timer_start(abl_loop(L), ms);
    ab_list_append(&f->joiners, &running(L)->join_link);
    if (!timed)
        return abl_wait_bare(L, AB_FIBER_WAITING, push_joined);
    return abl_wait(L, anchor, push_joined);
}

/* fiber:begin(): its first turn now, inside of the caller's, if there is time for it;
 * whether it has ended in that. */
static int l_begin(lua_State *L)
{
    struct ab_fiber *f = abl_check_fiber(L, 1);
    ab_fiber_run_inside(L, f);
    lua_pushboolean(L, is_dead(f));
    return 1;
}

/* Lets the other fibers and the loop have a turn. */
static int l_yield(lua_State *L)
{
    return abl_wait_bare(L, AB_FIBER_READY, push_nothing);
}

/* ---- control ---- */

static int l_cancel(lua_State *L)
{
    struct ab_fiber *f = abl_check_fiber(L, 1);
    struct ab_err err;
    bool fresh = !is_dead(f) && !f->cancelling;
    ab_err_set(&err, AB_ECANCELLED, "cancelled");
    if (fresh && !lua_isnoneornil(L, 2)) {
        luaL_argcheck(L, abl_is_err(L, 2), 2, "error value expected");
        lua_newtable(
            L); /* a copy: the caller's value must not start to behave as a cancel */
        lua_pushnil(L);
        while (lua_next(L, 2)) {
            lua_pushvalue(L, -2);
            lua_insert(L, -2);
            lua_rawset(L, -4);
        }
        lua_pushboolean(L, 1);
        lua_setfield(L, -2, "cancel");
        lua_getmetatable(L, 2);
        lua_setmetatable(L, -2);
        lua_setiuservalue(L, 1, AB_UV_CANCEL);
    }
    ab_fiber_cancel(f, &err);
    lua_pushboolean(L, fresh);
    return 1;
}

static int l_status(lua_State *L)
{
    static const char *const names[] = {
        [AB_FIBER_READY] = "ready",     [AB_FIBER_RUNNING] = "running",
        [AB_FIBER_WAITING] = "waiting", [AB_FIBER_PARKED] = "waiting",
        [AB_FIBER_DONE] = "done",       [AB_FIBER_FAILED] = "failed",
    };
    lua_pushstring(L, names[abl_check_fiber(L, 1)->status]);
    return 1;
}

static int l_cancelled(lua_State *L)
{
    lua_pushboolean(L, abl_check_fiber(L, 1)->cancelling);
    return 1;
}

/* expired(): was it cancelled by its own deadline? */
static int l_expired(lua_State *L)
{
    struct ab_fiber *f = abl_check_fiber(L, 1);
    lua_pushboolean(L, f->cancel_err && f->cancel_err->code == AB_ETIMEOUT);
    return 1;
}

/* set_deadline(monotonic_s | nil) */
static int l_set_deadline(lua_State *L)
{
    struct ab_fiber *f = abl_check_fiber(L, 1);
    if (lua_isnoneornil(L, 2)) {
        ab_fiber_clear_deadline(f);
        return 0;
    }
    lua_Number left = luaL_checknumber(L, 2) - abl_monotonic();
    left = left > 0 ? left : 0;
    ab_fiber_set_deadline(
        f, (uint64_t)ceil((left < MAX_SECONDS ? left : MAX_SECONDS) * 1000));
    return 0;
}

/* limit([memory_bytes], [cpu_s]) */
static int l_limit(lua_State *L)
{
    struct ab_fiber *f = abl_check_fiber(L, 1);
    lua_Integer bytes = luaL_optinteger(L, 2, 0);
    lua_Number cpu_s = luaL_optnumber(L, 3, 0);
    luaL_argcheck(L, bytes >= 0 && cpu_s >= 0 && cpu_s <= MAX_SECONDS, 2,
                  "a limit must not be negative");
    ab_fiber_limit(f, (size_t)bytes, (uint64_t)(cpu_s * 1e9));
    return 0;
}

/* The table is the fiber's own; what it does not hold is looked up in the parent's. */
static int l_locals(lua_State *L)
{
    struct ab_fiber *f = abl_check_fiber(L, 1);
    lua_getiuservalue(L, 1, AB_UV_LOCALS);
    if (f->own_locals)
        return 1;
    lua_newtable(L);
    if (!lua_isnil(L, -2)) {
        lua_createtable(L, 0, 1);
        lua_pushvalue(L, -3);
        lua_setfield(L, -2, "__index");
        lua_setmetatable(L, -2);
    }
    lua_pushvalue(L, -1);
    lua_setiuservalue(L, 1, AB_UV_LOCALS);
    f->own_locals = true;
    return 1;
}

static int l_memory(lua_State *L)
{
    struct ab_fiber *f = abl_check_fiber(L, 1);
    lua_pushinteger(L, f->account ? (lua_Integer)f->account->bytes : 0);
    return 1;
}

static int l_stats(lua_State *L)
{
    struct ab_sched *s = ab_sched_of(L);
    lua_createtable(L, 0, 3);
    lua_pushinteger(L, s ? s->live : 0);
    lua_setfield(L, -2, "fibers");
    lua_pushinteger(L, s ? ab_loop_count(s->loop) : 0);
    lua_setfield(L, -2, "ops");
    lua_Integer heap = s && s->heap ? (lua_Integer)s->heap->bytes
                                    : (lua_Integer)lua_gc(L, LUA_GCCOUNT) * 1024 +
                                          lua_gc(L, LUA_GCCOUNTB);
    lua_pushinteger(L, heap);
    lua_setfield(L, -2, "heap_bytes");
    return 1;
}

/* heap_limit(bytes): the ceiling of the whole heap; 0 for none. */
static int l_heap_limit(lua_State *L)
{
    lua_Integer bytes = luaL_checkinteger(L, 1);
    struct ab_sched *s = ab_sched_of(L);
    luaL_argcheck(L, bytes >= 0, 1, "must not be negative");
    if (s && s->heap)
        s->heap->limit_bytes = (size_t)bytes;
    return 0;
}

int luaopen_agentbox_sys_fiber(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"cancel", l_cancel}, {"join", l_join},       {"begin", l_begin},
        {"status", l_status}, {"wake", l_wake},       {"set_deadline", l_set_deadline},
        {"locals", l_locals}, {"limit", l_limit},     {"cancelled", l_cancelled},
        {"memory", l_memory}, {"expired", l_expired}, {NULL, NULL},
    };
    static const luaL_Reg lib[] = {
        {"spawn", l_spawn},           {"current", l_current}, {"park", l_park},
        {"sleep", l_sleep},           {"yield", l_yield},     {"stats", l_stats},
        {"heap_limit", l_heap_limit}, {NULL, NULL},
    };
    luaL_getmetatable(L, "agentbox.fiber");
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    luaL_newlib(L, lib);
    return 1;
}
