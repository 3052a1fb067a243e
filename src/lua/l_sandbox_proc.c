/* l_sandbox_proc.c - commands: their description, their outcome, and those that run
 * beside us. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua/l_sandbox.h"

#define OUTPUT_DEFAULT (1 << 20)
#define OUTPUT_MAX     (1 << 30)

static const char *const command_keys[] = {
    "stdin",  "env", "cwd",  "uid",  "gid",    "timeout_s", "max_output_bytes",
    "nofile", "pty", "rows", "cols", "script", NULL,
};

static const char *check_text(lua_State *L, int idx, const char *what)
{
    size_t len;
    if (lua_type(L, idx) != LUA_TSTRING && lua_type(L, idx) != LUA_TNUMBER)
        luaL_error(L, "%s: string expected, got %s", what, luaL_typename(L, idx));
    const char *s = lua_tolstring(L, idx, &len);
    if (strlen(s) != len)
        luaL_error(L, "%s contains a zero byte", what);
    return s;
}

/* Pushes the list of the words and one pointer array; the list keeps the strings alive.
 */
static char **push_words(lua_State *L, int what, size_t *count)
{
    size_t n = 4;
    if (lua_type(L, what) == LUA_TSTRING) {
        check_text(L, what, "command");
        lua_createtable(L, 4, 0);
        lua_pushliteral(L, "/bin/sh");
        lua_rawseti(L, -2, 1);
        lua_pushliteral(L, "-c");
        lua_rawseti(L, -2, 2);
        lua_pushliteral(L, "--"); /* a command may begin with a dash, and is no option */
        lua_rawseti(L, -2, 3);
        lua_pushvalue(L, what);
        lua_rawseti(L, -2, 4);
    } else {
        luaL_checktype(L, what, LUA_TTABLE);
        n = (size_t)lua_rawlen(L, what);
        luaL_argcheck(L, n > 0, what, "an empty command");
        lua_createtable(L, (int)n, 0);
        for (size_t i = 1; i <= n; i++) {
            lua_rawgeti(L, what, (lua_Integer)i);
            check_text(L, -1, "argument");
            lua_rawseti(L, -2, (lua_Integer)i);
        }
    }
    char **words = lua_newuserdatauv(L, (n + 1) * sizeof *words, 0);
    for (size_t i = 1; i <= n; i++) {
        lua_rawgeti(L, -2, (lua_Integer)i);
        words[i - 1] = (char *)(uintptr_t)lua_tostring(L, -1);
        lua_pop(L, 1);
    }
    words[n] = NULL;
    *count = n;
    return words;
}

static void merge(lua_State *L, int from, int into)
{
    lua_pushnil(L);
    while (lua_next(L, from)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            luaL_error(L, "env: the name of a variable must be a string");
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        if (lua_type(L, -1) == LUA_TBOOLEAN && !lua_toboolean(L, -1)) {
            lua_pop(L, 1);
            lua_pushnil(L); /* false takes a variable away */
        }
        lua_settable(L, into);
    }
}

/* Pushes the list of K=V of the environment at index env. */
static void push_pairs(lua_State *L, int env)
{
    lua_newtable(L);
    int list = lua_gettop(L);
    lua_Integer n = 0;
    lua_pushnil(L);
    while (lua_next(L, env)) {
        const char *name = check_text(L, -2, "name of a variable");
        const char *value = check_text(L, -1, name);
        if (!*name || strchr(name, '='))
            luaL_error(L, "env: '%s' cannot be the name of a variable", name);
        lua_pushfstring(L, "%s=%s", name, value);
        lua_rawseti(L, list, ++n);
        lua_pop(L, 1);
    }
}

/* The sandbox's own list is made once. */
static void push_own_pairs(lua_State *L, int sandbox)
{
    if (lua_getiuservalue(L, sandbox, ABL_PAIRS) == LUA_TTABLE)
        return;
    lua_pop(L, 1);
    lua_getiuservalue(L, sandbox, ABL_ENV);
    push_pairs(L, lua_gettop(L));
    lua_remove(L, -2);
    lua_pushvalue(L, -1);
    lua_setiuservalue(L, sandbox, ABL_PAIRS);
}

/* Pushes the environment of the sandbox, with the options' on top, as a list of K=V. */
static char **push_env(lua_State *L, int sandbox, int opts, size_t *count)
{
    if (lua_istable(L, opts) && lua_getfield(L, opts, "env") != LUA_TNIL) {
        int given = lua_gettop(L);
        luaL_checktype(L, given, LUA_TTABLE);
        lua_newtable(L);
        lua_getiuservalue(L, sandbox, ABL_ENV);
        merge(L, given + 2, given + 1);
        merge(L, given, given + 1);
        push_pairs(L, given + 1);
    } else {
        push_own_pairs(L, sandbox);
    }
    int list = lua_gettop(L);
    size_t n = (size_t)lua_rawlen(L, list);
    char **env = lua_newuserdatauv(L, (n + 1) * sizeof *env, 0);
    for (size_t i = 1; i <= n; i++) {
        lua_rawgeti(L, list, (lua_Integer)i);
        env[i - 1] = (char *)(uintptr_t)lua_tostring(L, -1);
        lua_pop(L, 1);
    }
    env[n] = NULL;
    *count = n;
    return env;
}

static uint32_t opt_id(lua_State *L, int opts, const char *key)
{
    lua_Integer id = abl_opt_integer(L, opts, key, 0);
    if (id < 0 || id > UINT32_MAX)
        luaL_error(L, "option '%s': not a user or group number", key);
    return (uint32_t)id;
}

void abl_check_command(lua_State *L, int what, int opts, struct ab_command *out)
{
    luaL_checkstack(L, 16, NULL);
    abl_check_keys(L, opts, command_keys);
    *out = (struct ab_command){
        .uid = opt_id(L, opts, "uid"),
        .gid = opt_id(L, opts, "gid"),
        .nofile = (uint64_t)abl_opt_integer(L, opts, "nofile", 0),
        .terminal = abl_opt_boolean(L, opts, "pty", false),
        .script = abl_opt_boolean(L, opts, "script", false),
        .rows = (unsigned)abl_opt_integer(L, opts, "rows", 24),
        .cols = (unsigned)abl_opt_integer(L, opts, "cols", 80),
    };
    out->argv = push_words(L, what, &out->argc);
    out->envp = push_env(L, 1, opts, &out->envc);
    lua_getiuservalue(L, 1, ABL_WORKSPACE);
    out->cwd = abl_opt_string(L, opts, "cwd", lua_tostring(L, -1));
}

void abl_check_proc_opts(lua_State *L, int idx, struct ab_proc_opts *opts)
{
    lua_Number timeout = abl_opt_number(L, idx, "timeout_s", 0);
    lua_Integer max = abl_opt_integer(L, idx, "max_output_bytes", OUTPUT_DEFAULT);
    if (!(timeout >= 0 && timeout < 1e8))
        luaL_error(L, "option 'timeout_s': must be at least 0 and below 1e8");
    if (max < 1 || max > OUTPUT_MAX)
        luaL_error(L, "option 'max_output_bytes': must be between 1 and %d", OUTPUT_MAX);
    opts->timeout_ms = timeout > 0 && timeout < 0.001 ? 1 : (uint64_t)(timeout * 1000);
    opts->max_output_bytes = (size_t)max;
    abl_opt_string(L, idx, "stdin", NULL);
    if (!lua_istable(L, idx))
        return;
    size_t len;
    lua_getfield(L, idx, "stdin");
    const char *input = lua_tolstring(L, -1, &len);
    if (input) {
        opts->input = ab_xstrndup(input, len); /* last: nothing here may raise after it */
        opts->input_len = len;
    }
    lua_pop(L, 1);
}

/* ---- outcome ---- */

static void push_stream(lua_State *L, struct ab_proc *p, bool err, const char *key,
                        const char *dropped_key)
{
    struct ab_proc_stream *s = ab_proc_stream(p, err);
    lua_pushlstring(L, s->buf.data ? s->buf.data : "", s->buf.len);
    lua_setfield(L, -2, key);
    lua_pushinteger(L, (lua_Integer)s->dropped);
    lua_setfield(L, -2, dropped_key);
}

static void set_number(lua_State *L, const char *key, double value)
{
    lua_pushnumber(L, value);
    lua_setfield(L, -2, key);
}

static void push_end(lua_State *L, const struct ab_proc_result *r)
{
    int code = r->timed_out ? -1 : r->signal ? 128 + r->signal : r->code;
    lua_pushinteger(L, code);
    lua_setfield(L, -2, "exit_code");
    if (r->signal) {
        const char *name = sigabbrev_np(r->signal);
        if (name)
            lua_pushfstring(L, "SIG%s", name);
        else
            lua_pushfstring(L, "SIG%d", r->signal);
        lua_setfield(L, -2, "signal");
    }
    lua_createtable(L, 0, 3);
    set_number(L, "cpu_s", (double)(r->user_us + r->system_us) / 1e6);
    set_number(L, "wall_s", (double)r->wall_us / 1e6);
    lua_pushinteger(L, (lua_Integer)r->max_rss_bytes);
    lua_setfield(L, -2, "max_rss_bytes");
    lua_setfield(L, -2, "usage");
    set_number(L, "duration_s", (double)r->wall_us / 1e6);
}

/* The child says why itself, unless there never was one: too many processes, no memory.
 */
static void explain_no_exec(struct ab_proc *p, int errnum)
{
    char line[200];
    snprintf(line, sizeof line, "agentbox: cannot start the command: %s\n",
             strerror(errnum));
    ab_buf_put(&ab_proc_stream(p, true)->buf, line, strlen(line));
}

static int push_lost(lua_State *L, const char *op)
{
    struct ab_err err;
    ab_err_set(&err, AB_ESANDBOX, "the sandbox died while the command ran");
    return abl_push_err(L, &err, op);
}

int abl_push_outcome(lua_State *L, struct ab_proc *p, bool oom, const char *op)
{
    const struct ab_proc_result *r = ab_proc_result(p);
    if (r->lost)
        return push_lost(L, op);
    bool truncated =
        ab_proc_stream(p, false)->dropped || ab_proc_stream(p, true)->dropped;
    lua_createtable(L, 0, 12);
    if (r->no_exec && ab_proc_stream(p, true)->buf.len == 0)
        explain_no_exec(p, r->errnum);
    push_stream(L, p, false, "stdout", "stdout_dropped");
    push_stream(L, p, true, "stderr", "stderr_dropped");
    lua_pushboolean(L, truncated);
    lua_setfield(L, -2, "truncated");
    lua_pushboolean(L, r->timed_out);
    lua_setfield(L, -2, "timed_out");
    lua_pushboolean(L, oom);
    lua_setfield(L, -2, "oom");
    push_end(L, r);
    return 1;
}

/* ---- processes ---- */

struct abl_process *abl_new_process(lua_State *L, int sandbox)
{
    struct abl_process *box = lua_newuserdatauv(L, sizeof *box, 1);
    *box = (struct abl_process){0};
    luaL_setmetatable(L, ABL_PROCESS);
    if (sandbox) {
        lua_pushvalue(L, sandbox);
        lua_setiuservalue(L, -2, 1);
    }
    return box;
}

static struct ab_proc *check_process(lua_State *L, int arg)
{
    struct abl_process *box = luaL_checkudata(L, arg, ABL_PROCESS);
    if (!box->proc)
        luaL_error(L, "the process handle is closed");
    return box->proc;
}

static uint64_t milliseconds(lua_Number timeout_s)
{
    lua_Number limit = timeout_s < 1e8 ? timeout_s : 1e8; /* an infinity is no integer */
    return limit > 0 ? (uint64_t)(limit * 1000) + 1 : 0;
}

static int wait_for(lua_State *L, int events, lua_Number timeout_s,
                    int (*push)(lua_State *, struct ab_op *))
{
    struct ab_proc *p = check_process(L, 1);
    struct ab_anchor *anchor = abl_anchor(L);
    anchor->op = ab_proc_wait(p, events, milliseconds(timeout_s), false);
    return abl_wait(L, anchor, push);
}

static int push_timeout(lua_State *L, const char *op)
{
    struct ab_err err;
    ab_err_set(&err, AB_ETIMEOUT, "nothing came in time");
    return abl_push_err(L, &err, op);
}

/* Bytes that are there; nil at the end of the stream; nil, err when the time is over. */
static int push_bytes(lua_State *L, struct ab_op *op, bool err)
{
    struct ab_proc *p = ab_proc_of(op);
    struct ab_proc_stream *s = ab_proc_stream(p, err);
    size_t max = (size_t)lua_tointeger(L, 2);
    size_t n = s->buf.len < max ? s->buf.len : max;
    if (n == 0) {
        if (!s->eof && !ab_proc_result(p)->over)
            return push_timeout(L, "process.read");
        if (ab_proc_result(p)->lost)
            return push_lost(L, "process.read");
        lua_pushnil(L);
        return 1;
    }
    lua_pushlstring(L, s->buf.data, n);
    ab_proc_consume(p, err, n);
    return 1;
}

static int push_stdout(lua_State *L, struct ab_op *op)
{
    return push_bytes(L, op, false);
}

static int push_stderr(lua_State *L, struct ab_op *op)
{
    return push_bytes(L, op, true);
}

static lua_Number check_read(lua_State *L)
{
    lua_Integer max = luaL_optinteger(L, 2, 65536);
    luaL_argcheck(L, max > 0, 2, "must be positive");
    lua_Number timeout = luaL_optnumber(L, 3, 0);
    lua_settop(L, 1);
    lua_pushinteger(L, max);
    return timeout;
}

/* Process:read([max [, timeout_s [, text]]]): with a text not before it is there, or all
 * that is kept unread; less when the time is over. The same of stderr, but for the text.
 */
static int l_read(lua_State *L)
{
    size_t len;
    const char *text = luaL_optlstring(L, 4, NULL, &len);
    struct ab_proc *p = check_process(L, 1);
    if (!text)
        return wait_for(L, AB_PROC_DATA | AB_PROC_EXIT, check_read(L), push_stdout);
    lua_settop(L, 4);
    struct ab_anchor *anchor = abl_anchor(L);
    anchor->op = ab_proc_wait_text(p, text, len, milliseconds(luaL_checknumber(L, 3)));
    return abl_wait(L, anchor, push_stdout);
}

static int l_read_stderr(lua_State *L)
{
    lua_Number timeout = check_read(L);
    return wait_for(L, AB_PROC_ERRDATA | AB_PROC_EXIT, timeout, push_stderr);
}

static void push_chunk(lua_State *L, struct ab_proc *p, bool err)
{
    struct ab_proc_stream *s = ab_proc_stream(p, err);
    size_t n = s->buf.len;
    if (n == 0) {
        lua_pushnil(L);
        return;
    }
    lua_pushlstring(L, s->buf.data, n);
    ab_proc_consume(p, err, n);
}

static int push_next(lua_State *L, struct ab_op *op)
{
    struct ab_proc *p = ab_proc_of(op);
    push_chunk(L, p, false);
    push_chunk(L, p, true);
    lua_pushboolean(L, ab_proc_result(p)->over);
    return 3;
}

/* Process:next(): what came of stdout and of stderr, each or nil, and whether the command
 * is over. */
static int l_next(lua_State *L)
{
    struct ab_proc *p = check_process(L, 1);
    int events = AB_PROC_EXIT;
    if (!ab_proc_stream(p, false)->eof || ab_proc_stream(p, false)->buf.len)
        events |= AB_PROC_DATA;
    if (!ab_proc_stream(p, true)->eof || ab_proc_stream(p, true)->buf.len)
        events |= AB_PROC_ERRDATA;
    return wait_for(L, events, 0, push_next);
}

static int push_written(lua_State *L, struct ab_op *op)
{
    (void)op;
    lua_pushboolean(L, 1);
    return 1;
}

/* Process:write(bytes): true when the process has taken them all, or will take no more.
 */
static int l_write(lua_State *L)
{
    size_t len;
    struct ab_proc *p = check_process(L, 1);
    const char *data = luaL_checklstring(L, 2, &len);
    if (ab_proc_result(p)->lost)
        return push_lost(L, "process.write");
    if (ab_proc_write(p, data, len) < 0) {
        struct ab_err err;
        ab_err_set(&err, AB_EIO, "the process takes no more input");
        return abl_push_err(L, &err, "process.write");
    }
    if (ab_proc_events(p) & AB_PROC_DRAINED) { /* as a rule: it fits into the pipe */
        lua_pushboolean(L, 1);
        return 1;
    }
    return wait_for(L, AB_PROC_DRAINED | AB_PROC_EXIT, 0, push_written);
}

static int l_close_stdin(lua_State *L)
{
    ab_proc_close_stdin(check_process(L, 1));
    return 0;
}

static int push_waited(lua_State *L, struct ab_op *op)
{
    struct abl_process *box = lua_touserdata(L, 1);
    struct ab_proc *p = ab_proc_of(op);
    if (!ab_proc_result(p)->over)
        return push_timeout(L, "process.wait");
    bool oom = false;
    if (lua_getiuservalue(L, 1, 1) == LUA_TUSERDATA) {
        struct abl_sandbox *s = luaL_testudata(L, -1, ABL_SANDBOX);
        oom = s && abl_oom_kills(s) > box->oom_before;
    }
    return abl_push_outcome(L, p, oom, "process.wait");
}

/* Process:wait([timeout_s]): the outcome, with the output that nobody read. */
static int l_wait(lua_State *L)
{
    lua_Number timeout = luaL_optnumber(L, 2, 0);
    ab_proc_stop_reading(check_process(L, 1));
    return wait_for(L, AB_PROC_EXIT, timeout, push_waited);
}

static int l_kill(lua_State *L)
{
    ab_proc_kill(check_process(L, 1));
    return 0;
}

static int l_resize(lua_State *L)
{
    ab_proc_resize(check_process(L, 1), (unsigned)luaL_checkinteger(L, 2),
                   (unsigned)luaL_checkinteger(L, 3));
    return 0;
}

static int l_running(lua_State *L)
{
    struct abl_process *box = luaL_checkudata(L, 1, ABL_PROCESS);
    lua_pushboolean(L, box->proc && !ab_proc_result(box->proc)->over);
    return 1;
}

static int l_gc(lua_State *L)
{
    struct abl_process *box = luaL_checkudata(L, 1, ABL_PROCESS);
    ab_proc_unref(box->proc);
    box->proc = NULL;
    return 0;
}

void abl_process_register(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"read", l_read},
        {"next", l_next},
        {"read_stderr", l_read_stderr},
        {"write", l_write},
        {"close_stdin", l_close_stdin},
        {"wait", l_wait},
        {"kill", l_kill},
        {"resize", l_resize},
        {"running", l_running},
        {"close", l_gc},
        {NULL, NULL},
    };
    luaL_newmetatable(L, ABL_PROCESS);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, l_gc);
    lua_setfield(L, -2, "__gc");
    lua_pushcfunction(L, l_gc);
    lua_setfield(L, -2, "__close");
    lua_pop(L, 1);
}
