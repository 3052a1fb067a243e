#include "lua/fiber.h"

#include <stdlib.h>

#define ANCHOR_TYPE "agentbox.op"

struct ab_fiber {
    struct ab_sched *sched; /* borrowed */
    lua_State *co;          /* anchored in the registry under `ref` */
    int ref;
    struct ab_op *op;    /* borrowed from the anchor on co's stack, while waiting */
    struct ab_list link; /* in sched->ready, or alone */
    bool cancelled;      /* raise at the next resume */
    bool dead;
};

static struct ab_sched *sched_of(lua_State *L)
{
    return *(struct ab_sched **)lua_getextraspace(L);
}

void ab_sched_init(struct ab_sched *s, lua_State *main, struct ab_loop *loop)
{
    *s = (struct ab_sched){.loop = loop, .main = main};
    ab_list_init(&s->ready);
    *(struct ab_sched **)lua_getextraspace(main) = s;
}

static void make_ready(struct ab_fiber *t)
{
    if (!t->dead && ab_list_empty(&t->link))
        ab_list_append(&t->sched->ready, &t->link);
}

static void on_op_done(struct ab_op *op, void *arg)
{
    struct ab_fiber *t = arg;
    (void)op;
    make_ready(t);
}

/* Every fiber body runs under a protected call inside the coroutine: on an error the stack
 * is unwound there, where <close> handlers may still wait. Closing a failed coroutine
 * from outside would run them where a yield is an error. */
static int finish_call(lua_State *L, int status, lua_KContext ctx)
{
    (void)ctx;
    if (status != LUA_OK && status != LUA_YIELD)
        sched_of(L)->failed++;
    return 0;
}

static int fiber_main(lua_State *L)
{
    return finish_call(L, lua_pcallk(L, 0, 0, 0, 0, finish_call), 0);
}

static int new_protected(lua_State *L)
{
    struct ab_fiber *t = lua_touserdata(L, 1);
    lua_State *co = lua_newthread(L);
    lua_pushcfunction(co, fiber_main);
    lua_pushvalue(L, 2);
    lua_xmove(L, co, 1);
    t->ref = luaL_ref(L, LUA_REGISTRYINDEX);
    t->co = co;
    return 0;
}

struct ab_fiber *abl_fiber_new(lua_State *L, int idx)
{
    struct ab_sched *s = sched_of(L);
    idx = lua_absindex(L, idx);
    lua_pushcfunction(L, new_protected);
    struct ab_fiber *t = ab_xcalloc(1, sizeof *t);
    t->sched = s;
    ab_list_init(&t->link);
    lua_pushlightuserdata(L, t);
    lua_pushvalue(L, idx);
    if (lua_pcall(L, 2, 0, 0) != LUA_OK) {
        free(t);
        lua_error(L);
    }
    s->live++;
    make_ready(t);
    return t;
}

void ab_fiber_free(struct ab_fiber *t)
{
    if (t && !t->dead)
        AB_BUG("fiber freed while alive");
    free(t);
}

static int unref_protected(lua_State *L)
{
    struct ab_fiber *t = lua_touserdata(L, 1);
    luaL_unref(L, LUA_REGISTRYINDEX, t->ref);
    return 0;
}

static void retire(struct ab_fiber *t)
{
    struct ab_sched *s = t->sched;
    t->dead = true;
    s->live--;
    lua_resetthread(t->co);
    lua_pushcfunction(s->main, unref_protected);
    lua_pushlightuserdata(s->main, t);
    if (lua_pcall(s->main, 1, 0, 0) != LUA_OK)
        lua_pop(s->main, 1); /* the coroutine stays anchored until lua_close */
}

static void resume(struct ab_fiber *t)
{
    struct ab_sched *s = t->sched;
    int nres = 0;
    int nargs = lua_status(t->co) == LUA_YIELD ? 0 : lua_gettop(t->co) - 1;
    ab_list_remove(&t->link);
    s->running = t;
    int rc = lua_resume(t->co, s->main, nargs, &nres);
    s->running = NULL;
    if (rc == LUA_YIELD)
        return;
    if (rc != LUA_OK)
        s->failed++;
    retire(t);
}

void ab_sched_run(struct ab_sched *s)
{
    bool alive;
    do {
        while (!ab_list_empty(&s->ready))
            resume(AB_CONTAINER(s->ready.next, struct ab_fiber, link));
        alive = uv_run(&s->loop->uv, UV_RUN_ONCE) != 0;
    } while (alive || !ab_list_empty(&s->ready));
}

void ab_fiber_cancel(struct ab_fiber *t)
{
    if (t->dead)
        return;
    t->cancelled = true;
    if (t->op)
        ab_op_cancel(t->op);
    make_ready(t);
}

struct ab_loop *abl_loop(lua_State *L)
{
    return sched_of(L)->loop;
}

static void anchor_release(struct ab_anchor *anchor)
{
    struct ab_op *op = anchor->op;
    if (!op)
        return;
    anchor->op = NULL;
    ab_op_cancel(op);
    ab_op_unref(op);
}

static int l_anchor_gc(lua_State *L)
{
    anchor_release(luaL_checkudata(L, 1, ANCHOR_TYPE));
    return 0;
}

void abl_register(lua_State *L)
{
    luaL_newmetatable(L, ANCHOR_TYPE);
    lua_pushcfunction(L, l_anchor_gc);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
}

struct ab_anchor *abl_anchor(lua_State *L)
{
    struct ab_fiber *t = sched_of(L)->running;
    if (!t)
        luaL_error(L, "must be called from a fiber; use agentbox.run()");
    if (t->co != L)
        luaL_error(L, "cannot wait inside coroutine.wrap; use async.spawn()");
    struct ab_anchor *anchor = lua_newuserdatauv(L, sizeof *anchor, 0);
    *anchor = (struct ab_anchor){0};
    luaL_setmetatable(L, ANCHOR_TYPE);
    return anchor;
}

static int wait_over(lua_State *L, int status, lua_KContext ctx)
{
    struct ab_anchor *anchor = (struct ab_anchor *)ctx;
    struct ab_fiber *t = sched_of(L)->running;
    (void)status;
    t->op = NULL;
    if (t->cancelled) {
        t->cancelled = false;
        anchor_release(anchor);
        luaL_error(L, "cancelled");
    }
    int n =
        anchor->push(L, anchor->op); /* may raise; then the collector drops the anchor */
    anchor_release(anchor);
    return n;
}

int abl_wait(lua_State *L, struct ab_anchor *anchor,
             int (*push)(lua_State *, struct ab_op *))
{
    struct ab_fiber *t = sched_of(L)->running;
    anchor->push = push;
    anchor->op->on_done = on_op_done;
    anchor->op->arg = t;
    t->op = anchor->op;
    return lua_yieldk(L, 0, (lua_KContext)anchor, wait_over);
}
