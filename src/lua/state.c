#include "lua/state.h"

#include <lualib.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "lua/conv.h"
#include "lua/core.h"
#include "lua/pattern.h"
#include "lua/slice.h"
#include "rt/signal.h"
#include "rt/work.h"

int luaopen_cjson(lua_State *L);
int luaopen_cjson_safe(lua_State *L);

enum { STATUS_BUG = 70, STATUS_INTERRUPTED = 130, STATUS_DEFECT = 1 };

/* print and os.exit as the library means them. */
static void replace_globals(lua_State *L)
{
    luaL_requiref(L, "agentbox.sys.log", luaopen_agentbox_sys_log, 0);
    lua_getfield(L, -1, "print");
    lua_setglobal(L, "print");
    luaL_requiref(L, "agentbox.sys.os", luaopen_agentbox_sys_os, 0);
    lua_getglobal(L, "os");
    lua_getfield(L, -2, "exit");
    lua_setfield(L, -2, "exit");
    lua_pop(L, 3);
}

/* The real lua-cjson, for scripts written for it; the library itself never uses it. */
static void preload_cjson(lua_State *L)
{
    static const luaL_Reg cjson[] = {
        {"cjson", luaopen_cjson}, {"cjson.safe", luaopen_cjson_safe}, {NULL, NULL}};
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    luaL_setfuncs(L, cjson, 0);
    lua_pop(L, 1);
}

static int open_all(lua_State *L)
{
    lua_pushboolean(L, 1); /* LUA_PATH and LUA_CPATH do not reach us */
    lua_setfield(L, LUA_REGISTRYINDEX, "LUA_NOENV");
    luaL_openlibs(L);
    abl_open_engine(L);
    preload_cjson(L);
    replace_globals(L);
    abl_pattern_install(L);
    return 0;
}

static int on_panic(lua_State *L)
{
    AB_BUG("unprotected Lua error: %s", lua_tostring(L, -1));
}

/* On the watchdog's thread: nothing can be unwound. The zygote sees the end and kills
 * what is left. */
static void on_stuck(void *sched)
{
    (void)sched;
    static const char line[] =
        "agentbox: the engine is stuck in that call and ends now\n";
    if (write(STDERR_FILENO, line, sizeof line - 1) < 0)
        _exit(STATUS_BUG);
    _exit(STATUS_BUG);
}

/* Three quarters of the machine: what is left is for sandboxes and for C. */
static size_t default_heap_limit(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (size_t)pages / 4 * 3 * (size_t)size : 0;
}

/* What can fail once the loop stands. */
static int init_rest(struct ab_state *s, struct ab_err *err)
{
    const struct ab_watchdog_hooks hooks = {
        .slice = ab_slice_on_tick,
        .warn = ab_slice_on_warn,
        .stuck = on_stuck,
        .arg = &s->sched,
        .warn_ms = AB_STUCK_WARN_MS,
        .stuck_ms = AB_STUCK_LIMIT_MS,
    };
    s->wd = ab_watchdog_new(&hooks, err);
    if (!s->wd || ab_work_check(err) < 0)
        return -1;
    s->sched.wd = s->wd;
    lua_pushcfunction(s->L, open_all);
    if (lua_pcall(s->L, 0, 0, 0) != LUA_OK)
        return ab_err_set(err, AB_ENOMEM, "%s", lua_tostring(s->L, -1));
    return 0;
}

int ab_state_init(struct ab_state *s, struct ab_err *err)
{
    *s = (struct ab_state){0};
    if (ab_loop_init(&s->loop, err) < 0)
        return -1;
    ab_heap_init(&s->heap);
    s->heap.limit_bytes = default_heap_limit();
    s->L = lua_newstate(ab_heap_alloc, &s->heap);
    if (!s->L)
        AB_BUG("out of memory");
    lua_atpanic(s->L, on_panic);
    ab_sched_init(&s->sched, s->L, &s->loop);
    s->sched.heap = &s->heap;
    if (init_rest(s, err) == 0)
        return 0;
    ab_state_fini(s);
    return -1;
}

/* ---- signals ---- */

static void on_interrupt(uv_signal_t *h, int signum)
{
    struct ab_state *s = h->data;
    if (ab_signal_awaited(&s->loop, signum))
        return;
    if (s->interrupts++ > 0)
        _exit(STATUS_INTERRUPTED); /* the zygote sees the end and kills every sandbox */
    struct ab_err err;
    ab_err_set(&err, AB_ECANCELLED, "interrupted");
    if (s->sched.root)
        ab_fiber_cancel(s->sched.root, &err);
}

static void watch_signal(struct ab_state *s, uv_signal_t *h, int signum)
{
    struct sigaction now;
    uv_signal_init(&s->loop.uv, h);
    h->data = s;
    if (signum == SIGHUP && sigaction(signum, NULL, &now) == 0 &&
        now.sa_handler == SIG_IGN)
        return;
    uv_signal_start(h, on_interrupt, signum);
    uv_unref((uv_handle_t *)h);
}

/* ---- the main fiber ---- */

static int return_status(lua_State *L, int status, lua_KContext ctx)
{
    (void)L;
    (void)status;
    (void)ctx;
    return 1;
}

/* (argv): runs the command line. */
static int l_main(lua_State *L)
{
    lua_getglobal(L, "require");
    lua_pushliteral(L, "agentbox.cli");
    lua_call(L, 1, 1);
    lua_getfield(L, -1, "main");
    lua_pushvalue(L, 1);
    lua_callk(L, 1, 1, 0, return_status);
    return return_status(L, LUA_OK, 0);
}

/* Leaves the fiber's handle on the stack: it outlives the fiber. */
static int start_main(lua_State *L)
{
    int argc = (int)lua_tointeger(L, 1);
    char **argv = lua_touserdata(L, 2);
    lua_pushcfunction(L, l_main);
    lua_createtable(L, argc, 1);
    for (int i = 0; i < argc; i++) {
        lua_pushstring(L, argv[i]);
        lua_rawseti(L, -2, i);
    }
    ab_sched_of(L)->root = abl_fiber_new(L, 1);
    return 1;
}

/* The handle is on top of the stack. */
static int l_status_of(lua_State *L)
{
    struct ab_fiber *f = abl_check_fiber(L, 1);
    f->observed = true;
    int kind = lua_getiuservalue(L, 1, AB_UV_RESULT);
    if (f->status == AB_FIBER_DONE) {
        lua_settop(L, 1);
        abl_push_results(L, 1);
        lua_pushinteger(L, luaL_optinteger(L, 2, 0));
        return 1;
    }
    if (f->cancel_err && f->cancel_err->code == AB_ECANCELLED) {
        ab_log(AB_LOG_ERROR, "%s", f->cancel_err->msg);
        lua_pushinteger(L, STATUS_DEFECT);
        return 1;
    }
    const char *text = kind == LUA_TNIL ? "not enough memory" : abl_tolog(L, 2);
    if (kind == LUA_TTABLE && lua_getfield(L, 2, "traceback") == LUA_TSTRING)
        ab_log(AB_LOG_ERROR, "%s\n%s", text, abl_tolog(L, -1));
    else
        ab_log(AB_LOG_ERROR, "%s", text);
    lua_pushinteger(L, STATUS_BUG);
    return 1;
}

static int exit_status(struct ab_state *s)
{
    lua_State *L = s->L;
    if (s->interrupts > 0)
        return STATUS_INTERRUPTED;
    if (s->sched.exiting)
        return s->sched.exit_status;
    lua_pushcfunction(L, l_status_of);
    lua_insert(L, -2);
    if (lua_pcall(L, 1, 1, 0) != LUA_OK)
        return STATUS_BUG;
    int status = (int)lua_tointeger(L, -1);
    lua_pop(L, 1);
    return status;
}

int ab_state_main(struct ab_state *s, int argc, char **argv)
{
    lua_pushcfunction(s->L, start_main);
    lua_pushinteger(s->L, argc);
    lua_pushlightuserdata(s->L, argv);
    if (lua_pcall(s->L, 2, 1, 0) != LUA_OK) {
        ab_log(AB_LOG_ERROR, "%s", lua_tostring(s->L, -1));
        return STATUS_BUG;
    }
    watch_signal(s, &s->interrupt, SIGINT);
    watch_signal(s, &s->terminate, SIGTERM);
    watch_signal(s, &s->hangup, SIGHUP);
    ab_sched_run(&s->sched);
    uv_close((uv_handle_t *)&s->interrupt, NULL);
    uv_close((uv_handle_t *)&s->terminate, NULL);
    uv_close((uv_handle_t *)&s->hangup, NULL);
    return exit_status(s);
}

void ab_state_fini(struct ab_state *s)
{
    lua_close(s->L);
    ab_heap_fini(&s->heap);
    ab_watchdog_free(s->wd);
    ab_loop_fini(&s->loop);
}
