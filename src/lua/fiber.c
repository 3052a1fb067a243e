#include "lua/fiber.h"

#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "lua/collect.h"
#include "lua/conv.h"
#include "lua/slice.h"
#include "lua/traceback.h"
#include "rt/timer.h"

#define FIBER_TYPE "agentbox.fiber"

enum {
    GRACE_MS = 5000,
    POOL_SIZE = 32,
    INNER_MAX = 8,   /* turns inside of turns: each takes a piece of the C stack */
    INNER_US = 1000, /* a turn that has lasted so long begins no other inside of it */
    SOON_MAX = 32,   /* turns in a row of those who go first */
    DRAIN_US = 2000, /* turns that last so long together are followed by a look at I/O */
};

/* Its address is the registry key of the table fiber -> userdata, which anchors the
 * living. */
static const char fibers_key = 0;

/* The same for the list of coroutines whose fibers have ended: a new one costs more than
 * the rest. */
static const char pool_key = 0;

/* Beside each lua_State lies a word: the scheduler; for a fiber's coroutine the fiber,
 * tagged; and for the coroutine of a fiber that has ended the scheduler, tagged: scripts
 * may not resume those either. */
enum { TAG_FIBER = 1, TAG_ENDED = 2 };

static uintptr_t *owner_of(lua_State *L)
{
    return (uintptr_t *)lua_getextraspace(L);
}

bool abl_is_fiber_co(lua_State *co)
{
    return *owner_of(co) & (TAG_FIBER | TAG_ENDED);
}

struct ab_sched *ab_sched_of(lua_State *L)
{
    uintptr_t owner = *owner_of(L);
    if (owner & TAG_FIBER)
        return ((struct ab_fiber *)(owner - TAG_FIBER))->sched;
    return (struct ab_sched *)(owner & ~(uintptr_t)TAG_ENDED);
}

void ab_sched_init(struct ab_sched *s, lua_State *main, struct ab_loop *loop)
{
    *s = (struct ab_sched){.loop = loop, .main = main, .grace_ms = GRACE_MS};
    ab_list_init(&s->soon);
    ab_list_init(&s->pass);
    ab_list_init(&s->ready);
    ab_list_init(&s->alive);
    *owner_of(main) = (uintptr_t)s;
}

/* ---- life ---- */

static bool is_dead(const struct ab_fiber *f)
{
    return f->status == AB_FIBER_DONE || f->status == AB_FIBER_FAILED;
}

static void make_ready(struct ab_fiber *f, struct ab_list *queue)
{
    if (is_dead(f) || f->status == AB_FIBER_RUNNING)
        return;
    f->status = AB_FIBER_READY;
    if (ab_list_empty(&f->link))
        ab_list_append(queue, &f->link);
    /* libuv runs timers before it polls: one that readied a fiber must not be followed by
     * a poll that blocks. */
    if (f->sched->polling)
        uv_stop(&f->sched->loop->uv);
}

void ab_fiber_make_ready(struct ab_fiber *f)
{
    make_ready(f, &f->sched->ready);
}

void ab_fiber_make_ready_soon(struct ab_fiber *f)
{
    make_ready(f, &f->sched->soon);
}

static void drop_op(struct ab_op **slot)
{
    struct ab_op *op = *slot;
    *slot = NULL;
    if (op) {
        ab_op_cancel(op);
        ab_op_unref(op);
    }
}

void abl_push_fiber(lua_State *L, struct ab_fiber *f)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &fibers_key);
    lua_rawgeti(L, -1, f->ref);
    lua_remove(L, -2);
}

/* Adds the traceback while the stack that failed is still there. */
static int l_explain(lua_State *L)
{
    if (abl_is_cancel(L, 1))
        return 1;
    if (lua_type(L, 1) == LUA_TSTRING)
        abl_push_defect(L, 1);
    else if (!abl_is_err(L, 1))
        return 1;
    if (lua_getfield(L, -1, "traceback") == LUA_TNIL) {
        abl_traceback(L, L, NULL, 1);
        lua_setfield(L, -3, "traceback");
    }
    lua_pop(L, 1);
    return 1;
}

/* The error as others see it: `cancel` means "let me through" only in the fiber it hit.
 */
static void push_settled(lua_State *L, int idx)
{
    if (!abl_is_cancel(L, idx)) {
        lua_pushvalue(L, idx);
        return;
    }
    lua_newtable(L);
    lua_pushnil(L);
    while (lua_next(L, idx)) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, -4);
    }
    lua_pushnil(L);
    lua_setfield(L, -2, "cancel");
    lua_getmetatable(L, idx);
    lua_setmetatable(L, -2);
}

/* Stack: explain, then the results. Leaves one value. */
static void pack_results(lua_State *L, struct ab_fiber *f)
{
    int n = lua_gettop(L) - 1;
    f->nresults = n;
    if (n == 0)
        lua_pushnil(L);
    if (n < 2)
        return;
    lua_createtable(L, n, 0);
    lua_insert(L, 2);
    for (int i = n; i > 0; i--)
        lua_rawseti(L, 2, i);
}

int abl_push_results(lua_State *L, int idx)
{
    int n = abl_check_fiber(L, idx)->nresults;
    luaL_checkstack(L, n + 1, "too many results");
    lua_getiuservalue(L, idx, AB_UV_RESULT);
    if (n < 2) {
        lua_pop(L, 1 - n);
        return n;
    }
    int list = lua_gettop(L);
    for (int i = 1; i <= n; i++)
        lua_rawgeti(L, list, i);
    lua_remove(L, list);
    return n;
}

/* Stack: explain, then the results or the error. Keeps them as the fiber's result. */
static int finish_call(lua_State *L, int status, lua_KContext ctx)
{
    struct ab_fiber *f = (struct ab_fiber *)ctx;
    bool ok = status == LUA_OK || status == LUA_YIELD;
    if (status == LUA_ERRMEM) {
        struct ab_err err;
        ab_err_set(&err, AB_ENOMEM, "not enough memory (the fiber's ceiling is %zu MB)",
                   f->account->limit_bytes >> 20);
        abl_push_errvalue(L, &err, NULL);
    } else if (ok) {
        pack_results(L, f);
    } else {
        push_settled(L, lua_gettop(L));
    }
    abl_push_fiber(L, f);
    lua_insert(L, -2);
    lua_setiuservalue(L, -2, AB_UV_RESULT);
    f->status = ok ? AB_FIBER_DONE : AB_FIBER_FAILED;
    return 0;
}

static int fiber_main(lua_State *L)
{
    struct ab_fiber *f = ab_sched_of(L)->running;
    lua_pushcfunction(L, l_explain);
    lua_insert(L, 1);
    int rc = LUA_OK;
    if (f->pending) { /* cancelled before the first step: the body never runs */
        lua_settop(L, 1);
        lua_pushcfunction(L, abl_l_raise_cancel);
        rc = lua_pcallk(L, 0, 0, 0, (lua_KContext)f, finish_call);
    } else {
        rc = lua_pcallk(L, lua_gettop(L) - 2, LUA_MULTRET, 1, (lua_KContext)f,
                        finish_call);
    }
    return finish_call(L, rc, (lua_KContext)f);
}

static void choose_account(struct ab_fiber *f)
{
    struct ab_fiber *parent = f->sched->running;
    if (parent && parent->account->shared) {
        f->account = parent->account;
        ab_account_ref(f->account);
    } else {
        f->account = ab_account_new(f->sched->heap);
    }
}

/* Pushes a coroutine with an empty stack. */
static lua_State *take_coroutine(lua_State *L, struct ab_sched *s)
{
    if (s->pooled == 0)
        return lua_newthread(L);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &pool_key);
    lua_rawgeti(L, -1, s->pooled);
    lua_pushboolean(L, 0);
    lua_rawseti(L, -3, s->pooled--);
    lua_remove(L, -2);
    return lua_tothread(L, -1);
}

/* From the fiber on top of the stack. Its slot in the list exists: this cannot raise. */
static void keep_coroutine(lua_State *L, struct ab_sched *s)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &pool_key);
    lua_getiuservalue(L, -2, AB_UV_CO);
    lua_rawseti(L, -2, ++s->pooled);
    lua_pop(L, 1);
}

struct ab_fiber *abl_fiber_new(lua_State *L, int nargs)
{
    struct ab_sched *s = ab_sched_of(L);
    luaL_checkstack(L, 6, NULL);
    int fn = lua_absindex(L, -nargs - 1);
    luaL_checktype(L, fn, LUA_TFUNCTION);
    struct ab_fiber *f = lua_newuserdatauv(L, sizeof *f, AB_UV_COUNT);
    *f = (struct ab_fiber){.status = AB_FIBER_DONE}; /* until it is complete */
    ab_list_init(&f->link);
    ab_list_init(&f->all);
    ab_list_init(&f->joiners);
    ab_list_init(&f->join_link);
    luaL_setmetatable(L, FIBER_TYPE);
    lua_insert(L, fn);
    lua_State *co = take_coroutine(L, s);
    lua_setiuservalue(L, fn, AB_UV_CO);
    if (!lua_checkstack(co, nargs + 2))
        luaL_error(L, "too many arguments");
    lua_pushcfunction(co, fiber_main);
    lua_xmove(L, co, nargs + 1);
    if (s->running) {
        abl_push_fiber(L, s->running);
        lua_getiuservalue(L, -1, AB_UV_LOCALS);
        lua_setiuservalue(L, fn, AB_UV_LOCALS);
        lua_pop(L, 1);
    }
    lua_rawgetp(L, LUA_REGISTRYINDEX, &fibers_key);
    lua_pushvalue(L, fn);
    f->ref = luaL_ref(L, -2);
    lua_pop(L, 1);

    f->sched = s; /* from here on nothing raises */
    f->co = co;
    *owner_of(co) = (uintptr_t)f | TAG_FIBER;
    choose_account(f);
    ab_list_append(&s->alive, &f->all);
    s->live++;
    f->status = AB_FIBER_WAITING;
    ab_fiber_make_ready(f);
    return f;
}

struct ab_fiber *abl_check_fiber(lua_State *L, int arg)
{
    return luaL_checkudata(L, arg, FIBER_TYPE);
}

static void release(struct ab_fiber *f)
{
    if (f->co)
        *owner_of(f->co) = (uintptr_t)f->sched | TAG_ENDED;
    f->co = NULL;
    drop_op(&f->deadline);
    drop_op(&f->grace);
    ab_list_remove(&f->link);
    ab_list_remove(&f->all);
    ab_list_remove(&f->join_link);
    if (f->account)
        ab_account_unref(f->account);
    f->account = NULL;
}

/* A failure that nobody asked about must not vanish. */
static int l_fiber_gc(lua_State *L)
{
    struct ab_fiber *f = luaL_checkudata(L, 1, FIBER_TYPE);
    release(f);
    free(f->cancel_err);
    f->cancel_err = NULL;
    if (f->status == AB_FIBER_FAILED && !f->observed && !f->cancelling) {
        f->observed = true;
        lua_getiuservalue(L, 1, AB_UV_RESULT);
        ab_log(AB_LOG_ERROR, "a fiber failed and nobody asked for its result: %s",
               abl_tolog(L, -1));
    }
    return 0;
}

static void cancel_others(struct ab_sched *s, const char *why)
{
    struct ab_err err;
    ab_err_set(&err, AB_ECANCELLED, "%s", why);
    for (struct ab_list *it = s->alive.next; it != &s->alive; it = it->next)
        ab_fiber_cancel(AB_CONTAINER(it, struct ab_fiber, all), &err);
}

/* The result of a dead fiber stays in its handle; the registry lets go. clean: its
 * coroutine ended by itself and has an empty stack. Nothing here allocates. */
static void retire(struct ab_fiber *f, bool clean)
{
    struct ab_sched *s = f->sched;
    s->live--;
    if (f->status == AB_FIBER_FAILED)
        s->failed++;
    while (!ab_list_empty(&f->joiners)) {
        struct ab_fiber *waiter =
            AB_CONTAINER(f->joiners.next, struct ab_fiber, join_link);
        ab_list_remove(&waiter->join_link);
        ab_fiber_make_ready_soon(waiter);
    }
    release(f);
    lua_rawgetp(s->main, LUA_REGISTRYINDEX, &fibers_key);
    lua_rawgeti(s->main, -1, f->ref);
    if (clean && s->pooled < POOL_SIZE)
        keep_coroutine(s->main, s);
    lua_pushnil(s->main);
    lua_setiuservalue(s->main, -2, AB_UV_CO);
    luaL_unref(s->main, -2, f->ref);
    bool was_root = f == s->root;
    lua_pop(s->main, 2); /* f may be collected from here on */
    if (was_root) {
        s->root = NULL;
        cancel_others(s, "the main fiber has ended");
    }
}

/* ---- cancel ---- */

static void on_grace(struct ab_op *op, void *arg)
{
    struct ab_fiber *f = arg;
    (void)op;
    f->hard = true;
    ab_fiber_make_ready(f);
}

void ab_fiber_cancel(struct ab_fiber *f, const struct ab_err *why)
{
    if (is_dead(f) || f->cancelling)
        return;
    f->cancelling = f->pending = true;
    f->cancel_err = ab_xcalloc(1, sizeof *why);
    *f->cancel_err = *why;
    f->grace = ab_timer_start(f->sched->loop, f->sched->grace_ms);
    f->grace->on_done = on_grace;
    f->grace->arg = f;
    ab_fiber_make_ready(f);
}

void abl_raise_cancel(lua_State *L, struct ab_fiber *f)
{
    f->pending = false;
    luaL_checkstack(L, 6, NULL);
    abl_push_fiber(L, f);
    if (lua_getiuservalue(L, -1, AB_UV_CANCEL) == LUA_TNIL) {
        abl_push_errvalue(L, f->cancel_err, NULL);
        lua_pushboolean(L, 1);
        lua_setfield(L, -2, "cancel");
    }
    lua_error(L);
}

int abl_l_raise_cancel(lua_State *L)
{
    abl_raise_cancel(L, ab_sched_of(L)->running);
}

static void on_deadline(struct ab_op *op, void *arg)
{
    struct ab_fiber *f = arg;
    struct ab_err err;
    ab_err_set(&err, AB_ETIMEOUT, "the deadline has passed");
    f->deadline = NULL;
    ab_fiber_cancel(f, &err);
    ab_op_unref(op);
}

void ab_fiber_clear_deadline(struct ab_fiber *f)
{
    drop_op(&f->deadline);
}

void ab_fiber_set_deadline(struct ab_fiber *f, uint64_t ms)
{
    drop_op(&f->deadline);
    if (is_dead(f))
        return;
    f->deadline = ab_timer_start(f->sched->loop, ms);
    f->deadline->on_done = on_deadline;
    f->deadline->arg = f;
}

/* ---- the scheduler ---- */

static uint64_t clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t ab_sched_elapsed_ns(const struct ab_sched *s)
{
    return clock_ns(CLOCK_MONOTONIC) - s->resumed_ns;
}

void ab_sched_charge_cpu(struct ab_sched *s)
{
    struct ab_account *a = s->running->account;
    if (!a->cpu_limit_ns)
        return;
    uint64_t now = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    a->cpu_ns += now - s->resumed_cpu_ns;
    s->resumed_cpu_ns = now;
    if (a->cpu_ns < a->cpu_limit_ns)
        return;
    struct ab_err err;
    ab_err_set(&err, AB_ELIMIT, "the budget of %.3g s of CPU time is used up",
               (double)a->cpu_limit_ns / 1e9);
    ab_fiber_cancel(s->running, &err);
}

void ab_fiber_limit(struct ab_fiber *f, size_t memory_bytes, uint64_t cpu_ns)
{
    struct ab_sched *s = f->sched;
    if (is_dead(f))
        return;
    if (f->account->shared) { /* of a parent, perhaps: its other children keep it */
        struct ab_account *old = f->account, *own = ab_account_new(s->heap);
        own->limit_bytes = old->limit_bytes;
        ab_account_unref(old);
        f->account = own;
    }
    f->account->shared = true;
    if (memory_bytes)
        f->account->limit_bytes = memory_bytes;
    if (cpu_ns) {
        f->account->cpu_ns = 0;
        f->account->cpu_limit_ns = cpu_ns;
    }
    if (f == s->running) {
        s->resumed_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        if (s->heap)
            s->heap->charged = f->account;
    }
}

static void begin(struct ab_fiber *f)
{
    struct ab_sched *s = f->sched;
    s->resumed_ns = clock_ns(CLOCK_MONOTONIC);
    s->interrupted_cpu_ns = 0;
    if (f->account->cpu_limit_ns)
        s->resumed_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (s->heap)
        s->heap->charged = f->account;
    s->running = f;
    s->active = f->co;
    ab_collect_defer(s);
    if (s->wd)
        ab_watchdog_enter(s->wd);
}

static void end(struct ab_fiber *f)
{
    struct ab_sched *s = f->sched;
    s->active = NULL;
    lua_sethook(f->co, NULL, 0, 0);
    if (s->wd)
        ab_watchdog_alive(s->wd);
    ab_collect_due(s);
    if (s->wd)
        ab_watchdog_leave(s->wd);
    ab_sched_charge_cpu(s);
    s->running = NULL;
    s->slicing = false;
    s->blocked = 0;
    if (s->heap)
        s->heap->charged = &s->heap->engine;
}

/* The grace period is over: what is left of the stack is unwound where waiting is an
 * error. */
static void close_hard(struct ab_fiber *f)
{
    if (f->op) /* its anchor may be collected long after the fiber */
        ab_op_cancel(f->op);
    lua_resetthread(f->co);
    f->status = AB_FIBER_FAILED;
}

/* After a turn that ended with rc. */
static void settle(struct ab_fiber *f, int rc)
{
    if (rc == LUA_YIELD) {
        if (f->sliced)
            f->status = AB_FIBER_READY;
        if (f->status == AB_FIBER_READY)
            ab_fiber_make_ready(f);
        return;
    }
    if (!is_dead(f))
        f->status = AB_FIBER_FAILED; /* out of memory while keeping the result */
    if (rc != LUA_OK)
        lua_resetthread(f->co);
    retire(f, rc == LUA_OK);
}

static void resume(struct ab_fiber *f)
{
    struct ab_sched *s = f->sched;
    int nargs = f->started ? f->nwake : lua_gettop(f->co) - 1;
    int nres = 0, rc = LUA_ERRRUN;
    ab_list_remove(&f->link);
    f->status = AB_FIBER_RUNNING;
    begin(f);
    f->started = true;
    if (f->hard) {
        close_hard(f);
    } else {
        ab_slice_begin(f->co);
        if (f->pending && f->sliced)
            ab_slice_arm(f->co); /* it may never come to a wait */
        f->sliced = false;
        rc = lua_resume(f->co, s->main, nargs, &nres);
    }
    f->sliced = s->slicing;
    end(f);
    settle(f, rc);
}

static bool may_run_inside(lua_State *L, const struct ab_fiber *f)
{
    const struct ab_sched *s = f->sched;
    return f->status == AB_FIBER_READY && !f->started && !f->pending && s->running &&
           s->running->co == L && s->blocked == 0 && s->inner < INNER_MAX &&
           ab_sched_elapsed_ns(s) < INNER_US * 1000u;
}

/* From here on `f` runs and pays. What ran until now has been charged. */
static void take_turn(struct ab_sched *s, struct ab_fiber *f)
{
    struct ab_account *before = s->running->account;
    ab_sched_charge_cpu(s);
    if (f->account->cpu_limit_ns && !before->cpu_limit_ns)
        s->resumed_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (s->heap)
        s->heap->charged = f->account;
    s->running = f;
    s->active = f->co;
}

void ab_fiber_run_inside(lua_State *L, struct ab_fiber *f)
{
    struct ab_sched *s = f->sched;
    if (is_dead(f) || !may_run_inside(L, f))
        return;
    struct ab_fiber *outer = s->running;
    int nres = 0, nargs = lua_gettop(f->co) - 1;
    ab_list_remove(&f->link);
    f->status = AB_FIBER_RUNNING;
    f->started = true;
    take_turn(s, f);
    s->inner++;
    ab_slice_begin(f->co);
    int rc = lua_resume(f->co, L, nargs, &nres);
    s->inner--;
    lua_sethook(f->co, NULL, 0, 0);
    f->sliced = s->slicing;
    s->slicing = false;
    s->blocked = 0;
    take_turn(s, outer);
    settle(f, rc);
}

static bool in_pass(const struct ab_sched *s)
{
    return !ab_list_empty(&s->soon) || !ab_list_empty(&s->pass);
}

static bool any_ready(const struct ab_sched *s)
{
    return in_pass(s) || !ab_list_empty(&s->ready);
}

static struct ab_fiber *next_in_pass(struct ab_sched *s)
{
    bool first =
        !ab_list_empty(&s->soon) && (ab_list_empty(&s->pass) || s->favoured < SOON_MAX);
    s->favoured = first ? s->favoured + 1 : 0;
    return AB_CONTAINER(first ? s->soon.next : s->pass.next, struct ab_fiber, link);
}

/* A pass over what is ready now; a busy fiber goes to the end and waits for the next one.
 * The loop may want to look at I/O in the middle of it: a thousand turns may be waiting,
 * and meanwhile commands end whose place others wait for. */
static void drain(struct ab_sched *s)
{
    uint64_t began = clock_ns(CLOCK_MONOTONIC);
    ab_list_move(&s->pass, &s->ready);
    do
        resume(next_in_pass(s));
    while (in_pass(s) && s->resumed_ns - began < DRAIN_US * 1000u);
}

void ab_sched_run(struct ab_sched *s)
{
    while (s->live > 0) {
        if (any_ready(s))
            drain(s);
        if (s->live == 0)
            break;
        s->polling = true;
        bool alive = ab_loop_turn(s->loop, any_ready(s));
        s->polling = false;
        if (!alive && !any_ready(s) && s->live > 0)
            cancel_others(s, "deadlock: every fiber waits for another one");
    }
}

void abl_register(lua_State *L)
{
    abl_wait_register(L);
    abl_conv_register(L);
    luaL_newmetatable(L, FIBER_TYPE);
    lua_pushcfunction(L, l_fiber_gc);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &fibers_key);
    lua_createtable(L, POOL_SIZE, 0);
    for (int i = 1; i <= POOL_SIZE; i++) {
        lua_pushboolean(L, 0);
        lua_rawseti(L, -2, i);
    }
    lua_rawsetp(L, LUA_REGISTRYINDEX, &pool_key);
}
