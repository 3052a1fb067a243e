#include "lua/slice.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lua/conv.h"
#include "lua/count.h"

enum {
    SLICE_MS = 5,     /* a hook that fires earlier has nothing to do */
    LIBRARY_MS = 100, /* how long the library's own frames are left alone */
    LIBRARY_COUNT = 1000,
};

static bool in_library(lua_State *L, lua_Debug *ar)
{
    return lua_getinfo(L, "S", ar) && strncmp(ar->source, "@agentbox/", 10) == 0;
}

static void give_up(struct ab_sched *s)
{
    struct ab_err err;
    ab_err_set(&err, AB_ELIMIT,
               "ran for %d s in a place that cannot be interrupted (a sort or gsub "
               "callback, a module's top level, __tostring)",
               AB_BLOCK_LIMIT_MS / 1000);
    ab_fiber_cancel(s->running, &err);
}

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* How long this turn has computed since it was first interrupted. Time on the clock says
 * little of that on a busy machine, or behind a slow disk. */
static uint64_t computed_ms(struct ab_sched *s)
{
    uint64_t now = cpu_ns();
    if (!s->interrupted_cpu_ns)
        s->interrupted_cpu_ns = now;
    return (now - s->interrupted_cpu_ns) / 1000000;
}

enum verdict { GO_ON, SPARE, LEAVE };

/* What becomes of the code at ar, which has been interrupted. Raises a cancel. */
static enum verdict judge(lua_State *L, lua_Debug *ar)
{
    struct ab_sched *s = ab_sched_of(L);
    struct ab_fiber *f = s->running;
    if (s->wd)
        ab_watchdog_alive(s->wd);
    uint64_t ms = ab_sched_elapsed_ns(s) / 1000000;
    if (ms < SLICE_MS && !f->pending && !f->hard)
        return GO_ON;
    uint64_t computed = computed_ms(s);
    if (computed < LIBRARY_MS && in_library(L, ar))
        return SPARE;
    ab_sched_charge_cpu(s);
    bool can_yield = lua_isyieldable(L) && s->blocked == 0;
    if (!can_yield && computed >= AB_BLOCK_LIMIT_MS)
        give_up(s);
    if (f->pending || f->hard)
        abl_raise_cancel(L, f);
    return can_yield ? LEAVE : GO_ON;
}

static void on_count(lua_State *L, lua_Debug *ar)
{
    struct ab_sched *s = ab_sched_of(L);
    lua_sethook(L, NULL, 0, 0);
    if (!s->running)
        return;
    switch (judge(L, ar)) {
    case GO_ON:
        ab_slice_begin(L);
        break;
    case SPARE:
        lua_sethook(L, on_count, LUA_MASKCOUNT, LIBRARY_COUNT);
        break;
    case LEAVE:
        s->slicing = true;
        lua_yield(L, 0);
    }
}

bool abl_slice_due(lua_State *L)
{
    struct ab_sched *s = ab_sched_of(L);
    lua_Debug caller;
    if (!s || !s->running || !lua_getstack(L, 1, &caller))
        return false;
    return judge(L, &caller) == LEAVE;
}

int abl_slice_leave(lua_State *L, lua_KContext ctx, lua_KFunction k)
{
    ab_sched_of(L)->slicing = true;
    return lua_yieldk(L, 0, ctx, k);
}

/* ThreadSanitizer delivers signals in calls of libc only, so under it instructions are
 * counted. */
#ifdef __SANITIZE_THREAD__
void ab_slice_begin(lua_State *co)
{
    lua_sethook(co, on_count, LUA_MASKCOUNT, 10000);
}
#else
void ab_slice_begin(lua_State *co)
{
    ab_count_begin(co);
}
#endif

void ab_slice_arm(lua_State *co)
{
    lua_sethook(co, on_count, LUA_MASKCOUNT, 1);
}

/* Arming visits every frame of the stack, and a recursion without end has a third of a
 * million of them, scattered over memory: at most a third of the time goes into it, or
 * the handler would run for ever. A longer pause would be a turn that nobody else gets.
 */
void ab_slice_on_tick(void *sched)
{
    struct ab_sched *s = sched;
    uint64_t began = cpu_ns();
    if (!s->active || began < s->next_arm_cpu_ns)
        return;
    ab_slice_arm(s->active);
    uint64_t ended = cpu_ns();
    s->next_arm_cpu_ns = ended + 2 * (ended - began);
}

static void say_stuck(const char *where, int line)
{
    char text[LUA_IDSIZE + 250];
    int n = snprintf(
        text, sizeof text,
        "agentbox: %s:%d: nothing else has run for %d s, because this call cannot "
        "be interrupted; after %d s of computing it ends the engine\n",
        where, line, AB_STUCK_WARN_MS / 1000, AB_STUCK_LIMIT_MS / 1000);
    if (n > 0 && write(STDERR_FILENO, text, (size_t)n) < 0)
        return;
}

static bool find_line(lua_State *L, lua_Debug *ar)
{
    for (int level = 0; L && lua_getstack(L, level, ar); level++) {
        lua_getinfo(L, "Sl", ar);
        if (ar->currentline > 0)
            return true;
    }
    return false;
}

/* Where on_fault() goes back to; used by one signal handler at a time. */
static _Thread_local sigjmp_buf fault_exit;

static void on_fault(int signum)
{
    (void)signum;
    siglongjmp(fault_exit, 1);
}

/* In a signal handler. A C function that is stuck leaves the stack as it is. Only when
 * Lua is moving a huge stack at this very moment are its pointers no pointers (since
 * Lua 5.4.6); reading them faults, and then the line stays unknown. */
void ab_slice_on_warn(void *sched)
{
    struct ab_sched *s = sched;
    lua_Debug ar;
    struct sigaction fault = {.sa_handler = on_fault, .sa_flags = SA_NODEFER}, old;
    sigemptyset(&fault.sa_mask);
    if (sigaction(SIGSEGV, &fault, &old) < 0)
        return;
    bool found = sigsetjmp(fault_exit, 1) == 0 && find_line(s->active, &ar);
    sigaction(SIGSEGV, &old, NULL);
    say_stuck(found ? ar.short_src : "?", found ? ar.currentline : 0);
}

/* ---- coroutines inside a fiber ---- */

static lua_State *check_coroutine(lua_State *L, int arg)
{
    luaL_checktype(L, arg, LUA_TTHREAD);
    lua_State *co = lua_tothread(L, arg);
    if (co != L && abl_is_fiber_co(co))
        luaL_argerror(L, arg, "this coroutine is a fiber; use its handle");
    return co;
}

static int nesting(lua_State *L)
{
    struct ab_sched *s = ab_sched_of(L);
    return s->running ? s->running->nested : 0;
}

/* Runs co, with its nargs arguments on its stack; L is in so many protected calls. True
 * when a slice is on its way out. */
static bool switch_to(lua_State *L, lua_State *co, int nargs, int nested, int *rc,
                      int *nres)
{
    struct ab_sched *s = ab_sched_of(L);
    struct ab_fiber *f = s->running;
    lua_State *outer = s->active;
    bool blocks = !lua_isyieldable(L);
    ab_slice_begin(co);
    if (f && f->pending)
        ab_slice_arm(co);
    s->blocked += blocks;
    if (f)
        s->active = co;
    *rc = lua_resume(co, L, nargs, nres);
    s->active = outer;
    s->blocked -= blocks;
    if (*rc == LUA_YIELD && s->slicing)
        return true;
    if (f)
        f->nested = nested;
    return false;
}

static bool move_args(lua_State *L, lua_State *co, int nargs)
{
    if (!lua_checkstack(co, nargs + 1))
        return false;
    lua_xmove(L, co, nargs);
    return true;
}

/* Pushes the results of co, or its error. */
static bool take_results(lua_State *L, lua_State *co, int rc, int nres)
{
    bool ok = rc == LUA_OK || rc == LUA_YIELD;
    if (!ok) {
        nres = 1;
        lua_pushvalue(co, -1); /* coroutine.close wants it too */
    }
    luaL_checkstack(L, nres + 2, "too many results");
    lua_xmove(co, L, nres);
    return ok;
}

static int resume_more(lua_State *L, int status, lua_KContext nested);

static int resume_nested(lua_State *L, lua_State *co, int nargs, int nested)
{
    int rc, nres = 0;
    if (switch_to(L, co, nargs, nested, &rc, &nres))
        return lua_yieldk(L, 0, nested, resume_more);
    int base = lua_gettop(L);
    bool ok = take_results(L, co, rc, nres);
    if (!ok && abl_is_cancel(L, -1))
        lua_error(L);
    lua_pushboolean(L, ok);
    lua_insert(L, base + 1);
    return lua_gettop(L) - base;
}

static int resume_more(lua_State *L, int status, lua_KContext nested)
{
    (void)status;
    return resume_nested(L, lua_tothread(L, 1), 0, (int)nested);
}

static int l_resume(lua_State *L)
{
    lua_State *co = check_coroutine(L, 1);
    int nargs = lua_gettop(L) - 1;
    if (!move_args(L, co, nargs)) {
        lua_pushboolean(L, 0);
        lua_pushliteral(L, "too many arguments to resume");
        return 2;
    }
    return resume_nested(L, co, nargs, nesting(L));
}

AB_NORETURN static void raise_wrapped(lua_State *L, lua_State *co)
{
    int status = lua_status(co);
    if (status != LUA_OK && status != LUA_YIELD) {
        lua_pop(L, 1);
        status = lua_resetthread(co); /* runs its <close> handlers */
        lua_xmove(co, L, 1);
    }
    if (status != LUA_ERRMEM && lua_type(L, -1) == LUA_TSTRING) {
        luaL_where(L, 1);
        lua_insert(L, -2);
        lua_concat(L, 2);
    }
    lua_error(L);
}

static int wrap_more(lua_State *L, int status, lua_KContext nested);

static int wrap_nested(lua_State *L, int nargs, int nested)
{
    lua_State *co = lua_tothread(L, lua_upvalueindex(1));
    int rc, nres = 0;
    if (switch_to(L, co, nargs, nested, &rc, &nres))
        return lua_yieldk(L, 0, nested, wrap_more);
    int base = lua_gettop(L);
    if (!take_results(L, co, rc, nres))
        raise_wrapped(L, co);
    return lua_gettop(L) - base;
}

static int wrap_more(lua_State *L, int status, lua_KContext nested)
{
    (void)status;
    return wrap_nested(L, 0, (int)nested);
}

static int l_wrapped(lua_State *L)
{
    int nargs = lua_gettop(L);
    if (!move_args(L, lua_tothread(L, lua_upvalueindex(1)), nargs))
        luaL_error(L, "too many arguments to resume");
    return wrap_nested(L, nargs, nesting(L));
}

static int l_wrap(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_State *co = lua_newthread(L);
    lua_pushvalue(L, 1);
    lua_xmove(L, co, 1);
    lua_pushcclosure(L, l_wrapped, 1);
    return 1;
}

static int l_close(lua_State *L)
{
    struct ab_sched *s = ab_sched_of(L);
    lua_State *co = check_coroutine(L, 1), *outer = s->active;
    lua_Debug ar;
    if (co == L || (lua_status(co) == LUA_OK && lua_getstack(co, 0, &ar)))
        luaL_error(L, "cannot close a running coroutine");
    if (s->running)
        s->active = co;
    s->blocked++;
    int rc = lua_resetthread(co);
    s->blocked--;
    s->active = outer;
    lua_pushboolean(L, rc == LUA_OK);
    if (rc == LUA_OK)
        return 1;
    lua_xmove(co, L, 1);
    if (abl_is_cancel(L, -1))
        lua_error(L);
    return 2;
}

static bool is_fiber_itself(lua_State *L)
{
    struct ab_sched *s = ab_sched_of(L);
    return s->running && s->running->co == L;
}

static int l_yield(lua_State *L)
{
    if (is_fiber_itself(L))
        luaL_error(L, "attempt to yield from outside a coroutine");
    return lua_yield(L, lua_gettop(L));
}

static int l_isyieldable(lua_State *L)
{
    lua_State *co = lua_isthread(L, 1) ? lua_tothread(L, 1) : L;
    lua_pushboolean(L, lua_isyieldable(co) && !is_fiber_itself(co));
    return 1;
}

static int l_sethook(lua_State *L)
{
    luaL_error(L, "debug.sethook is not available: the engine needs the hook for itself");
}

void abl_slice_install(lua_State *L)
{
    static const luaL_Reg coroutine[] = {
        {"resume", l_resume},
        {"wrap", l_wrap},
        {"close", l_close},
        {"yield", l_yield},
        {"isyieldable", l_isyieldable},
        {NULL, NULL},
    };
    lua_getglobal(L, "coroutine");
    luaL_setfuncs(L, coroutine, 0);
    lua_getglobal(L, "debug");
    lua_pushcfunction(L, l_sethook);
    lua_setfield(L, -2, "sethook");
    lua_pop(L, 2);
}
