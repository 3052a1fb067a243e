/* l_sandbox.c - agentbox.sys.sandbox: sandboxes and layers as values. What a user sees is
 * lua/stdlib/sandbox.lua. */
#include "lua/l_sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "lua/sandbox_life.h"
#include "rt/fs.h"
#include "rt/poll.h"
#include "rt/work.h"
#include "sandbox/zygote.h"

#define BOOT_TIMEOUT_S 60 /* far beyond what a busy machine needs */

int luaopen_agentbox_sys_sandbox(lua_State *L);

struct abl_sandbox *abl_check_sandbox(lua_State *L, int arg)
{
    return luaL_checkudata(L, arg, ABL_SANDBOX);
}

struct abl_sandbox *abl_open_sandbox(lua_State *L, int arg, struct ab_err *err)
{
    struct abl_sandbox *s = abl_check_sandbox(L, arg);
    if (s->sb || s->plain >= 0)
        return s;
    ab_err_set(err, AB_ESANDBOX, "the sandbox is closed");
    return NULL;
}

bool abl_open_tree(lua_State *L, int arg, struct ab_tree *t, struct ab_err *err)
{
    struct abl_sandbox *s = abl_open_sandbox(L, arg, err);
    if (!s)
        return false;
    if (s->sb && ab_sandbox_undisturbed(s->sb, err) < 0)
        return false;
    *t = (struct ab_tree){.root = s->plain};
    if (s->sb)
        *t = (struct ab_tree){.root = s->sb->files, .ids = s->sb->ids};
    return true;
}

bool abl_open_left(lua_State *L, int arg, struct ab_tree *t, struct ab_err *err)
{
    struct abl_sandbox *s = abl_check_sandbox(L, arg);
    if (s->left.root < 0)
        return abl_open_tree(L, arg, t, err);
    *t = s->left;
    return true;
}

uint64_t abl_oom_kills(const struct abl_sandbox *s)
{
    return s->sb ? ab_cgroup_oom_kills(&s->sb->cgroup) : 0;
}

/* Pushes a closed sandbox with the environment of the options at index 1. */
static struct abl_sandbox *new_sandbox(lua_State *L, const char *workspace)
{
    struct abl_sandbox *s = lua_newuserdatauv(L, sizeof *s, ABL_PAIRS);
    *s = (struct abl_sandbox){.plain = -1, .left = {.root = -1}};
    luaL_setmetatable(L, ABL_SANDBOX);
    if (lua_getfield(L, 1, "env") == LUA_TNIL) {
        lua_pop(L, 1);
        lua_newtable(L);
    }
    luaL_checktype(L, -1, LUA_TTABLE);
    lua_setiuservalue(L, -2, ABL_ENV);
    lua_pushstring(L, workspace);
    lua_setiuservalue(L, -2, ABL_WORKSPACE);
    return s;
}

/* ---- create ---- */

static const char *const spec_keys[] = {
    "image",        "layers", "network",        "hostname",   "workspace",
    "memory_bytes", "cpus",   "pids",           "disk_bytes", "inodes",
    "nofile",       "env",    "boot_timeout_s", "allow",      NULL,
};

static uint64_t opt_count(lua_State *L, const char *key)
{
    lua_Number n = abl_opt_number(L, 1, key, 0);
    if (!(n >= 0 && n < 9e15))
        luaL_error(L, "option '%s': must be at least 0 and below 9e15", key);
    return (uint64_t)n;
}

static struct ab_layer *opt_layer(lua_State *L)
{
    struct ab_layer *layer = NULL;
    if (lua_getfield(L, 1, "layers") == LUA_TTABLE) {
        luaL_argcheck(L, lua_rawlen(L, -1) <= 1, 1,
                      "layers: give the topmost one; it knows those below it");
        if (lua_rawgeti(L, -1, 1) != LUA_TNIL) {
            struct abl_layer *box = luaL_checkudata(L, -1, ABL_LAYER);
            luaL_argcheck(L, box->layer, 1, "the layer is closed");
            layer = box->layer;
        }
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return layer;
}

static void check_spec(lua_State *L, struct ab_sandbox_spec *spec)
{
    abl_check_keys(L, 1, spec_keys);
    static const char *const networks[] = {"none", "full", NULL};
    const char *network = abl_opt_string(L, 1, "network", "none");
    int which = 0;
    while (networks[which] && strcmp(networks[which], network))
        which++;
    if (!networks[which])
        luaL_error(L, "option 'network': \"none\" or \"full\" expected, got \"%s\"",
                   network);
    *spec = (struct ab_sandbox_spec){
        .image = abl_opt_string(L, 1, "image", "host"),
        .layer = opt_layer(L),
        .hostname = abl_opt_string(L, 1, "hostname", "sandbox"),
        .workspace = abl_opt_string(L, 1, "workspace", "/workspace"),
        .net_full = which == 1,
        .limits = {.memory_bytes = opt_count(L, "memory_bytes"),
                   .pids = opt_count(L, "pids"),
                   .cpus = abl_opt_number(L, 1, "cpus", 0)},
        .disk_bytes = opt_count(L, "disk_bytes"),
        .inodes = opt_count(L, "inodes"),
        .nofile = opt_count(L, "nofile"),
    };
    luaL_argcheck(L, spec->limits.cpus >= 0 && spec->limits.cpus < 4096, 1,
                  "cpus: must not be negative");
}

/* The new userdata is on top, and below it the options of create at index 1. */
static int push_created(lua_State *L, struct ab_op *op)
{
    struct abl_sandbox *s = lua_touserdata(L, 2);
    if (op->err)
        return abl_push_err(L, op->err, "sandbox.create");
    s->sb = ab_life_take(op);
    abl_open_door(abl_loop(L), s);
    snprintf(s->id, sizeof s->id, "%d-%u", (int)getpid(), s->sb->number);
    lua_pushvalue(L, 2);
    return 1;
}

/* create(spec): waits until the sandbox is ready. */
static int l_create(lua_State *L)
{
    struct ab_sandbox_spec spec;
    struct ab_sandbox *sb;
    struct ab_err err;
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    check_spec(L, &spec);
    double patience_s = abl_opt_number(L, 1, "boot_timeout_s", BOOT_TIMEOUT_S);
    luaL_argcheck(L, patience_s > 0 && patience_s < 1e6, 1,
                  "boot_timeout_s: must be above 0");
    struct abl_sandbox *s = new_sandbox(L, spec.workspace);
    if (ab_work_ready(abl_loop(L), &err) < 0 || abl_take_allow(L, s, &spec, &err) < 0)
        return abl_push_err(L, &err, "sandbox.create");
    struct ab_anchor *anchor = abl_anchor(L);
    if (ab_sandbox_begin(&spec, &sb, &err) < 0)
        return abl_push_err(L, &err, "sandbox.create");
    anchor->op = ab_life_create(abl_loop(L), sb, (uint64_t)(patience_s * 1000));
    return abl_wait(L, anchor, push_created);
}

/* plain{root=, workspace=, env=, scratch=}: no sandbox, a directory of the host that
 * stands for the root. A scratch one is removed when the handle is collected unclosed;
 * who closes it removes it. */
static int l_plain(lua_State *L)
{
    static const char *const keys[] = {"root", "workspace", "env", "scratch", NULL};
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    abl_check_keys(L, 1, keys);
    const char *root = abl_opt_string(L, 1, "root", "");
    struct abl_sandbox *s =
        new_sandbox(L, abl_opt_string(L, 1, "workspace", "/workspace"));
    struct ab_err err;
    if (ab_work_ready(abl_loop(L), &err) < 0)
        return abl_push_err(L, &err, "sandbox.plain");
    s->plain = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (s->plain < 0) {
        ab_err_sys(&err, errno, "%s", root);
        return abl_push_err(L, &err, "sandbox.plain");
    }
    s->plain_dir = ab_xstrndup(root, strlen(root));
    s->home = ab_plain_home_new();
    s->scratch = abl_opt_boolean(L, 1, "scratch", false);
    snprintf(s->id, sizeof s->id, "plain-%d-%d", (int)getpid(), s->plain);
    return 1;
}

/* ---- exec, spawn ---- */

static int start_plain(lua_State *L, struct abl_sandbox *s, const struct ab_command *cmd,
                       struct ab_child *child, struct ab_err *err)
{
    char cwd[4096];
    if (cmd->terminal || cmd->uid || cmd->gid)
        return ab_err_set(err, AB_EUNSUPPORTED,
                          "backend none has no terminals and no other users");
    /* Both are absolute; what lies below the root stays below it as long as nobody makes
     * links. */
    if (snprintf(cwd, sizeof cwd, "%s%s", s->plain_dir, cmd->cwd) >= (int)sizeof cwd)
        return ab_err_set(err, AB_ETOOBIG, "the working directory's path is too long");
    struct ab_plain plain = {.argv = cmd->argv,
                             .envp = cmd->envp,
                             .cwd = cwd,
                             .home = s->home,
                             .stdin_pipe = cmd->stdin_pipe,
                             .note = ab_zygote_group};
    return ab_plain_spawn(abl_loop(L), &plain, child, err);
}

static int push_executed(lua_State *L, struct ab_op *op)
{
    struct abl_sandbox *s = lua_touserdata(L, 1);
    uint64_t before = (uint64_t)lua_tointeger(L, 2);
    bool oom = abl_oom_kills(s) > before;
    return abl_push_outcome(L, ab_proc_of(op), oom, "sandbox.exec");
}

/* A command that is started while another one runs, or may run yet, gets a cgroup of its
 * own, so that it is known what each of them started. */
static int start_native(struct ab_sandbox *sb, struct ab_command *cmd,
                        struct ab_child *child, struct ab_err *err)
{
    int leaf = -1;
    if (ab_sandbox_undisturbed(sb, err) < 0)
        return -1;
    if (sb->tally->alive || sb->tally->given_up)
        leaf = ab_cgroup_leaf(&sb->cgroup, sb->tally, &cmd->leaf_number);
    cmd->leaf = leaf;
    int rc = ab_sandbox_exec(sb, cmd, child, err);
    if (leaf >= 0)
        close(leaf);
    if (rc < 0)
        ab_tally_end_leaf(sb->tally, cmd->leaf_number, AB_LEAF_OVER);
    return rc;
}

/* Starts the command of arguments 2 and 3; NULL with err when it could not be. */
static struct ab_proc *start(lua_State *L, bool spawn, uint64_t *oom_before,
                             struct ab_err *err)
{
    struct ab_command cmd;
    struct ab_child child;
    struct ab_proc_opts opts = {0};
    abl_check_command(L, 2, 3, &cmd);
    struct abl_sandbox *s = abl_open_sandbox(L, 1, err);
    if (!s)
        return NULL;
    abl_check_proc_opts(L, 3, &opts);
    if (spawn)
        opts.hold_stdin = opts.interactive = cmd.stdin_pipe = true;
    cmd.stdin_pipe = cmd.stdin_pipe || opts.input;
    *oom_before = abl_oom_kills(s);
    int rc = s->sb ? start_native(s->sb, &cmd, &child, err)
                   : start_plain(L, s, &cmd, &child, err);
    if (rc < 0) {
        free(opts.input);
        return NULL;
    }
    return ab_proc_start(abl_loop(L), &child, &opts);
}

/* Sandbox:exec(argv or string [, opts]) */
static int l_exec(lua_State *L)
{
    struct ab_err err;
    uint64_t oom_before = 0;
    abl_check_sandbox(L, 1);
    lua_settop(L, 3);
    struct ab_anchor *anchor = abl_anchor(L);
    struct ab_proc *p = start(L, false, &oom_before, &err);
    if (!p)
        return abl_push_err(L, &err, "sandbox.exec");
    anchor->op = ab_proc_wait(p, AB_PROC_EXIT, 0, true);
    ab_proc_unref(p);
    lua_pushinteger(L, (lua_Integer)oom_before);
    lua_replace(L, 2);
    return abl_wait(L, anchor, push_executed);
}

/* Sandbox:spawn(argv or string [, opts]) */
static int l_spawn(lua_State *L)
{
    struct ab_err err;
    abl_check_sandbox(L, 1);
    lua_settop(L, 3);
    struct abl_process *process = abl_new_process(L, 1);
    process->proc = start(L, true, &process->oom_before, &err);
    if (!process->proc)
        return abl_push_err(L, &err, "sandbox.spawn");
    lua_pushvalue(L, 4);
    return 1;
}

/* ---- the end ---- */

static int push_closed(lua_State *L, struct ab_op *op)
{
    (void)op;
    lua_pushboolean(L, 1);
    return 1;
}

void abl_sandbox_close_outside(struct abl_sandbox *s)
{
    ab_pasta_stop(s->pasta);
    s->pasta = NULL;
    abl_close_door(s);
    if (s->plain >= 0)
        close(s->plain);
    s->plain = -1;
    free(s->plain_dir);
    s->plain_dir = NULL;
}

/* A tree is unmounted when the last one lets go of it. That waits for all processors, and
 * so happens on a thread. */
struct letting_go {
    int tree; /* owns */
};

static void let_go(void *arg)
{
    struct letting_go *left = arg;
    if (left->tree >= 0)
        close(left->tree);
    left->tree = -1;
}

static void let_go_free(void *arg)
{
    let_go(arg); /* it may not have run */
    free(arg);
}

static struct ab_op *start_letting_go(struct ab_loop *loop, struct abl_sandbox *s)
{
    struct letting_go *left = ab_xcalloc(1, sizeof *left);
    struct ab_work work = {.run = let_go, .free = let_go_free, .job = left};
    *left = (struct letting_go){s->left.root};
    s->left.root = -1;
    return ab_work_start(loop, &work);
}

/* What is done when no process of it is left; NULL when there is none, or was closed. */
static struct ab_op *begin_close(lua_State *L, struct abl_sandbox *s)
{
    struct ab_op *op = NULL;
    abl_sandbox_close_outside(s);
    if (s->home)
        op = ab_plain_home_close(abl_loop(L), s->home);
    else if (s->sb)
        op = ab_life_close(abl_loop(L), s->sb, false);
    else if (s->left.root >= 0)
        op = start_letting_go(abl_loop(L), s);
    s->home = NULL;
    s->sb = NULL;
    return op;
}

/* Sandbox:close(): true, also the second time. */
static int l_close(lua_State *L)
{
    struct abl_sandbox *s = abl_check_sandbox(L, 1);
    lua_settop(L, 1);
    struct ab_anchor *anchor = abl_anchor(L);
    anchor->op = begin_close(L, s);
    return anchor->op ? abl_wait(L, anchor, push_closed) : push_closed(L, NULL);
}

static int l_gc(lua_State *L)
{
    struct abl_sandbox *s = abl_check_sandbox(L, 1);
    struct ab_err err;
    if (s->scratch && s->plain_dir && ab_fs_remove(s->plain_dir, true, &err) < 0)
        ab_log(AB_LOG_WARN, "%s", err.msg);
    struct ab_op *op = begin_close(L, s);
    free(s->denials);
    s->denials = NULL;
    s->ndenials = 0;
    if (op) {
        ab_op_cancel(op); /* nobody waits; the loop finishes it */
        ab_op_unref(op);
    }
    return 0;
}

/* A <close> variable that goes out of scope in a fiber waits; elsewhere it is left to the
 * loop. */
static int l_tbc(lua_State *L)
{
    lua_settop(L, 1);
    return abl_can_wait(L) ? l_close(L) : l_gc(L);
}

static int push_purged(lua_State *L, struct ab_op *op)
{
    struct ab_err err = op->err ? *op->err : (struct ab_err){0};
    struct abl_sandbox *s = abl_open_sandbox(L, 1, &err);
    if (err.code || !s || !s->sb)
        return abl_push_err(L, &err, "sandbox.kill_all");
    if (ab_sandbox_step(s->sb, &err) != 0)
        return abl_push_err(L, &err, "sandbox.kill_all");
    lua_pushboolean(L, 1);
    return 1;
}

/* Sandbox:kill_all(): true when nothing but pid 1 is alive. */
static int l_kill_all(lua_State *L)
{
    struct ab_err err = {0};
    struct abl_sandbox *s = abl_open_sandbox(L, 1, &err);
    lua_settop(L, 1);
    if (s && !s->sb) {
        lua_pushboolean(L, 1);
        return 1;
    }
    struct ab_anchor *anchor = abl_anchor(L);
    if (!s || ab_sandbox_purge(s->sb, &err) < 0)
        return abl_push_err(L, &err, "sandbox.kill_all");
    anchor->op = ab_poll_shared(abl_loop(L), s->sb->sock, UV_READABLE);
    return abl_wait(L, anchor, push_purged);
}

/* Sandbox:wire(setpriv, pasta): starts what carries network full. */
static int l_wire(lua_State *L)
{
    struct ab_err err;
    struct abl_sandbox *s = abl_open_sandbox(L, 1, &err);
    const char *setpriv = luaL_checkstring(L, 2), *program = luaL_checkstring(L, 3);
    if (!s)
        return abl_push_err(L, &err, "sandbox.wire");
    luaL_argcheck(L, s->sb && s->sb->net >= 0 && !s->pasta, 1,
                  "a sandbox made with network full");
    if (ab_pasta_start(abl_loop(L), setpriv, program, s->sb->net, s->sb->userns,
                       &s->pasta, &err) < 0)
        return abl_push_err(L, &err, "sandbox.wire");
    lua_pushboolean(L, 1);
    return 1;
}

/* Sandbox:is_wired(): whether the network's carrier is alive. */
static int l_is_wired(lua_State *L)
{
    const struct abl_sandbox *s = abl_check_sandbox(L, 1);
    lua_pushboolean(L, s->pasta && ab_pasta_running(s->pasta));
    return 1;
}

/* ---- facts ---- */

static void set_number(lua_State *L, const char *key, double value)
{
    lua_pushnumber(L, value);
    lua_setfield(L, -2, key);
}

static void set_count(lua_State *L, const char *key, uint64_t value)
{
    lua_pushinteger(L, (lua_Integer)value);
    lua_setfield(L, -2, key);
}

static int l_usage(lua_State *L)
{
    struct ab_err err;
    struct ab_cgroup_usage u;
    uint64_t bytes = 0, inodes = 0;
    struct abl_sandbox *s = abl_open_sandbox(L, 1, &err);
    if (!s)
        return abl_push_err(L, &err, "sandbox.usage");
    lua_createtable(L, 0, 7);
    if (!s->sb)
        return 1;
    ab_cgroup_usage(&s->sb->cgroup, &u);
    ab_sandbox_disk(s->sb, &bytes, &inodes);
    set_count(L, "disk_bytes", bytes);
    set_count(L, "inodes", inodes);
    if (u.cpu_known)
        set_number(L, "cpu_s", u.cpu_s);
    if (u.pids_known)
        set_count(L, "pids", u.pids);
    if (u.memory_known) {
        set_count(L, "memory_bytes", u.memory_bytes);
        set_count(L, "memory_peak_bytes", u.memory_peak_bytes);
        set_count(L, "oom_kills", u.oom_kills);
    }
    return 1;
}

static int l_id(lua_State *L)
{
    lua_pushstring(L, abl_check_sandbox(L, 1)->id);
    return 1;
}

static int l_pid(lua_State *L)
{
    struct abl_sandbox *s = abl_check_sandbox(L, 1);
    if (!s->sb)
        return 0;
    lua_pushinteger(L, s->sb->pid);
    return 1;
}

static int l_is_open(lua_State *L)
{
    const struct abl_sandbox *s = abl_check_sandbox(L, 1);
    lua_pushboolean(L, s->sb || s->plain >= 0);
    return 1;
}

/* Sandbox:is_alive(): whether its pid 1 lives; nobody else would tell of an idle one. */
static int l_is_alive(lua_State *L)
{
    const struct abl_sandbox *s = abl_check_sandbox(L, 1);
    lua_pushboolean(L, s->sb && ab_sandbox_alive(s->sb));
    return 1;
}

/* Sandbox:user_count(): how many user ids there are inside. */
static int l_user_count(lua_State *L)
{
    const struct abl_sandbox *s = abl_check_sandbox(L, 1);
    uint32_t count = s->sb ? s->sb->ids.count : s->left.ids.count;
    lua_pushinteger(L, count ? count : 1);
    return 1;
}

/* Sandbox:ids(): the host ids of 0 and of 1.. inside, and how many there are. */
static int l_ids(lua_State *L)
{
    const struct abl_sandbox *s = abl_check_sandbox(L, 1);
    if (!s->sb)
        return 0;
    lua_pushinteger(L, s->sb->ids.first);
    lua_pushinteger(L, s->sb->ids.rest);
    lua_pushinteger(L, s->sb->ids.count);
    return 3;
}

void abl_sandbox_new_type(lua_State *L, const char *name, const luaL_Reg *methods,
                          lua_CFunction gc, lua_CFunction tbc)
{
    luaL_newmetatable(L, name);
    lua_newtable(L);
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "__index");
    lua_pushcfunction(L, gc);
    lua_setfield(L, -3, "__gc");
    lua_pushcfunction(L, tbc);
    lua_setfield(L, -3, "__close");
}

int luaopen_agentbox_sys_sandbox(lua_State *L)
{
    static const luaL_Reg sandbox_methods[] = {
        {"exec", l_exec},
        {"spawn", l_spawn},
        {"close", l_close},
        {"usage", l_usage},
        {"id", l_id},
        {"pid", l_pid},
        {"is_open", l_is_open},
        {"user_count", l_user_count},
        {"ids", l_ids},
        {"kill_all", l_kill_all},
        {"wire", l_wire},
        {"is_wired", l_is_wired},
        {"is_alive", l_is_alive},
        {NULL, NULL},
    };
    static const luaL_Reg lib[] = {
        {"create", l_create}, {"plain", l_plain}, {NULL, NULL}};
    abl_sandbox_new_type(L, ABL_SANDBOX, sandbox_methods, l_gc, l_tbc);
    abl_sandbox_file_methods(L);
    abl_sandbox_net_methods(L);
    abl_sandbox_layer_methods(L);
    lua_pop(L, 2);
    abl_layer_register(L);
    abl_process_register(L);
    luaL_newlib(L, lib);
    abl_sandbox_probe_functions(L);
    abl_sandbox_net_functions(L);
    return 1;
}
