/* wait.c - how a binding waits: an anchor owns the operation, the fiber yields, the
 * continuation pushes the results inside the fiber. */
#include "lua/fiber.h"
#include "lua/slice.h"

#define ANCHOR_TYPE "agentbox.op"

struct ab_loop *abl_loop(lua_State *L)
{
    struct ab_sched *s = ab_sched_of(L);
    if (!s)
        luaL_error(L, "no event loop here; use agentbox.run()");
    return s->loop;
}

static void anchor_release(struct ab_anchor *anchor)
{
    struct ab_op *op = anchor->op;
    anchor->op = NULL;
    if (op) {
        ab_op_cancel(op);
        ab_op_unref(op);
    }
}

static int l_anchor_gc(lua_State *L)
{
    anchor_release(luaL_checkudata(L, 1, ANCHOR_TYPE));
    return 0;
}

void abl_wait_register(lua_State *L)
{
    luaL_newmetatable(L, ANCHOR_TYPE);
    lua_pushcfunction(L, l_anchor_gc);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
}

/* Why L may not wait, or NULL. */
static const char *refusal(lua_State *L)
{
    struct ab_sched *s = ab_sched_of(L);
    if (!s || !s->running)
        return "must be called from a fiber; use agentbox.run()";
    if (s->running->hard)
        return "cannot wait: the grace period after the cancel is over";
    if (s->running->co != L)
        return "cannot wait inside coroutine.wrap; use async.spawn()";
    if (!lua_isyieldable(L))
        return "cannot wait here: not at a module's top level, in table.sort or gsub "
               "callbacks, __tostring or __gc";
    return NULL;
}

bool abl_can_wait(lua_State *L)
{
    return refusal(L) == NULL;
}

void abl_check_wait(lua_State *L)
{
    const char *why = refusal(L);
    if (why)
        luaL_error(L, "%s", why);
}

struct ab_anchor *abl_anchor(lua_State *L)
{
    abl_check_wait(L);
    struct ab_anchor *anchor = lua_newuserdatauv(L, sizeof *anchor, 0);
    *anchor = (struct ab_anchor){0};
    luaL_setmetatable(L, ANCHOR_TYPE);
    return anchor;
}

static int wait_over(lua_State *L, int status, lua_KContext ctx)
{
    struct ab_anchor *anchor = (struct ab_anchor *)ctx;
    struct ab_fiber *f = ab_sched_of(L)->running;
    (void)status;
    f->op = NULL;
    if (f->pending && !f->woken) {
        ab_list_remove(&f->join_link);
        anchor_release(anchor);
        abl_raise_cancel(L, f);
    }
    /* push may raise; then the collector drops the anchor */
    int n = anchor->push(L, anchor->op);
    f->nwake = 0;
    f->woken = false;
    anchor_release(anchor);
    return n;
}

static void on_op_done(struct ab_op *op, void *arg)
{
    if (op->cls->soon)
        ab_fiber_make_ready_soon(arg);
    else
        ab_fiber_make_ready(arg);
}

int abl_wait_as(lua_State *L, struct ab_anchor *anchor, enum ab_fiber_status status,
                int (*push)(lua_State *, struct ab_op *))
{
    struct ab_fiber *f = ab_sched_of(L)->running;
    anchor->push = push;
    if (f->pending || (anchor->op && anchor->op->state != AB_OP_PENDING))
        return wait_over(L, LUA_OK, (lua_KContext)anchor);
    if (anchor->op) {
        anchor->op->on_done = on_op_done;
        anchor->op->arg = f;
        f->op = anchor->op;
    }
    f->status = status;
    return lua_yieldk(L, 0, (lua_KContext)anchor, wait_over);
}

int abl_wait(lua_State *L, struct ab_anchor *anchor,
             int (*push)(lua_State *, struct ab_op *))
{
    return abl_wait_as(L, anchor, AB_FIBER_WAITING, push);
}

static int bare_over(lua_State *L, int status, lua_KContext push)
{
    struct ab_fiber *f = ab_sched_of(L)->running;
    (void)status;
    if (f->pending && !f->woken) {
        ab_list_remove(&f->join_link);
        abl_raise_cancel(L, f);
    }
    int n = ((int (*)(lua_State *, struct ab_op *))push)(L, NULL);
    f->nwake = 0;
    f->woken = false;
    return n;
}

int abl_wait_bare(lua_State *L, enum ab_fiber_status status,
                  int (*push)(lua_State *, struct ab_op *))
{
    abl_check_wait(L);
    struct ab_fiber *f = ab_sched_of(L)->running;
    if (f->pending)
        return bare_over(L, LUA_OK, (lua_KContext)push);
    f->status = status;
    return lua_yieldk(L, 0, (lua_KContext)push, bare_over);
}
