/* l_os.c - agentbox.sys.os: the process and its terminal. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lua/conv.h"
#include "rt/fs.h"
#include "rt/poll.h"
#include "rt/signal.h"

int luaopen_agentbox_sys_os(lua_State *L);

static int l_env(lua_State *L)
{
    lua_pushstring(L, getenv(luaL_checkstring(L, 1)));
    return 1;
}

static int l_isatty(lua_State *L)
{
    lua_pushboolean(L, isatty((int)luaL_checkinteger(L, 1)));
    return 1;
}

static int l_pid(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)getpid());
    return 1;
}

static int l_uid(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)geteuid());
    return 1;
}

static int l_hostname(lua_State *L)
{
    char name[HOST_NAME_MAX + 1];
    if (gethostname(name, sizeof name) < 0)
        name[0] = '\0';
    name[sizeof name - 1] = '\0';
    lua_pushstring(L, name);
    return 1;
}

/* winsize(): columns, rows of the terminal; nothing when there is none. */
static int l_winsize(lua_State *L)
{
    struct winsize size;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        if (ioctl(fd, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
            continue;
        lua_pushinteger(L, size.ws_col);
        lua_pushinteger(L, size.ws_row);
        return 2;
    }
    return 0;
}

/* write(fd, bytes): to standard output or error, past every buffer of ours. A reader that
 * went away is nil and an error of code `io`, never a signal. */
static int l_write(lua_State *L)
{
    lua_Integer fd = luaL_checkinteger(L, 1);
    size_t len;
    const char *data = luaL_checklstring(L, 2, &len);
    struct ab_err err;
    luaL_argcheck(L, fd == STDOUT_FILENO || fd == STDERR_FILENO, 1, "1 or 2 expected");
    fflush(stdout);
    if (ab_fs_write_fd((int)fd, data, len, &err) < 0)
        return abl_push_err(L, &err, "os.write");
    lua_pushboolean(L, 1);
    return 1;
}

/* ---- standard input ---- */

static int push_input(lua_State *L, struct ab_op *op)
{
    lua_Integer max = luaL_checkinteger(L, 1);
    struct ab_err err;
    (void)op; /* a descriptor that cannot be polled (a file) never blocks */
    luaL_Buffer b;
    char *at = luaL_buffinitsize(L, &b, (size_t)max);
    ssize_t n;
    do
        n = read(STDIN_FILENO, at, (size_t)max);
    while (n < 0 && errno == EINTR);
    if (n < 0) {
        ab_err_sys(&err, errno, "read standard input");
        return abl_push_err(L, &err, "os.read_stdin");
    }
    luaL_pushresultsize(&b, (size_t)n);
    if (n == 0)
        lua_pushnil(L);
    return 1;
}

/* read_stdin(max): what is there, at most max bytes; waits for the first one; nil at the
 * end. */
static int l_read_stdin(lua_State *L)
{
    lua_Integer max = luaL_checkinteger(L, 1);
    luaL_argcheck(L, max > 0 && max <= 1 << 20, 1, "1 to 1048576 expected");
    lua_settop(L, 1);
    struct ab_anchor *anchor = abl_anchor(L);
    anchor->op = ab_poll_start(abl_loop(L), STDIN_FILENO, UV_READABLE);
    return abl_wait(L, anchor, push_input);
}

/* ---- signals ---- */

static int push_signal(lua_State *L, struct ab_op *op)
{
    if (op->err)
        return abl_push_err(L, op->err, "os.wait_signal");
    lua_pushboolean(L, 1);
    return 1;
}

/* wait_signal(name): waits for the next one ("INT", "TERM", "HUP", "USR1", "USR2");
 * meanwhile the default of the engine (INT and TERM cancel the main fiber) does not
 * apply. */
static int l_wait_signal(lua_State *L)
{
    static const char *const names[] = {"INT",  "TERM",  "HUP", "USR1",
                                        "USR2", "WINCH", NULL};
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH};
    int i = luaL_checkoption(L, 1, NULL, names);
    struct ab_anchor *anchor = abl_anchor(L);
    anchor->op = ab_signal_start(abl_loop(L), numbers[i]);
    return abl_wait(L, anchor, push_signal);
}

/* ---- the engine ---- */

/* exit_status([n]): sets what the process ends with when its main fiber does not say;
 * gives it. */
static int l_exit_status(lua_State *L)
{
    struct ab_sched *s = ab_sched_of(L);
    if (!lua_isnoneornil(L, 1))
        s->exit_status = (int)luaL_checkinteger(L, 1);
    lua_pushinteger(L, s->exit_status);
    return 1;
}

/* Bytes of memory that the process has in RAM. */
static int l_memory_rss(lua_State *L)
{
    FILE *f = fopen("/proc/self/statm", "re");
    long pages = 0;
    if (f) {
        if (fscanf(f, "%*s %ld", &pages) != 1)
            pages = 0;
        fclose(f);
    }
    lua_pushinteger(L, (lua_Integer)pages * sysconf(_SC_PAGESIZE));
    return 1;
}

/* exit([code]): unwinds every fiber, running their <close> handlers, then ends the
 * process with the code. Replaces os.exit: ending at once would leave sandboxes to be
 * killed by others. */
static int l_exit(lua_State *L)
{
    struct ab_sched *s = ab_sched_of(L);
    int status =
        lua_isboolean(L, 1) ? !lua_toboolean(L, 1) : (int)luaL_optinteger(L, 1, 0);
    struct ab_err err;
    if (!s || !s->running)
        luaL_error(L, "os.exit must be called from a fiber");
    s->exiting = true;
    s->exit_status = status;
    ab_err_set(&err, AB_ECANCELLED, "os.exit was called");
    if (s->root)
        ab_fiber_cancel(s->root, &err);
    ab_fiber_cancel(s->running, &err);
    if (s->running->pending)
        abl_raise_cancel(L, s->running);
    luaL_error(L, "os.exit was called");
}

int luaopen_agentbox_sys_os(lua_State *L)
{
    static const luaL_Reg lib[] = {
        {"env", l_env},
        {"isatty", l_isatty},
        {"pid", l_pid},
        {"uid", l_uid},
        {"hostname", l_hostname},
        {"winsize", l_winsize},
        {"write", l_write},
        {"read_stdin", l_read_stdin},
        {"wait_signal", l_wait_signal},
        {"exit_status", l_exit_status},
        {"exit", l_exit},
        {"memory_rss", l_memory_rss},
        {NULL, NULL},
    };
    luaL_newlib(L, lib);
    lua_pushliteral(L, AB_VERSION);
    lua_setfield(L, -2, "version");
    return 1;
}
